/**
 * The engine itself, for people with a loop of their own: no timers, no promises, no clock.
 *
 * Every mutation (`submit`, `settle`, `cancel`, `configure`, the passing of time) is followed by `poll`
 * until it stops giving tickets. `wakeAt` is a hint: polling early, late or twice is harmless.
 *
 * ```ts
 * const engine = new Engine({ defaults: { delay: 1000, jitter: false } })
 * const scope = engine.scope('example.com')
 * const ticket = engine.submit(0, [scope])
 * engine.poll(0) === ticket
 * engine.settle(80, ticket, { status: 200, latencyMs: 80 })
 * ```
 */
import {
  ConfigError,
  CostExceedsQuotaError,
  QueueFullError,
  SnapshotError,
  withProblems,
} from '../core/errors.js'
import { failureOfRequest } from '../fetch/failures.js'
import { shown } from '../options/checks.js'
import type { EngineOptions, HeaderMap, ScopeOptions } from '../options/options.js'
import { type HeadersLike, type Hints, hintLines, hintNumbers, type SomeHints, unitsOf } from './headers.js'
import { load, loadFunctions } from './load/load.js'

/** A request that was submitted, as a number. */
export type Ticket = number

/** Handle of a scope, as a number. */
export type ScopeHandle = number

/** What `poll` answers when nothing can be sent before `wakeAt`. */
export const WAIT = -1

/**
 * What `poll` answers when nothing will change by itself: nothing waits, or all that waits needs an answer.
 */
export const IDLE = -2

/** Why a request waits. */
export type Reason =
  | 'paused'
  | 'global'
  | 'concurrency'
  | 'delay'
  | 'backoff'
  | 'crawl-delay'
  | 'slot-delay'
  | 'hold'
  | 'quota'
  | 'request-delay'
  | 'rate'

/** What a request needs. */
export interface SubmitOptions {
  /**
   * Expected cost in units of the scopes' quotas: one for all, or one for each beside `scopes`. Default 1.
   */
  cost?: number | readonly number[]
  /** Higher is first, as in p-queue. Any finite number, default 0. */
  priority?: number
  /** The request's own delay in milliseconds, default 0. Scrapy's draft: `throttling_delay`. */
  delay?: number
}

/** What an answer means for one scope, where that is not the same for all of its request. */
export interface ScopeOutcome {
  /** The scope. */
  scope: ScopeHandle
  /**
   * True: the answer has nothing to do with it; its slots come back and nothing is learned. Default false.
   */
  ignored?: boolean
  /** Whether it is bad. Default: as the status says. */
  backoff?: boolean
  /** Milliseconds not to send. With this or `remaining` the headers are not heard. */
  delay?: number
  /** What it really cost here. */
  cost?: number
  /** Units left of the server's quota. */
  remaining?: number
  /** Milliseconds until all of it is there again. */
  resetMs?: number
}

/** How a request ended. Without `status` and `error` it says nothing. */
export interface Outcome {
  /** The status of the response, 100 to 599. */
  status?: number
  /**
   * Why no response came: a timeout, a failure of the connection. An abort by the caller is no failure and
   * teaches nothing.
   */
  error?: unknown
  /** The response's headers: what they ask for is kept. */
  headers?: HeadersLike
  /** How to read them, for servers with a dialect of their own. */
  headerMap?: HeaderMap
  /** Hints that were not in headers; they take the place of `headers`. */
  hints?: SomeHints
  /** Wall time now, for dates in responses without a `Date`. Default unknown: then they mean nothing. */
  wallNowMs?: number
  /** Whether the answer is bad, if you know better than the status and `backoff.httpCodes`. */
  backoff?: boolean
  /** What it means for single scopes of the request, where that is another thing. */
  scopes?: readonly ScopeOutcome[]
  /**
   * The request may be sent again: its method and body allow it, and there are attempts left. Whether it
   * is, and not before when, is decided by `retry.statusCodes`, `maxRetryAfter` and what the server asked.
   * Default false.
   */
  retry?: boolean
  /**
   * The request is sent again whatever it was: its ticket waits anew, keeps its age, and is not sent for so
   * many milliseconds.
   */
  retryDelay?: number
  /**
   * From send to response headers, in milliseconds. Unknown if left out: then AutoThrottle learns nothing.
   */
  latencyMs?: number
  /** What the request really cost, if that is not what was expected. */
  cost?: number
  /** False keeps AutoThrottle's delay as it is. Scrapy's `autothrottle_dont_adjust_delay` is the opposite. */
  adjustDelay?: boolean
}

