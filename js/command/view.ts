/**
 * The display of a run: a picture that is drawn over on a terminal, a line every other second in a pipe, a
 * line of JSON with `--json`. On standard error, so that standard output is for results. Only the hosts that
 * it shows are asked for.
 */
import { stripVTControlCharacters } from 'node:util'
import type { ScopeStats } from 'autothrottle'
import { toUrl } from '../scopes/names.js'
import type { Host } from './frontier.js'
import { rounded, seconds, sparkline } from './plot.js'
import type { Run } from './run.js'
import { json, say } from './terminal.js'

export interface View {
  /** Draws once more, and stops. */
  end(): void
}

/** A host as it is shown. */
export interface ShownHost {
  readonly name: string
  readonly done: number
  readonly left: number
  readonly rate: number
  readonly delayMs: number
  readonly why: string
  /** It waits because of what the host has answered. */
  readonly isSlowed: boolean
  /** Seconds until its queue is empty, as things stand. */
  readonly eta: number
  readonly current: string
}

/** Everything that is shown. */
export interface Shown {
  readonly seconds: number
  readonly pages: number
  readonly rate: number
  readonly inFlight: number
  readonly left: number
  readonly refused: number
  readonly failed: number
  readonly eta: number
  readonly rates: readonly number[]
  readonly delays: readonly number[]
  readonly hosts: readonly ShownHost[]
  readonly more: number
}

const HOSTS = 8

export function startView(run: Run): View {
  const { isJson, isQuiet } = run.settings
  // A dumb terminal knows no way back up: it gets lines, as a pipe does.
  const isTerminal = process.stderr.isTTY === true && !isJson && process.env.TERM !== 'dumb'
  const isColored = isTerminal && !process.env.NO_COLOR
  let drawn = 0
  let shownAt = 0
  const draw = (isLast: boolean) => {
    const now = Date.now()
    const shown = look(run, now)
    run.series.sample(now, shown.hosts[0]?.delayMs ?? 0)
    run.tick(now)
    if (isQuiet) return
    if (isTerminal) {
      // A terminal that does not know its size (a serial line, a container) says 0.
      const lines = frame(shown, process.stderr.columns || 80, isColored)
      const up = drawn > 0 ? `\x1b[${drawn}A` : ''
      process.stderr.write(`${up}\r\x1b[J${lines.join('\n')}\n`)
      drawn = lines.length
      return
    }
    if (!isLast && now - shownAt < 2000) return
    shownAt = now
    say(isJson ? `${json({ progress: shown })}\n` : `${plainLine(shown)}\n`)
  }
  run.say = (problem) => {
    if (drawn > 0) process.stderr.write(`\x1b[${drawn}A\r\x1b[J`)
    say(isJson ? `${json({ problem })}\n` : `${problem}\n`)
    drawn = 0
  }
  const timer = setInterval(() => draw(false), isTerminal ? 200 : 500)
  return {
    end: () => {
      clearInterval(timer)
      draw(true)
    },
  }
}

/** The picture of this moment. */
function look(run: Run, now: number): Shown {
  const { frontier, throttle, totals, series, startedAt } = run
  const hosts = [...frontier.hosts.values()]
    .filter(({ pending, waiting, current }) => pending + waiting > 0 || current !== '')
    .sort((a, b) => b.pending + b.waiting - a.pending - a.waiting)
  const { left } = run
  const shown = hosts
    .slice(0, HOSTS)
    .map((host) => shownHost(host, left, throttle.scope(host.name).stats, throttle.now()))
  const { recent } = series
  const last = recent.slice(-10)
  const rate = last.length > 0 ? last.reduce((sum, point) => sum + point.rate, 0) / last.length : 0
  return {
    seconds: (now - startedAt) / 1000,
    pages: totals.pages,
    rate,
    inFlight: run.inFlight,
    left,
    refused: totals.refused,
    failed: totals.failed,
    eta: shown.reduce((longest, { eta }) => Math.max(longest, eta), 0),
    rates: recent.map((point) => point.rate),
    delays: recent.map((point) => point.delayMs),
    hosts: shown,
    more: Math.max(0, hosts.length - HOSTS),
  }
}

function shownHost(host: Host, most: number, stats: ScopeStats, now: number): ShownHost {
  const { name, done, pending, waiting, current } = host
  const left = pending + waiting
  const delayMs = Math.max(stats.delayMs, stats.backoffMs)
  const held = Math.max(0, (stats.holdUntil ?? now) - now) / 1000
  const until = held > 0 ? ` ${seconds(held)}` : ''
  const reason = host.givenUp ? 'left alone' : (stats.reason ?? (stats.inFlight > 0 ? 'in flight' : ''))
  const step = stats.backoffStep > 0 ? `step ${stats.backoffStep}` : ''
  const gapMs = gapOf(host, stats, delayMs)
  return {
    name,
    done,
    left,
    rate: stats.rate ?? (host.gapMs > 0 ? 1000 / host.gapMs : 0),
    delayMs,
    why: [`${reason}${until}`, step].filter(Boolean).join(', '),
    isSlowed: stats.backoffStep > 0 || held > 0 || host.givenUp !== undefined,
    eta: host.givenUp ? 0 : held + (Math.min(left, most) * gapMs) / 1000,
    current,
  }
}

