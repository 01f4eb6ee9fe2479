/** A picture of a run as SVG, by hand: lines over time, each in a band of its own with its own scale. */

/** One line. */
export interface Line {
  readonly name: string
  readonly unit: string
  readonly color: string
  readonly points: readonly (readonly [at: number, value: number])[]
}

const WIDTH = 900
const BAND = 130
const LEFT = 70
const GAP = 34

export function plot(title: string, lines: readonly Line[]): string {
  const end = Math.max(1, ...lines.flatMap(({ points }) => points.map(([at]) => at)))
  const height = GAP + lines.length * (BAND + GAP) + 20
  const bands = lines.map((line, index) => band(line, GAP + index * (BAND + GAP), end))
  const bottom = height - 12
  const marks = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const x = LEFT + share * (WIDTH - LEFT - 20)
    return `<text x="${x}" y="${bottom}" text-anchor="middle">${seconds(share * end)}</text>`
  })
  const style = 'font:12px system-ui,sans-serif;fill:#444'
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>${escaped(title)}</title><rect width="100%" height="100%" fill="#fff"/><g style="${style}">
<text x="${LEFT}" y="18" style="font-weight:600">${escaped(title)}</text>
${[...bands, ...marks].join('\n')}
</g></svg>
`
}

function band({ name, unit, color, points }: Line, top: number, end: number): string {
  const most = points.reduce((most, [, value]) => Math.max(most, value), 0) || 1
  const place = ([at, value]: readonly [number, number]) => {
    const x = LEFT + (at / end) * (WIDTH - LEFT - 20)
    return `${x.toFixed(1)},${(top + BAND - (value / most) * (BAND - 16)).toFixed(1)}`
  }
  return [
    `<line x1="${LEFT}" y1="${top + BAND}" x2="${WIDTH - 20}" y2="${top + BAND}" stroke="#bbb"/>`,
    `<text x="${LEFT - 8}" y="${top + 20}" text-anchor="end">${rounded(most)}</text>`,
    `<text x="${LEFT - 8}" y="${top + BAND}" text-anchor="end">0</text>`,
    `<text x="${LEFT + 6}" y="${top + 8}" fill="${color}">${escaped(name)}, ${escaped(unit)}</text>`,
    `<polyline fill="none" stroke="${color}" stroke-width="1.5" points="${points.map(place).join(' ')}"/>`,
  ].join('')
}

export const rounded = (value: number): string =>
  value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)))

/** A span of seconds in words that fit. */
export function seconds(value: number): string {
  if (!Number.isFinite(value)) return '–'
  if (value < 120) return `${Math.round(value)} s`
  if (value < 7200) return `${Math.round(value / 60)} min`
  return `${(value / 3600).toFixed(1)} h`
}

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

// Values over time as bars of text: a line of them, or a small chart with its scale and its times.

const BARS = '▁▂▃▄▅▆▇█'
const FULL = BARS.length

/** Values as bars, the newest at the right. */
export function sparkline(values: readonly number[], room: number): string {
  const shown = values.slice(-room)
  const most = Math.max(...shown, 0)
  if (shown.length === 0) return ''
  const bar = (value: number) => BARS[most > 0 ? Math.round((value / most) * (FULL - 1)) : 0]!
  return `${shown.map(bar).join('')} ${rounded(shown.at(-1)!)}`
}

/** How a chart is drawn. */
export interface ChartOptions {
  /** Rows of bars. */
  readonly height: number
  /** Seconds that the values span. */
  readonly span: number
  /** For terminals that know letters only. */
  readonly isPlain: boolean
}

/**
 * A chart of `values`, a column each: the most and 0 at its left, times below. Where `marks` has a value
 * above 0, a row of them stands under the bars.
 */
export function chart(
  values: readonly number[],
  marks: readonly number[],
  { height, span, isPlain }: ChartOptions,
): { bars: string[]; marks: string; times: string } {
  const most = Math.max(...values, 0) || 1
  const label = (text: string) => text.padStart(7)
  const [edge, corner, line] = isPlain ? ['|', '+', '-'] : ['│', '└', '─']
  const rows = Array.from({ length: height }, (_, index) => {
    const below = height - 1 - index
    const cells = values.map((value) => cell((value / most) * height - below, isPlain))
    return `${label(index === 0 ? rounded(most) : '')} ${edge}${cells.join('')}`
  })
  const under = marks.map((count) => (count > 0 ? (isPlain ? 'x' : '×') : ' ')).join('')
  const [start, middle, end] = [0, span / 2, span].map(seconds) as [string, string, string]
  const half = start.padEnd(Math.floor(values.length / 2)) + middle
  const room = values.length - end.length
  const times = (half.length < room ? half : start).padEnd(room) + end
  return {
    bars: [...rows, `${label('0')} ${corner}${line!.repeat(values.length)}`],
    marks: under.trim() === '' ? '' : `${label('refused')}  ${under}`.trimEnd(),
    times: `${label('')}  ${times}`,
  }
}

/** A cell that is filled so far, from 0 for empty to 1. */
function cell(filled: number, isPlain: boolean): string {
  if (isPlain) return filled >= 0.5 ? '#' : ' '
  if (filled <= 0) return ' '
  return BARS[Math.min(FULL, Math.max(1, Math.round(filled * FULL))) - 1]!
}