/**
 * What became of a request: `over`; to be sent `again`, its ticket waits anew; over as the server asks for
 * a wait that is `too-long` (`retry.maxRetryAfter`); or the ticket was `unknown`, or not in flight, and
 * nothing has changed.
 */
export type Settled = 'unknown' | 'over' | 'again' | 'too-long'

const SETTLED: readonly Settled[] = ['unknown', 'over', 'again', 'too-long']

/** When a request could be sent as things stand. */
export interface Peek {
  /** Milliseconds of engine time; `Infinity` if that depends on an answer or a `resume`. */
  at: number
  /** Why not now. */
  reason: Reason | undefined
  /** Which scope says so; `undefined` for the whole throttle. */
  scope: string | undefined
}

/** One scope at one instant. */
export interface ScopeStats {
  /**
   * The delay before jitter, in milliseconds: backoff's if that is longer. With AutoThrottle its own, beside
   * backoff's.
   */
  delayMs: number
  /** The delay that backoff asks for, in milliseconds; 0 without. The longer one counts. */
  backoffMs: number
  /** Slots allowed. */
  slots: number
  /** Steps of backoff in force; 0 without. */
  backoffStep: number
  /** Requests in flight. */
  inFlight: number
  /** Requests that wait. */
  waiting: number
  /** Until when nothing is sent because of a hold, in milliseconds of engine time. */
  holdUntil: number | undefined
  /** What is left of the scarcest quota, in units. */
  quotaLeft: number | undefined
  /** Why the head of the line waits. */
  reason: Reason | undefined
  /** Whether the scope is paused. */
  paused: boolean
  /** Requests sent per second over the last minute. */
  rate: number
  /** Requests in flight on average over the last minute. */
  concurrency: number
  /**
   * The share of the last minute in which each limit kept the head of the line waiting; `elsewhere` are
   * limits of another scope and of the whole throttle. What is missing from 1 is time in which nobody
   * waited.
   */
  boundBy: Partial<Record<Reason | 'elsewhere', number>>
  /** A setting that has had no effect for five minutes of waiting, and why; `undefined` if there is none. */
  withoutEffect: string | undefined
}

/** How fast a scope may go after an answer. */
export interface Pace {
  /** Its name. */
  scope: string
  /** Its delay before jitter, in milliseconds. */
  delayMs: number
  /** Steps of backoff in force. */
  step: number
  /** Until when nothing is sent because of a hold, in milliseconds of engine time; absent without one. */
  holdUntil?: number
}

/** What an answer changed, a setting without effect, a scope that only answers badly. */
export type Notice =
  | { kind: 'no-effect'; scope: string; setting: string; path: string; why: string }
  | { kind: 'stall'; scope: string; forMs: number }
  | ({ kind: 'backoff' | 'recover' | 'delay' } & Pace)
  /** `askedMs`: what the server asked for, where `backoff.maxDelay` cut it. */
  | ({ kind: 'hold'; askedMs?: number } & Pace)
  | ({ kind: 'answer'; isBad: boolean; delayBeforeMs: number; inFlight: number } & Pace)

/** What a robots.txt changed: the scope keeps to it, has a pace of the user's own, or is not concerned. */
export type RobotsOutcome = 'applied' | 'overruled' | 'ignored'

const ROBOTS_OUTCOMES: readonly RobotsOutcome[] = ['applied', 'overruled', 'ignored']

/** Everything at one instant. */
export interface Stats {
  /** Requests that wait. */
  waiting: number
  /** Requests in flight. */
  inFlight: number
  /** Requests sent since the beginning. */
  sent: number
  /** Requests settled since the beginning. */
  settled: number
  /** Requests cancelled since the beginning. */
  cancelled: number
  /** Whether everything is paused. */
  paused: boolean
  /** Every scope that the engine knows, by name. */
  scopes: Record<string, ScopeStats>
}

