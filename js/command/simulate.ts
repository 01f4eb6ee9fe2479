/** `autothrottle simulate`: what options would do to a server, in virtual time, as figures and a picture. */
import { writeFileSync } from 'node:fs'
import { simulate as run, type SimulationOptions, type SimulationTrace } from 'autothrottle/simulate'
import { type Line, plot, rounded } from './plot.js'
import { readJson, UsageError } from './settings.js'
import type { Values } from './usage.mjs'

export function simulate(files: readonly string[], values: Values): void {
  const [file] = files
  if (file === undefined || files.length > 1)
    throw new UsageError(`simulate: want one file, or - for standard input; got ${files.length}`)
  const options = readJson(file, 'simulate') as SimulationOptions
  const { summary, trace } = run(options)
  if (typeof values.plot === 'string') writeFileSync(values.plot, plot(`simulate ${file}`, linesOf(trace)))
  if (values.json === true) return void process.stdout.write(`${JSON.stringify(summary)}\n`)
  const rows = Object.entries(summary).filter(([, value]) => typeof value === 'number')
  const width = Math.max(...rows.map(([name]) => name.length))
  for (const [name, value] of rows)
    process.stdout.write(`${name.padEnd(width)}  ${rounded(value as number)}\n`)
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