/**
 * The gap that the delay and the slots allow now; where another limit binds, the gaps between the last sends.
 */
export function gapOf({ latencyMs, gapMs }: Host, { slots, reason }: ScopeStats, delayMs: number): number {
  const allowed = Math.max(delayMs, latencyMs / Math.max(1, slots))
  const isKnown = reason === undefined || ['delay', 'backoff', 'concurrency', 'hold'].includes(reason)
  return isKnown ? allowed : Math.max(allowed, gapMs)
}

/** The picture: pure, so that tests see it. */
export function frame(shown: Shown, width: number, isColored: boolean): string[] {
  const code = (digits: number) => (text: string) => (isColored ? `\x1b[${digits}m${text}\x1b[0m` : text)
  const [bold, dim, red, yellow] = [code(1), code(2), code(31), code(33)]
  const figures = [
    bold(counted(shown.pages, 'page')),
    `${figure(shown.rate)}/s`,
    `${shown.inFlight} in flight`,
    `${shown.left} left`,
    ...(shown.left > 0 ? [`ETA ${seconds(shown.eta)}`] : []),
    ...(shown.refused > 0 ? [red(`${shown.refused} refused`)] : []),
    ...(shown.failed > 0 ? [red(`${shown.failed} failed`)] : []),
  ]
  const bars = Math.max(8, Math.min(60, Math.floor((width - 52) / 2)))
  const lines = [
    figures.join('  '),
    `${dim('rate')} ${sparkline(shown.rates, bars)}/s  ${dim('busiest host’s delay')} ${sparkline(shown.delays, bars)} ms`,
  ]
  if (shown.hosts.length > 0) lines.push(...table(shown.hosts, width, { dim, yellow }))
  if (shown.more > 0) lines.push(dim(`and ${counted(shown.more, 'more host')}`))
  return lines.map((line) => cut(line, width - 1))
}

type Paint = (text: string) => string

/** A row for each host; why it waits and what was sent last take the room that is left. */
function table(hosts: readonly ShownHost[], width: number, { dim, yellow }: Record<'dim' | 'yellow', Paint>) {
  const rows = hosts.map(({ name, done, left, rate, delayMs, eta }) => [
    name,
    String(done),
    String(left),
    `${figure(rate)}/s`,
    `${Math.round(delayMs)} ms`,
    left > 0 ? seconds(eta) : '',
  ])
  const titles = ['host', 'done', 'left', 'rate', 'delay', 'ETA']
  const most = width < 100 ? 22 : 30
  const widths = titles.map((title, at) =>
    Math.max(title.length, ...rows.map((row) => Math.min(most, row[at]!.length))),
  )
  const aligned = (cells: readonly string[]) =>
    cells.map((cell, at) =>
      at === 0 ? cut(cell, widths[0]!).padEnd(widths[0]!) : cell.padStart(widths[at]!),
    )
  const reasons = Math.max(3, ...hosts.map(({ why }) => why.length))
  const last = (why: string, url: string) => `${why.padEnd(reasons)}  ${dim(url)}`
  return [
    dim([...aligned(titles), 'why'].join('  ')),
    ...rows.map((row, index) => {
      const { why, isSlowed, current } = hosts[index]!
      const [name, ...rest] = aligned(row)
      const shownName = isSlowed ? yellow(name!) : name
      return [shownName, ...rest, last(why, pathOf(current))].join('  ').trimEnd()
    }),
  ]
}

/** A rate in a column: two decimals, of larger ones fewer. */
const figure = (rate: number) => rate.toFixed(rate < 9.995 ? 2 : rate < 99.95 ? 1 : 0)

/** `1 page`, `2 pages`. */
export const counted = (number: number, noun: string) => `${number} ${noun}${number === 1 ? '' : 's'}`

/** One line for a pipe. */
export function plainLine({ pages, rate, inFlight, left, refused, failed, hosts, eta }: Shown): string {
  const [busiest] = hosts
  const why = busiest?.why ? ` (${busiest.name}: ${busiest.why})` : ''
  const pace = `${counted(pages, 'page')}  ${rounded(rate)}/s  delay ${Math.round(busiest?.delayMs ?? 0)} ms`
  const rest = `ETA ${seconds(eta)}  ${refused} refused  ${failed} failed`
  return `${pace}  ${inFlight} in flight  ${left} left${why}  ${rest}`
}

/** Cuts what is seen, and leaves the colours alone: also those of a line that is cut. */
function cut(line: string, width: number): string {
  if (width <= 0) return ''
  if (stripVTControlCharacters(line).length <= width) return line
  let left = Math.max(0, width - 1)
  const parts = line.split(COLOUR).map((part, index) => {
    if (index % 2 === 1) return part
    const shown = part.slice(0, left)
    left -= shown.length
    return shown
  })
  return `${parts.join('')}…`
}

/** A colour, as `frame` writes them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: a command for a terminal begins with one
const COLOUR = /(\x1b\[\d+m)/

function pathOf(url: string): string {
  const { pathname, search } = toUrl(url) ?? { pathname: url, search: '' }
  return pathname + search
}