/**
 * What was learned, as plain JSON. Treat it as a closed box: keep it, send it, give it back. Spans, not
 * instants, so that it is valid on a machine with another clock. Waiting requests are not part of it.
 */
export interface Snapshot {
  version: 1
  /** Wall time at which it was taken; the time until it is used counts. */
  wallMs?: number
  scopes: Record<string, object>
}

/** What `enter` answers for ticket 0 if that one waits. */
const WAITS = -16

/** What nobody knows, as the boundary has it. */
const UNKNOWN = Number.NaN
const NO_OUTCOME: Outcome = {}
const NO_HINTS = [UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN] as const

/** Bits of an outcome, beside those of `unitsOf`: see `flags` in `src/boundary/outcome.rs`. */
const KEEP_DELAY = 1
const MAY_RETRY = 2
const GOOD = 4
const BAD = 8
const HINTED = 16

/**
 * Decides when requests may be sent. Instants are milliseconds of a clock of yours that only goes forward.
 */
export class Engine {
  readonly #wasm
  readonly #reasons: readonly string[]

  /** @throws {ConfigError} listing every problem of the options. */
  constructor(options: EngineOptions = {}) {
    const WasmEngine = load()
    this.#reasons = WasmEngine.reasons()
    this.#wasm = withProblems(ConfigError, () => new WasmEngine(options))
  }

  /** The handle of a scope, made on first use and good until it is released. */
  scope(name: string): ScopeHandle {
    if (typeof name !== 'string') throw new TypeError(`scope: want a name; got ${shown(name)}`)
    return this.#wasm.scope(name)
  }

  /**
   * Gives a handle of `scope` back: when the scope looks like new, or beyond `maxScopes`, it may be
   * forgotten.
   */
  release(scope: ScopeHandle): void {
    this.#wasm.release(scope)
  }

  /** How many scopes the engine knows. */
  get scopes(): number {
    return this.#wasm.scopes()
  }

  /** The handle of a scope, or -1. Makes none. */
  find(name: string): ScopeHandle {
    return this.#wasm.find(name)
  }

  /** @internal A handle that may be forgotten when its scope is idle. */
  intern(name: string): ScopeHandle {
    return this.#wasm.intern(name)
  }

  /**
   * @internal Whether the handle still means what it meant; if so, its scope stays at least until the next
   * poll.
   */
  keepAlive(scope: ScopeHandle): boolean {
    return this.#wasm.keep_alive(scope)
  }

  /**
   * Takes a request in. It waits, also if it could leave at once: `poll` says when.
   *
   * @throws {CostExceedsQuotaError} if it could never be sent.
   * @throws {QueueFullError} if `maxWaiting` requests wait already.
   * @throws {TypeError} for unknown scopes and for numbers that are none.
   */
  submit(nowMs: number, scopes: readonly ScopeHandle[], options: SubmitOptions = {}): Ticket {
    const { cost = 1, priority = 0, delay = 0 } = options
    if (typeof nowMs !== 'number' || typeof priority !== 'number' || typeof delay !== 'number') {
      throw new TypeError('nowMs, priority and delay must be numbers')
    }
    const ticket =
      scopes.length === 1 && typeof scopes[0] === 'number' && typeof cost === 'number'
        ? this.#wasm.submit(nowMs, scopes[0], cost, priority, delay)
        : this.#wasm.submit_many(nowMs, numbers('scopes', scopes), costsOf(cost), priority, delay)
    return ticket >= 0 ? ticket : this.#refused(ticket)
  }

  /**
   * `submit` and the first `poll` in one, where nobody waits and nothing keeps the request: a ticket to
   * send now, or {@link WAIT} if it must be submitted. Then nothing has changed. With no one waiting there
   * is nothing to poll.
   *
   * @throws as `submit` does.
   */
  sendAtOnce(
    nowMs: number,
    scopes: readonly ScopeHandle[],
    options: Omit<SubmitOptions, 'delay'> = {},
  ): Ticket {
    const { cost = 1, priority = 0 } = options
    if (typeof nowMs !== 'number' || typeof priority !== 'number') {
      throw new TypeError('nowMs and priority must be numbers')
    }
    const ticket =
      scopes.length === 1 && typeof scopes[0] === 'number' && typeof cost === 'number'
        ? this.#wasm.send_at_once(nowMs, scopes[0], cost, priority)
        : this.#wasm.send_many_at_once(nowMs, numbers('scopes', scopes), costsOf(cost), priority)
    return ticket >= WAIT ? ticket : this.#refused(ticket + 1)
  }

