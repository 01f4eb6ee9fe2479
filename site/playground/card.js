/**
 * Pictures for links: of the race, of a page, and of a story. Each is an SVG as text. A build (PNG by resvg),
 * a browser (a canvas) and the README (the film) therefore draw the same from the same figures.
 *
 * A test can compare the picture: no measured text, no fonts of the machine's own choice, and numbers with
 * one digit behind the point.
 */
import { figuresOf, inWords, linesOf } from './figures.js'
import { headline, knows, PAGES, standing, verdict, winnerOf } from './race.js'
import { clock } from './words.js'

export const WIDTH = 1200
export const HEIGHT = 630

/** DejaVu where a build draws; what the machine has where a browser does. */
const FONT = 'system-ui, -apple-system, Segoe UI, Roboto, DejaVu Sans, sans-serif'
const LEFT = 64
const ACROSS = WIDTH - 2 * LEFT

const THEMES = {
  light: {
    ground: '#ffffff',
    text: '#213547',
    quiet: '#55606e',
    track: '#eceff3',
    served: '#17803d',
    refused: '#cf222e',
    limit: '#8b919b',
    lines: ['#2f5fd0', '#a34b00', '#0f766e', '#8a3ffc'],
  },
  dark: {
    ground: '#1b1b1f',
    text: '#f0f0f3',
    quiet: '#a9adb8',
    track: '#2e2e34',
    served: '#2f9e52',
    refused: '#e5534b',
    limit: '#838a96',
    lines: ['#7aa2ff', '#ffab5e', '#4fd1c5', '#c4a5ff'],
  },
}

const fixed = (number) => String(Number(number.toFixed(1)))
const plain = (text) => String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const word = (x, y, text, { size = 26, fill, weight = 400, anchor = 'start', more = '' }) =>
  `<text x="${fixed(x)}" y="${fixed(y)}" font-size="${size}" font-weight="${weight}" fill="${fill}" ` +
  `text-anchor="${anchor}"${more}>${plain(text)}</text>`

/** Words in rows of about `width` letters. */
function rows(text, letters) {
  const out = ['']
  for (const each of text.split(' ')) {
    if (out.at(-1) !== '' && out.at(-1).length + each.length >= letters) out.push('')
    out.push(`${out.pop()} ${each}`.trim())
  }
  return out
}

const paragraph = (x, y, text, letters, { size, leading = 1.35, ...style }) =>
  rows(text, letters).map((row, index) => word(x, y + index * size * leading, row, { size, ...style }))

function sheet({ ground, quiet }, title, parts, style = '') {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" ` +
      `role="img" font-family="${FONT}">`,
    `<title>${plain(title)}</title>`,
    ...(style ? [`<style>${style}</style>`] : []),
    `<rect class="ground" width="${WIDTH}" height="${HEIGHT}" fill="${ground}"/>`,
    ...parts,
    word(WIDTH - LEFT, HEIGHT - 26, 'autothrottle', { size: 22, weight: 700, fill: quiet, anchor: 'end' }),
    '</svg>',
    '',
  ].join('\n')
}

const LANES = { top: 190, every: 76, bar: 26 }

/** The lanes of the race as it ended. `isReal`: its requests were. */
export function raceCard(runs, { theme = 'light', isReal = false } = {}) {
  const look = THEMES[theme]
  const how = isReal ? 'Real requests to a service worker that plays nginx.' : 'Simulated with the package.'
  return sheet(look, headline(runs), [
    ...paragraph(LEFT, 76, headline(runs), 50, { size: 34, weight: 700, fill: look.text }),
    ...lanes(runs, look),
    word(LEFT, HEIGHT - 26, `Ten requests a second, and a ban. ${how}`, { size: 22, fill: look.quiet }),
  ])
}

function lanes(runs, look, bars = still) {
  const best = winnerOf(runs)
  return runs.flatMap((run, index) => {
    const y = LANES.top + index * LANES.every
    const figures = `${run.served} served, ${run.refused} refused · ${run.seconds.toFixed(run.seconds < 1 ? 1 : 0)} s`
    const weight = run === best ? 700 : 400
    return [
      word(LEFT, y, run.name, { size: 24, weight: 700, fill: look.text }),
      word(LEFT + 190, y, knows(run), { size: 24, weight, fill: look.text }),
      word(LEFT + ACROSS, y, figures, {
        ...{ size: 24, weight, fill: look.text, anchor: 'end' },
        more: ` class="end-${index}"`,
      }),
      `<rect x="${LEFT}" y="${y + 12}" width="${ACROSS}" height="${LANES.bar}" rx="6" fill="${look.track}"/>`,
      ...bars(run, index, look, y + 12),
    ]
  })
}

