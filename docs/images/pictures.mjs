/**
 * Draws the pictures of `docs/policies.md` and `docs/rampup.md`, and the README's film of the race: each is a
 * simulated run, so that it shows what the engine does. `node docs/images/pictures.mjs` writes them, after a build.
 */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createSimulation, simulate } from '../../dist/simulate.js'
import { root } from '../../tools/scripts/lib.mjs'
import { raceFilm } from '../../site/playground/card.js'
import { race } from '../../site/playground/race.js'

const [WIDTH, RIGHT] = [840, 22]
const [BLUE, GREEN, RED, GREY, TEXT] = ['#2256c7', '#1a7f37', '#c22222', '#a9a9a9', '#444']
const fixed = (number) => number.toFixed(1)

/** A sheet with an axis of time below; `left` is where it begins. */
function sheet({ height, left, seconds, every, title }, parts) {
  const x = (ms) => left + (ms / (seconds * 1000)) * (WIDTH - left - RIGHT)
  const ticks = []
  for (let at = 0; at <= seconds; at += every) {
    const [place, time] = [fixed(x(at * 1000)), every < 60 ? `${at} s` : `${at / 60} min`]
    ticks.push(`<path d="M${place},26V${height - 24}" stroke="#ececec"/>`)
    ticks.push(`<text x="${place}" y="${height - 8}" text-anchor="middle">${time}</text>`)
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" \
font-family="sans-serif" font-size="12" fill="${TEXT}">
<title>${title}</title>
<rect width="${WIDTH}" height="${height}" fill="#fff"/>
<text x="8" y="16" font-weight="600">${title}</text>
${ticks.join('\n')}
${parts(x).join('\n')}
</svg>
`
}

const mark = (x, y, colour) =>
  `<rect x="${fixed(x - 1.5)}" y="${fixed(y)}" width="3" height="14" fill="${colour}"/>`
const line = (points, colour) =>
  `<polyline points="${points.map((point) => point.map(fixed).join(',')).join(' ')}" fill="none" \
stroke="${colour}" stroke-width="1.8"/>`

/** A server that takes everything, so that the policy alone speaks. */
const PATIENT = { model: 'token-bucket', rate: 1000, depth: 1000 }

/** When requests leave under policies that know the pace: a row each. */
function pace() {
  const SECONDS = 6
  const rows = [
    ['delay: 1000, jitter: false', { delay: 1000, jitter: false }],
    ['delay: 1000 (± 50 %)', { delay: 1000 }],
    [
      'concurrency: 2, delay: 300, slotDelay: 1000',
      { defaults: { concurrency: 2, delay: 300, slotDelay: 1000, jitter: false } },
    ],
    ["rate: '120/min'", { rate: '120/min' }],
    ['quota: { limit: 5, window: 3000 }', { quota: { limit: 5, window: 3000 }, concurrency: 1 }],
  ]
  const sent = rows.map(([, throttle]) => {
    const network = { latency: 100 }
    return simulate({ server: PATIENT, network, throttle, duration: SECONDS * 1000 + 1, seed: 4 }).trace.sent
  })
  const sheetOf = { height: 48 + rows.length * 28, left: 326, seconds: SECONDS, every: 1 }
  return sheet(
    { ...sheetOf, title: 'When requests leave: a mark each; all of them want to leave at once' },
    (x) =>
      rows.flatMap(([label], row) => [
        `<text x="8" y="${45 + row * 28}" font-family="monospace">${label}</text>`,
        ...Array.from(sent[row], (at) => mark(x(at), 34 + row * 28, BLUE)),
      ]),
  )
}

/** Samples of a run: what `state()` says of the server's scope, and what happened since the sample before. */
function* samples({ seconds, bin = 250, changes = [], ...options }) {
  const simulation = createSimulation(options)
  for (let now = 0; now <= seconds * 1000; now += bin) {
    for (const { at, server } of changes) if (at === now) simulation.configureServer(server)
    yield { now, events: simulation.events(), scope: simulation.state().scopes.server }
    simulation.advance(bin)
  }
}

/** A line of numbers over time, with its own scale; what is unknown stays out. */
function curve(run, read, most, x, [top, bottom], colour) {
  const points = []
  for (const sample of run) {
    const value = read(sample)
    if (value === undefined) continue
    const y = bottom - (Math.min(value, most) / most) * (bottom - top)
    if (points.length > 0) points.push([x(sample.now), points.at(-1)[1]])
    points.push([x(sample.now), y])
  }
  return line(points, colour)
}

const label = (y, colour, ...lines) =>
  lines.map((text, index) => `<text x="8" y="${y + index * 15}" fill="${colour}">${text}</text>`).join('')

/** The delay follows the latency, up and down. */
function autothrottle() {
  const run = [
    ...samples({
      seconds: 90,
      server: { model: 'queue', workers: 2, service: 150 },
      network: { latency: 50, jitter: 20 },
      load: { rate: 4 },
      throttle: { autothrottle: true, delay: 100 },
      changes: [
        { at: 30_000, server: { service: 900 } },
        { at: 60_000, server: { service: 150 } },
      ],
      seed: 1,
    }),
  ]
  const latency = ({ events }) => events.findLast(({ kind }) => kind === 'answer')?.latencyMs
  const title = 'AutoThrottle: the server slows down at 30 s and recovers at 60 s'
  return sheet({ height: 210, left: 120, seconds: 90, every: 10, title }, (x) => [
    label(60, GREEN, 'latency', 'up to 1.1 s'),
    curve(run, latency, 1100, x, [34, 96], GREEN),
    label(140, BLUE, 'delay', 'up to 2 s'),
    curve(run, ({ scope }) => scope.delayMs, 2000, x, [112, 182], BLUE),
  ])
}

/** Where requests were refused, and left. */
const marks = (run, x, y) =>
  run.flatMap(({ events }) =>
    events
      .filter(({ kind }) => kind === 'answer')
      .map(({ at, status }) => mark(x(at), status === 429 ? y + 18 : y, status === 429 ? RED : GREEN)),
  )

/** One step a flight up, one window a step down, and a wall that is remembered. */
function backoff() {
  const run = [
    ...samples({
      seconds: 120,
      server: { model: 'token-bucket', rate: 1.2, depth: 1 },
      network: { latency: 80 },
      throttle: { delay: 400, jitter: false, backoff: { minDelay: 400, window: 6000, jitter: 0 } },
      seed: 1,
    }),
  ]
  const title = 'Backoff: at 1.2 a second the best delay is 833 ms, which the server does not say'
  return sheet({ height: 200, left: 120, seconds: 120, every: 10, title }, (x) => [
    label(50, TEXT, 'served', 'refused'),
    ...marks(run, x, 34),
    label(106, BLUE, 'delay in force', 'up to 1.6 s'),
    `<path d="M${fixed(x(0))},${fixed(176 - (833 / 1600) * 90)}H${WIDTH - RIGHT}" stroke="${GREY}" \
stroke-dasharray="5 4"/>`,
    curve(run, ({ scope }) => Math.max(scope.delayMs, scope.backoffMs ?? 0), 1600, x, [86, 176], BLUE),
  ])
}

/** Retry-After: no request leaves before it, then more slowly. */
function hints() {
  const run = [
    ...samples({
      seconds: 40,
      server: { model: 'fixed-window', limit: 10, window: 10_000, says: 'retry-after' },
      network: { latency: 120 },
      throttle: { delay: 300, jitter: false, backoff: { minDelay: 600, window: 5000 } },
      seed: 1,
    }),
  ]
  const title = 'Retry-After: ten requests in each ten seconds; the eleventh is told how long to wait'
  return sheet({ height: 100, left: 120, seconds: 40, every: 5, title }, (x) => [
    label(46, TEXT, 'served', 'refused'),
    ...marks(run, x, 34),
  ])
}

/** An unknown limit is found, and found again when it has doubled. */
function rampup() {
  const bin = 2500
  const run = [
    ...samples({
      seconds: 600,
      bin,
      server: { model: 'token-bucket', rate: 10, depth: 5 },
      network: { latency: 100, jitter: 2 },
      throttle: { rampup: true },
      changes: [{ at: 300_000, server: { rate: 20 } }],
      seed: 11,
    }),
  ]
  const count = (kind, is = () => true) =>
    run.flatMap(({ events }) => events).filter((each) => each.kind === kind && is(each))
  const refused = count('answer', ({ status }) => status === 429)
  const title = `Rampup: the limit doubles at 5 min; ${refused.length} of ${count('send').length} refused`
  const rate = ({ events }) => (events.filter(({ kind }) => kind === 'send').length * 1000) / bin
  return sheet({ height: 230, left: 120, seconds: 600, every: 60, title }, (x) => [
    label(46, RED, 'refused'),
    ...refused.map(({ at }) => mark(x(at), 34, RED)),
    label(90, BLUE, 'sent a second', 'up to 22'),
    label(126, GREY, 'limit'),
    curve(run, ({ scope }) => scope.limit, 22, x, [64, 202], GREY),
    curve(run, rate, 22, x, [64, 202], BLUE),
  ])
}

/** Each picture by the name of its file. */
export const pictures = () => ({
  'pace.svg': pace(),
  'autothrottle.svg': autothrottle(),
  'backoff.svg': backoff(),
  'retry-after.svg': hints(),
  'rampup.svg': rampup(),
  'race.svg': raceFilm(race(simulate)),
})

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, text] of Object.entries(pictures())) writeFileSync(`${root}/docs/images/${name}`, text)
}
