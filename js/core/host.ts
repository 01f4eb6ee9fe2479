/**
 * The host of a scheduler and its driver: the engine of this process, or one that processes share.
 *
 * The engine is a host as it is, so that a call costs what it always did. A shared one (`js/shared/`) answers
 * the same questions. A ticket that it gives waits for another process's word, and `poll` gives it when that
 * has come. How a request ended is judged here and told there.
 */
import type { EngineBrokenError } from '../base/errors.js'
import type { Clock, EngineOptions } from '../options/options.js'
import type { Engine } from '../wasm/engine.js'
import type { ScopeHandle, SharedStats, Snapshot, Ticket } from '../wasm/types.js'
import type { WarningEvent } from './events.js'

type Asked = 'submit' | 'sendAtOnce' | 'poll' | 'wakeAt' | 'settle' | 'askedMs'
type Ordered = 'adjust' | 'configure' | 'pause' | 'resume' | 'crawlDelay'
type Seen = 'peek' | 'stats' | 'snapshot' | 'watch' | 'hasNotices' | 'takeNotices'

/** The part that decides. */
export interface Host extends Pick<Engine, Asked | Ordered | Seen> {
  // The engine has these methods too; declarations of some do not show it there.
  // written by `cargo xtask write`: verbs
  intern(name: string): ScopeHandle
  find(name: string): ScopeHandle
  keepAlive(scope: ScopeHandle): boolean
  release(scope: ScopeHandle): void
  readonly scopes: number
  wantsRoute(ticket: Ticket, hasFields: boolean): boolean
  route(nowMs: number, ticket: Ticket, method: string, url: string): void
  sentAt(nowMs: number, ticket: Ticket): void
  cancel(nowMs: number, ticket: Ticket): void
  hold(nowMs: number, scope: ScopeHandle, ms: number): void
  reset(nowMs: number, scope: ScopeHandle): void
  readonly waiting: number
  readonly inFlight: number
  readonly warnThreshold: number
  retries(method: string): number
  // end of what is written
  sendOne(nowMs: number, scope: ScopeHandle, cost: number, priority: number): Ticket
  /**
   * `settle` of a good answer, or of no word (NaN), that is not sent again: whether there are notices.
   * `naming` is called first where it has to name the request's `route`.
   */
  settleQuietly(
    nowMs: number,
    ticket: Ticket,
    status: number,
    latencyMs: number,
    lines: string,
    wallMs: number,
    naming?: () => void,
  ): boolean
  /** Whether a request waits for the time after what was given last, if that is not known here. */
  readonly isAwaited?: boolean
  /** Names the listener for what happens by itself. An engine only answers. */
  listen?(listener: HostListener): void
  /** A call into it was broken off. */
  abandon?(error: EngineBrokenError): void
  /** No more questions will come. */
  close?(): Promise<void>
}

/** Calls of the host by itself. */
export interface HostListener {
  /** There may be something to poll, or a notice. */
  changed(): void
  /** A request that waits never will leave. */
  fail(ticket: Ticket, error: unknown): void
  /** Something noteworthy that is no error. */
  warn(code: WarningEvent['code'], message: string): void
  /** The group changed: who decides, who is there, or the way. */
  shared(stats: SharedStats): void
  /** A call that it made by itself threw; true if that was all there is to do. */
  broke?(error: unknown): boolean
}

/** The context that a shared host is made with. */
export interface HostContext {
  readonly options: EngineOptions
  readonly snapshot: Snapshot | undefined
  /** The throttle's clock. */
  readonly clock: Clock
  /** The same with timers that keep no process alive. */
  readonly idleClock: Clock
}

/** The value of `createThrottle({ shared })`: made by `local` of `autothrottle/local` and its like. */
export interface Shared {
  /** @internal */
  open(context: HostContext): Host
}