const bar = (share, fill, y, more = '') =>
  `<rect x="${LEFT}" y="${y}" width="${fixed(share * ACROSS)}" height="${LANES.bar}" rx="6" fill="${fill}"${more}/>`

const still = ({ served, refused }, _, look, y) => [
  bar((served + refused) / PAGES, look.refused, y),
  bar(served / PAGES, look.served, y),
]

/** Ten seconds of race, and how long its verdict stands. */
const FILM = { race: 10, verdict: 4, stops: 40 }

/**
 * The race as a film: an SVG that moves by its own style. It is as sharp as text, and says the same as the
 * engine. Where you ask for less motion, it stands still at its end.
 */
export function raceFilm(runs) {
  const look = THEMES.light
  const end = Math.max(...runs.map(({ seconds }) => seconds)) * 1000
  const total = FILM.race + FILM.verdict
  const percent = (ms) => fixed(((ms / end) * FILM.race * 100) / total)
  const style = []
  const frames = (name, at) => style.push(`@keyframes ${name}{${at.join('')}}`)
  const bars = ({ pages }, index, colours, y) => {
    const stops = Array.from({ length: FILM.stops + 1 }, (_, stop) => (stop * end) / FILM.stops)
    const counts = stops.map((now) => ({ now, ...standing(pages, now) }))
    const scale = (count) => Number((count / PAGES).toFixed(4))
    const moves = (name, of) => {
      const at = counts.map((count) => ({ at: percent(count.now), x: scale(of(count)) }))
      // A stop between two that are the same says no more.
      const kept = at.filter(({ x }, place) => x !== at[place - 1]?.x || x !== at[place + 1]?.x)
      frames(name, [
        ...kept.map(({ at: when, x }) => `${when}%{transform:scaleX(${x})}`),
        `100%{transform:scaleX(${at.at(-1).x})}`,
      ])
      return ` class="bar" style="animation-name:${name};transform:scaleX(${at.at(-1).x})"`
    }
    return [
      bar(
        1,
        colours.refused,
        y,
        moves(`r${index}`, ({ served, refused }) => served + refused),
      ),
      bar(
        1,
        colours.served,
        y,
        moves(`s${index}`, ({ served }) => served),
      ),
    ]
  }
  const parts = lanes(runs, look, bars)
  runs.forEach(({ seconds }, index) => {
    const at = Number(percent(seconds * 1000))
    frames(`e${index}`, [
      `0%,${fixed(Math.max(0, at - 0.1))}%{opacity:0}`,
      `${fixed(at + 0.1)}%,100%{opacity:1}`,
    ])
    style.push(`.end-${index}{animation-name:e${index}}`)
  })
  const over = (FILM.race * 100) / total
  frames('before', [`0%,${fixed(over)}%{opacity:1}`, `${fixed(over + 1)}%,100%{opacity:0}`])
  frames('after', [`0%,${fixed(over)}%{opacity:0}`, `${fixed(over + 1)}%,100%{opacity:1}`])
  const seconds = Math.ceil(end / 1000)
  frames('clock', [
    `0%{transform:translateY(0)}`,
    `${fixed(over)}%,100%{transform:translateY(-${seconds * 40}px)}`,
  ])
  const ticks = Array.from({ length: seconds + 1 }, (_, second) =>
    word(LEFT + ACROSS, 116 + second * 40, `${second} s`, {
      ...{ size: 26, weight: 700, fill: look.quiet, anchor: 'end' },
    }),
  )
  const [first, ...others] = verdict(runs)
  const css =
    `.bar{transform-origin:${LEFT}px 0}.before{opacity:0}.ticks{transform:translateY(-${seconds * 40}px)}` +
    `@media (prefers-reduced-motion:no-preference){.bar,.before,.after,.ticks,[class^=end]{` +
    `animation:${total}s linear infinite}.before{animation-name:before}.after{animation-name:after}` +
    `.ticks{animation-name:clock;animation-timing-function:steps(${seconds})}${style.join('')}}`
  return sheet(
    look,
    [first, ...others].join(' '),
    [
      `<clipPath id="clock"><rect x="${WIDTH - LEFT - 140}" y="86" width="140" height="40"/></clipPath>`,
      '<g class="before">',
      ...paragraph(LEFT, 76, 'Who gets 500 pages from a server that bans?', 62, {
        ...{ size: 34, weight: 700, fill: look.text },
      }),
      word(LEFT, 116, 'nginx: ten requests a second. A client that asks faster is banned for ten seconds.', {
        ...{ size: 24, fill: look.quiet },
      }),
      `<g clip-path="url(#clock)"><g class="ticks">${ticks.join('')}</g></g>`,
      '</g>',
      '<g class="after">',
      ...paragraph(LEFT, 76, first, 50, { size: 34, weight: 700, fill: look.text }),
      '</g>',
      ...parts,
      word(LEFT, HEIGHT - 26, 'Simulated with the package, ten times faster than it happens.', {
        ...{ size: 22, fill: look.quiet },
      }),
    ],
    css,
  )
}