  /**
   * @internal Takes in a request of one scope, and sends it if nothing waits and nothing keeps it. A number
   * from 0 is its ticket, to be sent now; one from -16 down is -16 less its ticket, which waits.
   */
  enter(nowMs: number, scope: ScopeHandle, cost: number, priority: number): number {
    const sent = this.#wasm.send_at_once(nowMs, scope, cost, priority)
    if (sent >= 0) return sent
    if (sent < WAIT) this.#refused(sent + 1)
    const ticket = this.#wasm.submit(nowMs, scope, cost, priority, 0)
    return ticket >= 0 ? WAITS - ticket : this.#refused(ticket)
  }

  /** A ticket to send now, {@link WAIT} or {@link IDLE}. Ask again after every ticket. */
  poll(nowMs: number): Ticket {
    return this.#wasm.poll(nowMs)
  }

  /** After {@link WAIT}: when to poll again, strictly in the future. After {@link IDLE}: `Infinity`. */
  get wakeAt(): number {
    return this.#wasm.wake_at
  }

  /** After {@link WAIT}, {@link IDLE} or `peek`: why; `undefined` when nothing waits. */
  get reason(): Reason | undefined {
    return this.#reasons[this.#wasm.reason] as Reason | undefined
  }

  /** After {@link WAIT}, {@link IDLE} or `peek`: which scope says so; `undefined` for the whole throttle. */
  get reasonScope(): string | undefined {
    const scope = this.#wasm.reason_scope
    return scope < 0 ? undefined : this.#wasm.name(scope)
  }

