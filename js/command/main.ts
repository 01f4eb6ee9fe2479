/** `autothrottle-cli`: which command, what it says at its end, and the code that it ends with. */
import { writeFileSync } from 'node:fs'
import { build, ConfigError, SnapshotError } from 'autothrottle'
import { crawl } from './crawl.js'
import { messageOf } from './failures.js'
import { get } from './get.js'
import { plot, rounded } from './plot.js'
import { presets } from './presets.js'
import { robots } from './robots.js'
import type { Run } from './run.js'
import { UsageError } from './settings.js'
import { simulate } from './simulate.js'
import { json, print, say } from './terminal.js'
import { ArgumentError, type Command, HELP, nearest, readArguments } from './usage.mjs'
import { counted } from './view.js'

const PROGRAM = 'autothrottle-cli'
/** Exit codes, as `--help` says them. */
const DONE = 0
const NOTHING = 1
const WRONG_USAGE = 2
const SOME_FAILED = 3
/** A run that saw no other answer has failed. */
const REFUSALS = new Set([401, 403, 407, 429, 451, 503])
const SIGNALS: Record<string, number> = { SIGINT: 130, SIGTERM: 143 }

/** Runs a command, and gives its exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const [command = '', ...rest] = args
  if (command === '--version') return answer(`${build.version}\n`)
  if (['', '--help', '-h', 'help'].includes(command)) return answer(HELP[''])
  if (!Object.hasOwn(HELP, command)) {
    const meant = nearest(command, Object.keys(HELP))
    const hint = meant === undefined ? '' : `: did you mean ${meant}?`
    return explain(`there is no command ${JSON.stringify(command)}${hint}`, '')
  }
  const name = command as Command
  try {
    const { positionals, values } = readArguments(name, rest)
    if (values.help === true) return answer(HELP[name])
    if (name === 'simulate') simulate(positionals, values)
    if (name === 'presets') presets(positionals, values)
    if (name === 'robots') return (await robots(positionals, values)) ? DONE : SOME_FAILED
    if (name === 'crawl') return finish(await crawl(positionals, values))
    if (name === 'get') return finish(await get(positionals, values))
    return DONE
  } catch (error) {
    if (isUsage(error)) return explain((error as Error).message, name)
    say(`${PROGRAM} ${name}: ${messageOf(error)}\n`)
    return NOTHING
  }
}

function answer(text: string): number {
  print(text)
  return DONE
}

function explain(problem: string, command: keyof typeof HELP): number {
  const about = command === '' ? PROGRAM : `${PROGRAM} ${command}`
  say(`${problem}\n\n${about} --help tells more\n`)
  return WRONG_USAGE
}

function isUsage(error: unknown): boolean {
  return [ArgumentError, UsageError, ConfigError, SnapshotError].some((Kind) => error instanceof Kind)
}

/** The summary, the picture, the code. */
function finish(run: Run): number {
  const { totals, settings, stopped } = run
  const took = (Date.now() - run.startedAt) / 1000
  if (settings.plot !== undefined) writeFileSync(settings.plot, plotOf(run, took))
  const why =
    stopped === 'enough' ? 'as many as asked for' : stopped === undefined ? 'no URL is left' : 'stopped'
  const statuses = [...totals.statuses].sort(([a], [b]) => a - b)
  if (settings.isJson) {
    const summary = {
      ...totals,
      statuses: Object.fromEntries(statuses),
      seconds: took,
      why,
      left: run.frontier.pending,
    }
    say(`${json({ summary })}\n`)
  } else if (!settings.isQuiet) say(`\n${summaryOf(run, took, why, statuses)}`)
  if (stopped !== undefined && stopped in SIGNALS) return SIGNALS[stopped]!
  const wasAnswered = [...totals.statuses.keys()].some((status) => status < 500)
  if (totals.failed + totals.stalled > 0) return wasAnswered ? SOME_FAILED : NOTHING
  const isRefusedOnly = statuses.length > 0 && statuses.every(([status]) => REFUSALS.has(status))
  return totals.pages === 0 && (totals.disallowed > 0 || isRefusedOnly) ? NOTHING : DONE
}

/** Rows of a word and what it is about. */
function summaryOf(
  { totals, settings, stopped, frontier }: Run,
  took: number,
  why: string,
  statuses: readonly (readonly [number, number])[],
): string {
  const { pages, bytes, requests, refused, disallowed, failed, stalled } = totals
  const answers = statuses.map(([status, times]) => `${status} × ${times}`).join(', ')
  const rows: [string, string][] = [
    ['rate', `${rounded(pages / took)} pages per second`],
    ['requests', `${requests}, with robots.txt and what was sent again`],
    ['answers', answers || 'none'],
    ['refused', String(refused)],
    ['disallowed', String(disallowed)],
    ['failed', String(failed)],
  ]
  if (stalled > 0) rows.push(['left alone', `${stalled}: the same command tries them again`])
  const isKept = settings.state !== undefined
  if (stopped !== undefined && (isKept || stopped in SIGNALS))
    rows.push(['left', `${frontier.pending}: ${isKept ? '' : 'with --state FILE '}the same command goes on`])
  const kept = bytes < 1e6 ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
  const size = `${kept} in ${took.toFixed(1)} s`
  const lines = rows.map(([word, figures]) => `${word.padEnd(12)}${figures}\n`)
  return `${counted(pages, 'page')}, ${size} (${why})\n${lines.join('')}`
}

/** Rate, refusals and delay over time. */
function plotOf({ totals, series }: Run, took: number): string {
  const of = (name: string, unit: string, color: string, key: 'rate' | 'refused' | 'delayMs') => ({
    name,
    unit,
    color,
    points: series.points.map((point) => [point.at, point[key]] as const),
  })
  return plot(`${counted(totals.pages, 'page')} in ${rounded(took)} s`, [
    of('answers', 'a second', '#1f77b4', 'rate'),
    of('refused', 'a second', '#d62728', 'refused'),
    of('delay of the busiest host', 'ms', '#2ca02c', 'delayMs'),
  ])
}
