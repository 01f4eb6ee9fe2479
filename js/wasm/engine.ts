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
import { shown } from '../base/checks.js'
import {
  asProblems,
  ConfigError,
  CostExceedsQuotaError,
  type EngineBrokenError,
  QueueFullError,
  ScopeDownError,
  SnapshotError,
  withProblems,
} from '../base/errors.js'
import type { EngineOptions, ScopeOptions } from '../options/options.js'
import { ROBOTS, SETTLED } from './generated.js'
import { prepare, WasmEngine } from './load/load.js'
import { costsOf, NO_OUTCOME, numbers, numbersOf, plainNumbers, UNKNOWN } from './numbers.js'
import type {
  Notice,
  Outcome,
  Peek,
  Reason,
  RobotsOutcome,
  ScopeHandle,
  ScopeStats,
  Settled,
  Snapshot,
  Stats,
  SubmitOptions,
  Ticket,
} from './types.js'

export * from './functions.js'
export type * from './types.js'

/** The answer of `poll` if no request may leave before `wakeAt`. */
export const WAIT = -1

/**
 * The answer of `poll` if time alone changes no state: no request waits, or all need an answer.
 */
export const IDLE = -2

/** The answer of `settle_lines` before the route is named. */
const ROUTE_FIRST = 2

/** The methods of an engine after a call that was broken off. */
const AFTER_BREAKDOWN: Partial<Engine> = {
  wakeAt: Number.POSITIVE_INFINITY,
  hasNotices: false,
  poll: () => IDLE,
  settle: () => 'unknown',
  settleQuietly: () => false,
  takeNotices: () => [],
  askedMs: Number.NaN,
  waiting: 0,
  inFlight: 0,
  scopes: 0,
  retries: () => 0,
  cancel() {},
  sentAt() {},
  watch() {},
  abandon() {},
  [Symbol.dispose]() {},
}

/** @internal In place of what a call broke off: it gives what is `left`, and throws for all else. */
export function brokenOff<T extends object>(left: object, error: Error): T {
  return new Proxy({} as T, {
    get: (_, name) => {
      if (name in left) return left[name as keyof typeof left]
      throw error
    },
  })
}

/** The methods that the module has itself, without a check. */
export interface Engine {
  // written by `cargo xtask write`: verbs
  /**
   * @internal A handle that may be forgotten when its scope is idle: use it at once, or `keepAlive` it first.
   */
  intern(name: string): ScopeHandle
  /** The handle of a known scope. Makes none and keeps none. -1 for another name. */
  find(name: string): ScopeHandle
  /**
   * @internal Whether the handle still means what it meant; if so, its scope stays at least until the next
   * `poll`.
   */
  keepAlive(scope: ScopeHandle): boolean
  /**
   * Gives a handle back: its scope is forgotten now if it looks like new, and may be later beyond
   * `maxScopes`.
   */
  release(scope: ScopeHandle): void
  /** How many scopes the engine knows. */
  readonly scopes: number
  /**
   * Whether the `route` of a request is to be named. Ask after `submit`; of what waits when the notice
   * `budgets` comes; and before `settle`, where `hasFields` says that header fields follow.
   */
  wantsRoute(ticket: Ticket, hasFields: boolean): boolean
  /** Names the route of a request, where it is wanted, by its method and URL. Poll afterwards. */
  route(nowMs: number, ticket: Ticket, method: string, url: string): void
  /**
   * Says that the request that `poll` gave left only at `nowMs`: the delays of its scopes, and what rampup
   * found, count from there. For a loop that is busy between the two. It may come later: an instant that is
   * over counts as it is. Unknown tickets, and those that were not sent, are ignored.
   */
  sentAt(nowMs: number, ticket: Ticket): void
  /** Takes a waiting request out; one that was allowed to leave but never did gives everything back. */
  cancel(nowMs: number, ticket: Ticket): void
  /**
   * Gives a waiting request another priority; it keeps its age. Other tickets are ignored. Poll afterwards.
   */
  prioritize(nowMs: number, ticket: Ticket, priority: number): void
  /** Sends no request of this scope for that long. A hold that is longer already stays. */
  hold(nowMs: number, scope: ScopeHandle, ms: number): void
  /**
   * Forgets what this scope learned and lifts its hold. The spent parts of quotas and budgets, settings and
   * requests in flight stay. Poll afterwards.
   */
  reset(nowMs: number, scope: ScopeHandle): void
  /** Requests that wait. */
  readonly waiting: number
  /** Requests in flight. */
  readonly inFlight: number
  /** @internal The setting `warnThreshold`: more waiting requests than that cause a warning. */
  readonly warnThreshold: number
  /** How often a request of this method is sent again at most, by the setting `retry`. */
  retries(method: string): number
  /** Whether there is something for `takeNotices`. */
  readonly hasNotices: boolean
  // end of what is written
  /** A ticket to send now, {@link WAIT} or {@link IDLE}. Ask again after every ticket. */
  poll(nowMs: number): Ticket
  /** After {@link WAIT}: when to poll again, strictly in the future. After {@link IDLE}: `Infinity`. */
  readonly wakeAt: number
  /** After {@link WAIT}, {@link IDLE} or `peek`: why; `undefined` when no request waits. */
  readonly reason: Reason | undefined
  /** After {@link WAIT}, {@link IDLE} or `peek`: which scope says so; `undefined` for the whole throttle. */
  readonly reasonScope: string | undefined
  /** After `settle`: the milliseconds that the server asked to wait, as it said them; NaN if it did not. */
  readonly askedMs: number
  /** Sends no request of this scope, or of all, until `resume`. */
  pause(nowMs: number, scope?: ScopeHandle): void
  /** Ends a pause. Poll afterwards. */
  resume(nowMs: number, scope?: ScopeHandle): void
  /** The learned state, for `restore` in another process. `wallNowMs`: wall time now, since 1970. */
  snapshot(nowMs: number, wallNowMs: number): Snapshot
  /** How much notices say of answers from now on: 0 no word, 1 what they changed, 2 every answer as well. */
  watch(level: 0 | 1 | 2): void
}