  /**
   * Tells how a request ended. Unknown tickets, and those that were not sent, are ignored.
   *
   * @throws {TypeError} for headers, hints and numbers that are none; nothing has changed then.
   */
  settle(nowMs: number, ticket: Ticket, outcome: Outcome = NO_OUTCOME): Settled {
    if (outcome === NO_OUTCOME && typeof nowMs === 'number' && typeof ticket === 'number')
      return SETTLED[this.#wasm.settle(nowMs, ticket, UNKNOWN, UNKNOWN, UNKNOWN, 0)]!
    const { status, error, headers, headerMap, hints, scopes, retryDelay, backoff } = outcome
    const { latencyMs = UNKNOWN, cost = UNKNOWN, adjustDelay = true, retry = false } = outcome
    const answer = status ?? (error === undefined ? UNKNOWN : failureOfRequest(error))
    if (
      typeof nowMs !== 'number' ||
      typeof ticket !== 'number' ||
      typeof answer !== 'number' ||
      typeof latencyMs !== 'number' ||
      typeof cost !== 'number'
    ) {
      throw new TypeError('nowMs, ticket, status, latencyMs and cost must be numbers')
    }
    const verdict = backoff === undefined ? 0 : backoff ? BAD : GOOD
    const flags = (adjustDelay ? 0 : KEEP_DELAY) | (retry ? MAY_RETRY : 0) | verdict
    const lines = headers === undefined ? '' : hintLines(headers, headerMap)
    if (lines === '' && hints === undefined && scopes === undefined && retryDelay === undefined) {
      return SETTLED[this.#wasm.settle(nowMs, ticket, answer, latencyMs, cost, flags)]!
    }
    if (hints === undefined && scopes === undefined && retryDelay === undefined) {
      const { wallNowMs = UNKNOWN } = outcome
      if (typeof wallNowMs !== 'number') throw new TypeError('wallNowMs must be a number')
      const wall = Float64Array.of(wallNowMs, UNKNOWN)
      const how = flags | unitsOf(headerMap)
      return SETTLED[this.#wasm.settle_with(nowMs, ticket, answer, latencyMs, cost, how, lines, wall)]!
    }
    const told = hints === undefined ? NO_HINTS : hintNumbers(hints)
    const more = [outcome.wallNowMs ?? UNKNOWN, retryDelay ?? UNKNOWN, ...told]
    for (const own of scopes ?? []) more.push(...scopeNumbers(own))
    const all = numbers('the outcome', more)
    const how = flags | (hints === undefined ? 0 : HINTED) | unitsOf(headerMap)
    return SETTLED[this.#wasm.settle_with(nowMs, ticket, answer, latencyMs, cost, how, lines, all)]!
  }

  /** After `settle`: the milliseconds that the server asked to wait, as it said them; NaN if it did not. */
  get askedMs(): number {
    return this.#wasm.asked_ms
  }

  /**
   * What the robots.txt of this scope asks for: one slot and this delay in place of the defaults. Poll
   * afterwards.
   */
  crawlDelay(nowMs: number, scope: ScopeHandle, delayMs: number | undefined): RobotsOutcome {
    return ROBOTS_OUTCOMES[this.#wasm.crawl_delay(nowMs, scope, delayMs ?? Number.NaN)] ?? 'ignored'
  }

  /** Takes a waiting request out; one that was allowed to leave but never did gives everything back. */
  cancel(nowMs: number, ticket: Ticket): void {
    this.#wasm.cancel(nowMs, ticket)
  }

  /**
   * Gives a waiting request another priority; it keeps its age. Anything else changes nothing. Poll
   * afterwards.
   */
  prioritize(nowMs: number, ticket: Ticket, priority: number): void {
    this.#wasm.prioritize(nowMs, ticket, priority)
  }

  /** When a request could be sent as things stand, and why not now. Changes nothing. */
  peek(
    nowMs: number,
    scopes: readonly ScopeHandle[],
    options: { cost?: number | readonly number[] } = {},
  ): Peek {
    const at = this.#wasm.peek(nowMs, numbers('scopes', scopes), costsOf(options.cost ?? 1))
    if (at < 0) return this.#refused(at)
    return { at, reason: this.reason, scope: this.reasonScope }
  }

  /**
   * Changes settings of one scope and keeps what it learned. Poll afterwards.
   *
   * @throws {ConfigError} listing every problem; nothing is changed then.
   */
  configure(nowMs: number, scope: ScopeHandle, partial: ScopeOptions): void {
    withProblems(ConfigError, () => this.#wasm.configure(nowMs, scope, partial))
  }

  /** Sends nothing of this scope for `ms` milliseconds. A hold that is longer already stays. */
  hold(nowMs: number, scope: ScopeHandle, ms: number): void {
    this.#wasm.hold(nowMs, scope, ms)
  }

  /** Sends nothing of this scope, or of all, until `resume`. */
  pause(nowMs: number, scope?: ScopeHandle): void {
    if (scope === undefined) this.#wasm.pause_all(true)
    else this.#wasm.pause(nowMs, scope)
  }

  /** Ends a pause. Poll afterwards. */
  resume(nowMs: number, scope?: ScopeHandle): void {
    if (scope === undefined) this.#wasm.pause_all(false)
    else this.#wasm.resume(nowMs, scope)
  }

  /**
   * Forgets what this scope learned and lifts its hold. Settings and what is in flight stay. Poll
   * afterwards.
   */
  reset(nowMs: number, scope: ScopeHandle): void {
    this.#wasm.reset(nowMs, scope)
  }

  /**
   * The state of everything, or of one scope, at the latest instant that the engine was told or at `nowMs`.
   */
  stats(): Stats
  stats(scope: undefined, nowMs: number): Stats
  stats(scope: ScopeHandle, nowMs?: number): ScopeStats
  stats(scope?: ScopeHandle, nowMs: number = Number.NaN): Stats | ScopeStats {
    if (scope === undefined) return this.#wasm.stats(nowMs)
    return this.#wasm.scope_stats(nowMs, scope) ?? this.#refused(-1)
  }

  /** What was learned, for `restore` in another process. `wallNowMs`: wall time now, since 1970. */
  snapshot(nowMs: number, wallNowMs: number): Snapshot {
    return this.#wasm.snapshot(nowMs, wallNowMs)
  }

  /**
   * Goes on where a snapshot was taken; before the first `scope` and `submit`.
   *
   * @throws {SnapshotError} listing every problem; nothing is changed then.
   */
  restore(snapshot: Snapshot, nowMs: number, wallNowMs: number): void {
    withProblems(SnapshotError, () => this.#wasm.restore(snapshot, nowMs, wallNowMs))
  }

  /** Requests that wait. */
  get waiting(): number {
    return this.#wasm.waiting()
  }

  /** Requests in flight. */
  get inFlight(): number {
    return this.#wasm.in_flight()
  }

  /** How much notices tell of answers from now on: 0 nothing, 1 what they changed, 2 every answer as well. */
  watch(level: 0 | 1 | 2): void {
    this.#wasm.watch(level)
  }

  /** Whether `takeNotices` has something to give. */
  get hasNotices(): boolean {
    return this.#wasm.has_notices
  }

  /** What people should know, since the last call. */
  takeNotices(): Notice[] {
    return this.#wasm.has_notices ? (this.#wasm.take_notices() as Notice[]) : []
  }

  /** @internal */
  get warnThreshold(): number {
    return this.#wasm.warn_threshold()
  }

  /** The numbers of refusals at the boundary. */
  #refused(code: number): never {
    if (code === -2) throw new QueueFullError()
    if (code === -3) throw new CostExceedsQuotaError(this.#wasm.refused_scope, this.#wasm.refused_path)
    if (code === -4) throw new TypeError('cost and delay must be finite and not below 0, priority finite')
    throw new TypeError('the request names no scope that this engine knows')
  }

  /** Gives the engine's memory back at once. Nothing may be called afterwards. */
  [Symbol.dispose](): void {
    this.#wasm.free()
  }
}

/**
 * The name that was meant by one that is not known, if one is near enough.
 *
 * @internal
 */
export function nearestName(typed: string, known: readonly string[]): string | undefined {
  return loadFunctions().nearest(typed, known.join('\n')) || undefined
}

/**
 * Checks the options that only a driver reads; functions may be among them.
 *
 * @internal
 * @throws {ConfigError} listing every problem.
 */
export function checkDriverOptions(options: object): void {
  withProblems(ConfigError, () => loadFunctions().check_driver_options(options))
}

/**
 * What a response's headers say about limits: waits, quotas, resets, in all the dialects of `docs/hints.md`.
 *
 * @param options.status the response's status: on good ones an explicit wait means nothing. Default 429.
 * @param options.wallNowMs wall time since 1970, for responses without a `Date`. Default unknown.
 */
export function parseHints(
  headers: HeadersLike,
  options: { status?: number; wallNowMs?: number; map?: HeaderMap } = {},
): Hints {
  const { status = 429, wallNowMs = Number.NaN, map } = options
  const { parse_hints } = loadFunctions()
  return parse_hints(hintLines(headers, map), status, wallNowMs, unitsOf(map)) as Hints
}

/**
 * What a robots.txt asks of `userAgent` (a product token or a whole User-Agent header) in milliseconds, the
 * slower of `Crawl-delay` and `Request-rate`; `null` if it asks for nothing.
 */
export function parseRobots(
  bytesOrText: Uint8Array | string,
  userAgent: string,
): { crawlDelayMs: number } | null {
  const bytes = typeof bytesOrText === 'string' ? new TextEncoder().encode(bytesOrText) : bytesOrText
  const crawlDelayMs = loadFunctions().parse_crawl_delay(bytes, String(userAgent))
  return Number.isNaN(crawlDelayMs) ? null : { crawlDelayMs }
}

function costsOf(cost: number | readonly number[]): Float64Array {
  return numbers('cost', typeof cost === 'object' ? cost : [cost])
}

/** Strings would cross as numbers without a word. */
function numbers(what: string, list: readonly number[]): Float64Array {
  const wrong = list.find((number) => typeof number !== 'number')
  if (wrong !== undefined) throw new TypeError(`${what}: want numbers; got ${shown(wrong)}`)
  return Float64Array.from(list)
}

/** What an outcome means for one scope, as the boundary wants it: see `STRIDE` in `src/boundary/outcome.rs`. */
function scopeNumbers(own: ScopeOutcome): readonly number[] {
  const { scope, ignored = false, backoff, delay = UNKNOWN, remaining = UNKNOWN } = own
  const { resetMs = UNKNOWN, cost = UNKNOWN } = own
  const bad = backoff === undefined ? UNKNOWN : Number(backoff)
  return [scope, Number(ignored), bad, delay, remaining, resetMs, cost]
}
