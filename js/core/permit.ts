/**
 * Permission to send one request. It holds a slot in every scope of the request until it is settled.
 *
 * The trap is the permit that nobody settles: its slots are gone for good. `using permit = …` settles it as
 * *ignored* at the end of the block, whatever happened there; one that is collected as garbage is given back.
 */

import type { Backoffs } from '../scopes/hooks.js'
import type { Target } from '../scopes/names.js'
import type { Ticket } from '../wasm/engine.js'
import type { HeadersLike, SomeHints } from '../wasm/headers.js'
import type { Desk } from './desk.js'
import { release } from './unsettled.js'

/**
 * How a request ended, as a permit is told: a response of any client will do. Without a status and an error
 * nothing is learned.
 */
export interface PermitOutcome {
  /** The status of the response. */
  status?: number
  /** The same, as Node, undici and got call it. */
  statusCode?: number
  /** The response's headers in any form, flat lists of names and values too: what they ask for is kept. */
  headers?: HeadersLike | readonly string[]
  /** Hints that were not in headers; they take the place of `headers`. */
  hints?: SomeHints
  /**
   * Why there was no response. If it carries one (`error.status`, `error.response.status`, `error.headers`
   * …), that counts. An abort by the caller teaches nothing about the server.
   */
  error?: unknown
  /** Milliseconds from send to response headers. Default: now − sent, if there was a response. */
  latency?: number
  /** Whether the answer is bad, if you know better than the status and `backoff.statusCodes`. */
  backoff?: boolean
  /** The scopes that this makes back off, if not all or none of them; a map says more about each. */
  scopes?: Backoffs
  /** What the request really cost, if that is not what was expected. */
  cost?: number
  /** False keeps AutoThrottle's delay as it is. Scrapy's `autothrottle_dont_adjust_delay` is the opposite. */
  adjustDelay?: boolean
}

/** Nothing is learned; the slots come back. */
export const NOTHING: PermitOutcome = {}

/** Made by `throttle.acquire` and `throttle.run`. */
export class Permit {
  /** When it was given, or could first be used if that was later: milliseconds of the throttle's clock. */
  readonly sentAt: number
  /** The scopes that agreed. */
  readonly scopes: readonly string[]
  /** What it is for. */
  readonly target: Target
  /** @internal */
  readonly ticket: Ticket
  /** @internal Whether it is watched for being collected as garbage. */
  isKept = false
  readonly #desk: Desk
  #isSettled = false

  /** @internal */
  constructor(desk: Desk, ticket: Ticket, scopes: readonly string[], target: Target, sentAt: number) {
    this.#desk = desk
    this.ticket = ticket
    this.scopes = scopes
    this.target = target
    this.sentAt = sentAt
  }

  /** Whether it was settled. */
  get isSettled(): boolean {
    return this.#isSettled
  }

  /**
   * Gives the slots back and tells what happened. Only the first call counts.
   *
   * @throws {TypeError} if status or headers make no sense; the slots come back all the same.
   * @throws {ManagerError} if `scopes` makes no sense, or a scope's manager throws; the slots come back all
   *   the same.
   */
  settle(outcome: PermitOutcome = NOTHING): void {
    if (this.take()) this.#desk.settle(this, outcome)
  }

  /** @internal Its request begins only now. */
  leave(now: number): void {
    ;(this as { sentAt: number }).sentAt = now
  }

  /** @internal Marks it as settled; false if it was. */
  take(): boolean {
    if (this.#isSettled) return false
    this.#isSettled = true
    if (this.isKept) release(this)
    return true
  }

  /** Settles as *ignored* if nothing was said. */
  [Symbol.dispose](): void {
    this.settle()
  }
}