/** The same engine as the module shows it. */
const raw = (engine: unknown) => engine as WasmEngine

/**
 * Decides when requests may be sent. Instants are milliseconds of a clock of yours that only goes forward.
 */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the base class has what the interface says
export class Engine extends (WasmEngine as unknown as new (options: object) => object) {
  /** @throws {ConfigError} listing every problem of the options. */
  constructor(options: EngineOptions = {}) {
    prepare()
    try {
      super(options)
    } catch (error) {
      throw asProblems(ConfigError, error)
    }
  }

  /** The handle of a scope, made on first use and good until it is released. */
  scope(name: string): ScopeHandle {
    if (typeof name !== 'string') throw new TypeError(`scope: want a name; got ${shown(name)}`)
    return raw(this).scope_of(name)
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
    if (scopes.length !== 1 || typeof scopes[0] !== 'number' || typeof cost !== 'number')
      return this.submitAgain(nowMs, scopes, 0, options)
    const ticket = raw(this).submit_one(nowMs, scopes[0], cost, priority, delay)
    return ticket >= 0 ? ticket : refused(this, ticket)
  }

  /**
   * The same for a request that has waited `waitedMs` where another engine had it: its place among the others
   * is by age.
   *
   * @throws as `submit` does.
   */
  submitAgain(
    nowMs: number,
    scopes: readonly ScopeHandle[],
    waitedMs: number,
    options: SubmitOptions = {},
  ): Ticket {
    const { cost = 1, priority = 0, delay = 0 } = options
    const [list, costs] = [numbers('scopes', scopes), costsOf(cost)]
    const ticket = raw(this).submit_again(nowMs, list, costs, priority, delay, waitedMs)
    return ticket >= 0 ? ticket : refused(this, ticket)
  }

  /**
   * Takes in a request that another engine sent, `sentAgoMs` before now, and that is in flight still: it has
   * its slots, its cost is taken, and gaps count from its send. No limit refuses it. A request that left
   * before the snapshot of `restore` was taken has its slots only, for the rest is in there. Tell the oldest
   * first.
   *
   * @throws {TypeError} for unknown scopes and for numbers that are none.
   */
  adopt(
    nowMs: number,
    scopes: readonly ScopeHandle[],
    sentAgoMs: number,
    options: Omit<SubmitOptions, 'delay'> & { waited?: number } = {},
  ): Ticket {
    const { cost = 1, priority = 0, waited = 0 } = options
    const [list, costs] = [numbers('scopes', scopes), costsOf(cost)]
    const ticket = raw(this).adopt_sent(nowMs, list, costs, priority, waited, sentAgoMs)
    return ticket >= 0 ? ticket : refused(this, ticket)
  }

  /**
   * `submit` and the first `poll` in one, if no request waits and no limit keeps this one: a ticket to
   * send now, or {@link WAIT} if it must be submitted. Then no state has changed. If no request waits,
   * there is no need to poll.
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
      throw new TypeError('nowMs, priority and delay must be numbers')
    }
    if (scopes.length === 1 && typeof scopes[0] === 'number' && typeof cost === 'number')
      return this.sendOne(nowMs, scopes[0], cost, priority)
    const list = numbers('scopes', scopes)
    const ticket = raw(this).send_many_at_once(nowMs, list, costsOf(cost), priority)
    return ticket >= WAIT ? ticket : refused(this, ticket + 1)
  }

  /** @internal `sendAtOnce` of a request of one scope, without checks. */
  sendOne(nowMs: number, scope: ScopeHandle, cost: number, priority: number): Ticket {
    const ticket = raw(this).send_at_once(nowMs, scope, cost, priority)
    return ticket >= WAIT ? ticket : refused(this, ticket + 1)
  }

