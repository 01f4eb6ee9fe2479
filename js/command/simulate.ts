/** `autothrottle-cli simulate`: what options would do to a server in virtual time. */
import { writeFileSync } from 'node:fs'
import {
  simulate as run,
  type SimulationOptions,
  type SimulationSummary,
  type SimulationTrace,
} from 'autothrottle/simulate'
import { chart, type Line, plot, rounded, seconds } from './plot.js'
import { readJson, UsageError } from './settings.js'
import type { Values } from './usage.mjs'
import { counted } from './view.js'

export function simulate(files: readonly string[], values: Values): void {
  const [file] = files
  if (file === undefined || files.length > 1)
    throw new UsageError(`simulate: want one file, or - for standard input; got ${files.length}`)
  const options = readJson(file, 'simulate') as SimulationOptions
  const { summary, trace } = run(options)
  if (typeof values.plot === 'string') writeFileSync(values.plot, plot(`simulate ${file}`, linesOf(trace)))
  if (values.json === true) return void process.stdout.write(`${JSON.stringify(summary)}\n`)
  process.stdout.write(`${inWords(summary)}\n${picture(trace)}`)
}

/** The figures with their units. */
function inWords(summary: SimulationSummary): string {
  const { sent, served, refused, shareRefused, failed, utilisation, refusalsPerMinute } = summary
  const { reachedMs, regainedMs, burst, fairness, latencyMs } = summary
  const percent = (share: number) => `${rounded(share * 100)} %`
  const rows: [string, string][] = [
    ['sent', counted(sent, 'request')],
    ['served', `${served}, in ${rounded(latencyMs)} ms on average`],
    ['refused', `${refused}, ${percent(shareRefused)} of what was sent`],
    ['failed', `${failed} otherwise`],
    ['settled at', `${percent(utilisation)} of what the limit allows`],
    ['then refused', `${rounded(refusalsPerMinute)} per minute`],
    ['limit found', reachedMs === null ? 'never' : `after ${seconds(reachedMs / 1000)}`],
    ...(regainedMs === null
      ? []
      : [['found again', `after ${seconds(regainedMs / 1000)}`] as [string, string]]),
    ['burst', `${rounded(burst)} requests at once, on top of the limit's rate`],
    ['fairness', `${rounded(fairness)} between clients (1 is even)`],
  ]
  return rows.map(([word, figures]) => `${word.padEnd(14)}${figures}\n`).join('')
}

/** Sends over time, and refusals, in as many columns as the terminal has. */
function picture({ sent, status }: SimulationTrace): string {
  const { stdout } = process
  const isPlain = process.env.TERM === 'dumb'
  const isColored = stdout.isTTY === true && !isPlain && !process.env.NO_COLOR
  // A terminal that does not know its size says 0.
  const columns = Math.max(10, Math.min(100, (stdout.columns || 80) - 12))
  const span = Math.max(1, (sent.at(-1) ?? 0) / 1000)
  const [sends, refusals] = [new Array<number>(columns).fill(0), new Array<number>(columns).fill(0)]
  sent.forEach((at, index) => {
    const column = Math.min(columns - 1, Math.floor((at / 1000 / span) * columns))
    sends[column]!++
    if (!(status[index]! >= 200 && status[index]! < 400)) refusals[column]!++
  })
  const rates = sends.map((number) => number / (span / columns))
  const { bars, marks, times } = chart(rates, refusals, { height: 6, span, isPlain })
  const red = isColored ? `\x1b[31m${marks}\x1b[0m` : marks
  return [
    `requests per second, ${rounded(span / columns)} s a column`,
    ...bars,
    ...(marks ? [red] : []),
    times,
    '',
  ].join('\n')
}

/** Sends and refusals a second, over time. */
function linesOf({ sent, status }: SimulationTrace): Line[] {
  const count = (instants: Float64Array): (readonly [number, number])[] => {
    const all = Array.from(instants, (ms) => ms / 1000)
    const end = all.reduce((last, at) => Math.max(last, at), 1)
    const step = Math.max(1, end / 300)
    const counts = new Array<number>(Math.ceil(end / step) + 1).fill(0)
    for (const at of all) counts[Math.floor(at / step)]!++
    return counts.map((number, index) => [index * step, number / step] as const)
  }
  return [
    { name: 'sent', unit: 'a second', color: '#1f77b4', points: count(sent) },
    {
      name: 'refused',
      unit: 'a second',
      color: '#d62728',
      points: count(sent.filter((_, index) => !(status[index]! >= 200 && status[index]! < 400))),
    },
  ]
}
