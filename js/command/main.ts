/** `autothrottle`: which command, what it says at its end, and the code that it ends with. */
import { writeFileSync } from 'node:fs'
import { build, ConfigError, SnapshotError } from 'autothrottle'
import { crawl } from './crawl.js'
import { get } from './get.js'
import { plot, rounded } from './plot.js'
import { robots } from './robots.js'
import { messageOf, type Run } from './run.js'
import { UsageError } from './settings.js'
import { simulate } from './simulate.js'
import { type Command, HELP, readArguments } from './usage.mjs'

/** Exit codes, as `--help` says them. */
const DONE = 0
const NOTHING = 1
const WRONG_USAGE = 2
const SOME_FAILED = 3
const SIGNALS: Record<string, number> = { SIGINT: 130, SIGTERM: 143 }

/** Runs a command, and gives its exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const [command = '', ...rest] = args
  if (command === '--version') return print(`${build.version}\n`)
  if (['', '--help', '-h', 'help'].includes(command))
    return command === '' ? explain('want a command', '') : print(HELP[''])
  if (!Object.hasOwn(HELP, command)) return explain(`there is no command ${JSON.stringify(command)}`, '')
  const name = command as Command
  try {
    const { positionals, values } = readArguments(name, rest)
    if (values.help === true) return print(HELP[name])
    if (name === 'simulate') simulate(positionals, values)
    if (name === 'robots') return (await robots(positionals, values)) ? DONE : SOME_FAILED
    if (name === 'crawl') return finish(await crawl(positionals, values))
    if (name === 'get') return finish(await get(positionals, values))
    return DONE
  } catch (error) {
    if (isUsage(error)) return explain((error as Error).message, name)
    process.stderr.write(`autothrottle ${name}: ${messageOf(error)}\n`)
    return NOTHING
  }
}

function print(text: string): number {
  process.stdout.write(text)
  return DONE
}

function explain(problem: string, command: keyof typeof HELP): number {
  const about = command === '' ? 'autothrottle' : `autothrottle ${command}`
  process.stderr.write(`${problem}\n\nautothrottle: ${about} --help tells more\n`)
  return WRONG_USAGE
}

function isUsage(error: unknown): boolean {
  const { code } = error as { code?: string }
  const isOurs = [UsageError, ConfigError, SnapshotError].some((Kind) => error instanceof Kind)
  return isOurs || code?.startsWith('ERR_PARSE_ARGS') === true
}

/** The summary, the picture, the code. */
function finish(run: Run): number {
  const { totals, settings, stopped, series } = run
  const seconds = (Date.now() - run.startedAt) / 1000
  if (settings.plot !== undefined) {
    const of = (name: string, unit: string, color: string, key: 'rate' | 'refused' | 'delayMs') => ({
      name,
      unit,
      color,
      points: series.points.map((point) => [point.at, point[key]] as const),
    })
    const lines = [
      of('answers', 'a second', '#1f77b4', 'rate'),
      of('refused', 'a second', '#d62728', 'refused'),
      of('delay of the busiest host', 'ms', '#2ca02c', 'delayMs'),
    ]
    writeFileSync(settings.plot, plot(`${totals.pages} pages in ${rounded(seconds)} s`, lines))
  }
  const why =
    stopped === 'enough' ? 'as many as asked for' : stopped === undefined ? 'nothing left' : 'stopped'
  const statuses = [...totals.statuses].sort(([a], [b]) => a - b)
  if (settings.isJson) {
    const { statuses: _, ...counts } = totals
    const summary = {
      ...counts,
      statuses: Object.fromEntries(statuses),
      seconds,
      why,
      left: run.frontier.pending,
    }
    process.stderr.write(`${JSON.stringify({ summary })}\n`)
  } else if (!settings.isQuiet) {
    const answers = statuses.map(([status, times]) => `${status} × ${times}`).join(', ')
    const size = (totals.bytes / 1e6).toFixed(1)
    const lines = [
      `\n${totals.pages} pages, ${size} MB in ${seconds.toFixed(1)} s (${why})`,
      `rate        ${rounded(totals.pages / seconds)} pages/s`,
      `answers     ${answers || 'none'}`,
      `refused     ${totals.refused}`,
      `disallowed  ${totals.disallowed}`,
      `failed      ${totals.failed}`,
      ...(totals.stalled > 0 ? [`left alone  ${totals.stalled}: their hosts answered only badly`] : []),
      ...(stopped !== undefined && settings.state !== undefined
        ? [`left        ${run.frontier.pending}: the same command goes on`]
        : []),
    ]
    process.stderr.write(`${lines.join('\n')}\n`)
  }
  if (stopped !== undefined && stopped in SIGNALS) return SIGNALS[stopped]!
  const wasAnswered = [...totals.statuses.keys()].some((status) => status < 500)
  if (totals.failed + totals.stalled > 0) return wasAnswered ? SOME_FAILED : NOTHING
  return totals.disallowed > 0 && totals.pages === 0 ? NOTHING : DONE
}
