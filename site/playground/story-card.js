/** A picture of what the playground shows: the rate over time below the limit, and what came of it. */
import { ACROSS, fixed, LEFT, paragraph, sheet, THEMES, WIDTH, word } from './card.js'
import { figuresOf, inWords, linesOf } from './figures.js'
import { clock } from './words.js'

const CHART = { top: 250, bottom: 500 }

/** `title` and `about` stand above; `theme` is `light` or `dark`. */
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
