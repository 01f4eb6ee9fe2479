/**
 * What goes into the engine and comes out of it, as types. See `ARCHITECTURE.md` for the words.
 */

import type { HeadersLike, SomeHints } from '../answers/headers.js'
import type { HeaderMap } from '../options/options.js'

/** A request that was submitted, as a number. */
export type Ticket = number

/** Handle of a scope, as a number. */
export type ScopeHandle = number

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
   * True: the answer is of no concern to it; its slots come back, and no pace changes. Default false.
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

/** How a request ended. Without `status` and `error` the engine learns no pace from it. */
export interface Outcome {
  /** The status of the response, 100 to 599. */
  status?: number
  /**
   * Why no response came: a timeout, a failure of the connection. An abort by the caller is no failure.
   */
  error?: unknown
  /** The response's headers: what they ask for is kept. */
  headers?: HeadersLike
  /** How to read them, for servers with a dialect of their own. */
  headerMap?: HeaderMap
  /** Hints that were not in headers; they take the place of `headers`. */
  hints?: SomeHints
  /**
   * Wall time now, or a function that gives it, for dates in responses without a `Date`. By default those are
   * ignored.
   */
  wallNowMs?: number | (() => number)
  /** Whether the answer is bad, if you know better than the status and `backoff.statusCodes`. */
  backoff?: boolean
  /** What it means for single scopes of the request, where that is another thing. */
  scopes?: readonly ScopeOutcome[]
  /**
   * `scopes` names those that it concerns. It is bad for each of them without a cost or a rest of its quota;
   * the others ignore a refusal (an error, a status from 400). Default false.
   */
  namedOnly?: boolean
  /**
   * The request may be sent again: its method and body allow it, and there are attempts left.
   * `retry.statusCodes`, `maxRetryAfter` and the server's wait decide whether it is, and when. Default false.
   */
  retry?: boolean
  /**
   * The request is sent again whatever it was: its ticket waits anew, keeps its age, and waits that
   * many milliseconds.
   */
  retryDelay?: number
  /**
   * From send to response headers, in milliseconds. Unknown if left out: AutoThrottle then ignores the
   * answer.
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
 * no state has changed.
 */
export type Settled = 'unknown' | 'over' | 'again' | 'too-long'

/** When a request could be sent as things stand. */
export interface Peek {
  /** Milliseconds of engine time; `Infinity` if that depends on an answer or a `resume`. */
  at: number
  /** Why not now. */
  reason: Reason | undefined
  /** Which scope says so; `undefined` for the whole throttle. */
  scope: string | undefined
}

/** One budget of a server's at one instant. */
export interface BudgetStats {
  /** Requests in flight that spend from it. */
  inFlight: number
  /** Requests that wait and will. */
  waiting: number
  /** What is left of it, in units, while that is known. */
  quotaLeft: number | undefined
  /** When it is there again, if it is used up: milliseconds of engine time. */
  recoversAt: number | undefined
}

/** One scope at one instant. */
export interface ScopeStats {
  /**
   * The delay in force before jitter, in milliseconds. With AutoThrottle it is AutoThrottle's own; see
   * `backoffMs` for the other.
   */
  delayMs: number
  /** The delay that backoff asks for, in milliseconds; 0 without backoff. The longer delay counts. */
  backoffMs: number
  /** Slots allowed. */
  slots: number
  /** Steps of backoff in force; 0 without. */
  backoffStep: number
  /** Requests in flight. */
  inFlight: number
  /** Requests that wait. */
  waiting: number
  /** The end of a hold, in milliseconds of engine time. */
  holdUntil: number | undefined
  /** What is left of the scarcest quota, in units. */
  quotaLeft: number | undefined
  /** Why the first of the waiting requests waits. */
  reason: Reason | undefined
  /** Whether the scope is paused. */
  paused: boolean
  /** Requests sent per second over the last minute; `undefined` before a minute is over. */
  rate: number | undefined
  /** From send to response headers in milliseconds, on average over the last minute. */
  latencyMs: number | undefined
  /**
   * When a hold ends, a used-up quota is there again and backoff goes a step back: the last of them, in
   * milliseconds of engine time. `undefined` where none of them is in the way.
   */
  recoversAt: number | undefined
  /** The budgets of its server by name, where answers name several: GitHub's resources. */
  budgets?: Readonly<Record<string, BudgetStats>>
  /** Requests in flight on average over the last minute. */
  concurrency: number
  /**
   * The share of the last minute in which each limit kept the first request waiting. `elsewhere` are limits
   * of other scopes and of the whole throttle. The rest is time in which no request waited.
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
  /** The end of a hold, in milliseconds of engine time; absent without one. */
  holdUntil?: number
}

/** What an answer changed, a setting without effect or one that binds, a scope that only answers badly. */
export type Notice =
  | { kind: 'no-effect'; scope: string; setting: string; path: string; why: string }
  | { kind: 'rampup-bound'; scope: string; setting: string; path: string; why: string }
  | { kind: 'hold-cut'; scope: string; setting: string; path: string; why: string }
  | { kind: 'stall'; scope: string; forMs: number }
  | { kind: 'down'; scope: string; forMs: number }
  /** Answers of the scope name several budgets: name the `route` of what waits, and of all that comes. */
  | { kind: 'budgets'; scope: string }
  | ({ kind: 'backoff' | 'recover' | 'delay' } & Pace)
  /** `askedMs`: what the server asked for, where `backoff.maxHold` cut it. */
  | ({ kind: 'hold'; askedMs?: number } & Pace)
  | ({ kind: 'answer'; isBad: boolean; delayBeforeMs: number; inFlight: number; latencyMs?: number } & Pace)

/** What a robots.txt changed: the scope keeps to it, has a pace of the user's own, or is not concerned. */
export type RobotsOutcome = 'applied' | 'overruled' | 'ignored'

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
  /**
   * Of a throttle that processes share: how old this is, in milliseconds. 0 in the process that decides;
   * `undefined` for a throttle of one process.
   */
  ageMs?: number
  /** The group of a throttle that processes share; `undefined` for a throttle of one process. */
  shared?: SharedStats
}

/** A group of processes that share a limit, as this process sees it. */
export interface SharedStats {
  /** The process that decides, by its 32 hexadecimal digits; `undefined` before its first message. */
  writer: string | undefined
  /** Whether it is this process. */
  isWriter: boolean
  /** A number that grows with each process that comes to decide. 0 before the first message. */
  epoch: number
  /** How many processes there were when a beat was last heard or said; `undefined` before that. */
  members: number | undefined
  /**
   * How far ahead this process makes grants, in milliseconds, at most a fifth of a lease: it costs slots that
   * time. 0 where another process decides.
   */
  leadMs: number
  /**
   * From here to the process that decides and back, in milliseconds; there, to the slowest of the others.
   * `undefined` before it was measured.
   */
  roundTripMs: number | undefined
  /** When the writer was last heard, in milliseconds of the throttle's clock; now in the writer itself. */
  lastHeardAt: number | undefined
  /** Since when the way to the others is broken, where that counts as offline; by the same clock. */
  offlineSince: number | undefined
  /**
   * The time, in milliseconds, that the whole limit takes for what this process sent alone and the writer has
   * not counted yet. At most the longest window of your limits: what is older is free.
   */
  debtMs: number
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
