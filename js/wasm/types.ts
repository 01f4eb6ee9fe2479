/**
 * The types of the engine's arguments; what comes out is generated. See `ARCHITECTURE.md` for the words.
 */

import type { HeadersLike, SomeHints } from '../answers/headers.js'
import type { HeaderMap } from '../options/options.js'
import type { Reason } from './generated.js'

export type * from './generated.js'

/** A request that was submitted, as a number. */
export type Ticket = number

/** Handle of a scope, as a number. */
export type ScopeHandle = number

/** The needs of a request. */
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

/** The meaning of an answer for one scope, where that is not the same for all of its request. */
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
  /** The real cost in this scope. */
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
  /** The meaning for single scopes of the request, where it differs. */
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
  /** False for what can't be sent twice: in place of `again` it is `not-replayable`. Default true. */
  replayable?: boolean
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
  /** The real cost of the request, if it is not the expected one. */
  cost?: number
  /** False keeps AutoThrottle's delay as it is. Scrapy's `autothrottle_dont_adjust_delay` is the opposite. */
  adjustDelay?: boolean
}

/** When a request could be sent as things stand. */
export interface Peek {
  /** Milliseconds of engine time; `Infinity` if that depends on an answer or a `resume`. */
  at: number
  /** Why not now. */
  reason: Reason | undefined
  /** Which scope says so; `undefined` for the whole throttle. */
  scope: string | undefined
}

/**
 * The learned state, as plain JSON. Treat it as a closed box: keep it, send it, give it back. Spans, not
 * instants, so that it is valid on a machine with another clock. Waiting requests are not part of it.
 */
export interface Snapshot {
  version: 1
  /** Wall time at which it was taken; the time until it is used counts. */
  wallMs?: number
  scopes: Record<string, object>
}