  /**
   * Tells how a request ended. Unknown tickets, and those that were not sent, are ignored. `naming` is called
   * first where the answer says something of limits: it may name the request's `route`.
   *
   * @throws {TypeError} for wrong headers, hints and numbers; then no state has changed.
   */
  settle(nowMs: number, ticket: Ticket, outcome: Outcome = NO_OUTCOME, naming?: () => void): Settled {
    if (outcome === NO_OUTCOME && typeof nowMs === 'number' && typeof ticket === 'number')
      return SETTLED[raw(this).settle_plain(nowMs, ticket, UNKNOWN, UNKNOWN, UNKNOWN, 0) & 7]!
    const { answer, latencyMs, cost, flags, lines, wall, encoded } = numbersOf(nowMs, ticket, outcome)
    if (lines !== '') naming?.()
    const settled =
      encoded === undefined
        ? raw(this).settle_plain(nowMs, ticket, answer, latencyMs, cost, flags)
        : raw(this).settle_with(nowMs, ticket, encoded, lines, wall)
    return SETTLED[settled & 7]!
  }

  /**
   * @internal `settle` of a good answer, or of no word (NaN), without checks: whether there are notices.
   * `naming` is called where the route has to be named first.
   */
  settleQuietly(
    nowMs: number,
    ticket: Ticket,
    status: number,
    latencyMs: number,
    lines: string,
    wallMs: number,
    naming?: () => void,
  ): boolean {
    if (lines === '') return raw(this).settle_plain(nowMs, ticket, status, latencyMs, UNKNOWN, 0) > 7
    const result = raw(this).settle_lines(nowMs, ticket, status, latencyMs, lines, wallMs)
    if (result < ROUTE_FIRST) return result > 0
    naming?.()
    raw(this).settle_with(nowMs, ticket, plainNumbers(status, latencyMs), lines, wallMs)
    return this.hasNotices
  }

  /**
   * Sets the pace that the robots.txt of this scope asks for: one slot and this delay in place of the
   * defaults. Poll afterwards.
   */
  crawlDelay(nowMs: number, scope: ScopeHandle, delayMs: number | undefined): RobotsOutcome {
    return ROBOTS[raw(this).crawl_delay(nowMs, scope, delayMs ?? Number.NaN)] ?? 'ignored'
  }

  /** When a request could leave as things stand, and why not now. It changes no state. */
  peek(
    nowMs: number,
    scopes: readonly ScopeHandle[],
    options: { cost?: number | readonly number[] } = {},
  ): Peek {
    const at = raw(this).peek_at(nowMs, numbers('scopes', scopes), costsOf(options.cost ?? 1))
    if (at < 0) return refused(this, at)
    return { at, reason: this.reason, scope: this.reasonScope }
  }

  /**
   * Changes settings of one scope and keeps what it learned. Poll afterwards.
   *
   * @throws {ConfigError} listing every problem; then no state has changed.
   */
  configure(nowMs: number, scope: ScopeHandle, partial: ScopeOptions): void {
    withProblems(ConfigError, () => raw(this).configure_scope(nowMs, scope, partial))
  }

  /**
   * Corrects the cost in this scope of a request that left at `sentMs` to `cost`, where `charged` has been
   * taken for it so far. It may have been settled. Poll afterwards.
   *
   * @throws {TypeError} where one of them is no cost.
   */
  adjust(nowMs: number, scope: ScopeHandle, sentMs: number, charged: number, cost: number): void {
    if (!raw(this).adjust_cost(nowMs, scope, sentMs, charged, cost))
      throw new TypeError('charged and cost must be finite and not below 0')
  }

  /**
   * The state of everything, or of one scope, at the latest instant of a call or at `nowMs`.
   */
  stats(): Stats
  stats(scope: undefined, nowMs: number): Stats
  stats(scope: ScopeHandle, nowMs?: number): ScopeStats
  stats(scope?: ScopeHandle, nowMs: number = Number.NaN): Stats | ScopeStats {
    return raw(this).stats_of(nowMs, scope) ?? refused(this, -1)
  }

  /**
   * Goes on where a snapshot was taken; before the first `scope` and `submit`.
   *
   * @throws {SnapshotError} listing every problem; then no state has changed.
   */
  restore(snapshot: Snapshot, nowMs: number, wallNowMs: number): void {
    withProblems(SnapshotError, () => raw(this).restore_from(snapshot, nowMs, wallNowMs))
  }

  /** The notices since the last call. */
  takeNotices(): Notice[] {
    return this.hasNotices ? raw(this).take_notices() : []
  }

  /**
   * @internal After an {@link EngineBrokenError}: no request waits or is in flight any more. The ends of
   * requests are ignored, and each call that asks throws the error.
   */
  abandon(error: EngineBrokenError): void {
    Object.setPrototypeOf(this, brokenOff(AFTER_BREAKDOWN, error))
  }

  /** Gives the engine's memory back at once. No method may be called afterwards. */
  [Symbol.dispose](): void {
    raw(this).free()
  }
}

/** The numbers of refusals at the boundary. */
function refused(engine: Engine, code: number): never {
  const { refused_scope, refused_path, refused_ms } = raw(engine)
  if (code === -2) throw new QueueFullError()
  if (code === -3) throw new CostExceedsQuotaError(refused_scope, refused_path)
  if (code === -5) throw new ScopeDownError(refused_scope ?? '', refused_ms)
  if (code === -4) throw new TypeError('cost and delay must be finite and not below 0, priority finite')
  throw new TypeError('the request names no scope that this engine knows')
}