/** A page that has no figures: its name, and what it is about. */
export function pageCard({ title, about, code }) {
  const look = THEMES.light
  return sheet(look, title, [
    ...paragraph(LEFT, 150, title, 28, { size: 60, leading: 1.2, weight: 700, fill: look.text }),
    ...paragraph(LEFT, 320, about, 58, { size: 32, fill: look.quiet }),
    ...(code
      ? [
          `<rect x="${LEFT}" y="470" width="${ACROSS}" height="80" rx="12" fill="${look.track}"/>`,
          word(LEFT + 28, 521, code, {
            size: 32,
            fill: look.text,
            more: ' font-family="DejaVu Sans Mono, monospace"',
          }),
        ]
      : []),
  ])
}

const CHART = { top: 250, bottom: 500 }

/**
 * A picture of the playground: the rate over time below the limit, and what came of it. `title` and `about`
 * stand above; `theme` is `light` or `dark`.
 */
export function storyCard(stage, { title, about, theme = 'light' }) {
  const look = THEMES[theme]
  const { program, recorders, now } = stage
  const lines = linesOf(program).map((line) => ({ ...line, of: recorders[line.run].lines.get(line.scope) }))
  const { times } = recorders[0]
  const [from, to] = [Math.max(0, now - program.span) / 1000, Math.max(now, program.span) / 1000]
  const { limit } = recorders[0].lines.get('server')
  const most = Math.max(1, ...[...lines.map(({ of }) => of.rate), limit].flat().filter(Number.isFinite)) * 1.1
  const x = (seconds) => LEFT + ((seconds - from) / (to - from)) * ACROSS
  const y = (value) => CHART.bottom - (value / most) * (CHART.bottom - CHART.top)
  const curve = (values, style) => {
    const points = values.flatMap((value, at) =>
      value === null || times[at] < from ? [] : [`${fixed(x(times[at]))},${fixed(y(value))}`],
    )
    return `<polyline points="${points.join(' ')}" fill="none" ${style}/>`
  }
  const said = lines.slice(0, 2).map((line) => inWords(figuresOf(stage, line), program.options))
  return sheet(look, title, [
    word(LEFT, 86, title, { size: 44, weight: 700, fill: look.text }),
    ...(about ? paragraph(LEFT, 126, about, 80, { size: 24, fill: look.quiet }).slice(0, 3) : []),
    word(LEFT, CHART.top - 18, 'requests a second', { size: 20, fill: look.quiet }),
    `<path d="M${LEFT},${CHART.bottom}H${WIDTH - LEFT}" stroke="${look.limit}"/>`,
    curve(limit, `stroke="${look.limit}" stroke-width="3" stroke-dasharray="12 9"`),
    ...lines.map(({ of }, index) => curve(of.rate, `stroke="${look.lines[index]}" stroke-width="4"`)),
    ...lines.map(({ label }, index) =>
      word(LEFT + 230 + index * 220, CHART.top - 18, label, {
        size: 22,
        weight: 700,
        fill: look.lines[index],
      }),
    ),
    ...said.map((text, index) =>
      word(LEFT, CHART.bottom + 36 + index * 32, text, { size: 22, fill: look.text }),
    ),
    word(LEFT, CHART.bottom + 104, `Simulated with the package, after ${clock(now)}.`, {
      ...{ size: 22, fill: look.quiet },
    }),
  ])
}
