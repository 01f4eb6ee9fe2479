/** Values over time as bars of text: a line of them, or a small chart with its scale and its times. */
import { rounded, seconds } from './plot.js'

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
