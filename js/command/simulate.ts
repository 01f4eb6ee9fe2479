/** `autothrottle simulate`: what options would do to a server, in virtual time, as figures and a picture. */
import { writeFileSync } from 'node:fs'
import {
  simulate as run,
  type SimulationOptions,
  type SimulationSummary,
  type SimulationTrace,
} from 'autothrottle/simulate'
import { type Line, plot, rounded, seconds } from './plot.js'
import { readJson, UsageError } from './settings.js'
import type { Values } from './usage.mjs'
import { counted, sparkline } from './view.js'

export function simulate(files: readonly string[], values: Values): void {
  const [file] = files
  if (file === undefined || files.length > 1)
    throw new UsageError(`simulate: want one file, or - for standard input; got ${files.length}`)
  const options = readJson(file, 'simulate') as SimulationOptions
  const { summary, trace } = run(options)
  if (typeof values.plot === 'string') writeFileSync(values.plot, plot(`simulate ${file}`, linesOf(trace)))
  if (values.json === true) return void process.stdout.write(`${JSON.stringify(summary)}\n`)
  process.stdout.write(inWords(summary, trace))
}

/** The figures with their units, and what was sent over time. */
function inWords(summary: SimulationSummary, trace: SimulationTrace): string {
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
  // The last span may have hardly begun.
  const points = linesOf(trace)[0]?.points.slice(0, -1) ?? []
  const most = 60
  const every = Math.max(1, Math.ceil(points.length / most))
  const rates = Array.from({ length: Math.ceil(points.length / every) }, (_, at) => {
    const part = points.slice(at * every, (at + 1) * every)
    return part.reduce((sum, [, rate]) => sum + rate, 0) / part.length
  })
  rows.push(['rate', `${sparkline(rates, most)} requests per second at the end`])
  return rows.map(([word, figures]) => `${word.padEnd(14)}${figures}\n`).join('')
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
