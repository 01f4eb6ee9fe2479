/**
 * Leave to send one request. It holds a slot in every scope of the request until it is settled.
 *
 * The trap is the permit that nobody settles: its slots are gone for good. `using permit = …` settles it as
 * *ignored* at the end of the block, whatever happened there.
 */

import { type Backoffs, checkedBackoffs } from '../scopes/hooks.js'
import type { HeadersLike, SomeHints } from '../wasm/headers.js'

/** How a request ended, as a permit is told. Without `status` and `error` nothing is learned. */
export interface PermitOutcome {
  /** The status of the response. */
  status?: number
  /** The response's headers: what they ask for is kept. */
  headers?: HeadersLike
  /** Hints that were not in headers; they take the place of `headers`. */
  hints?: SomeHints
  /** Why there was no response. An abort by the caller teaches nothing about the server. */
  error?: unknown
  /** Milliseconds from send to response headers. Default: now − sent, if there was a response. */
  latency?: number
  /** Whether the answer is bad, if you know better than the status and `backoff.httpCodes`. */
  backoff?: boolean
  /** The scopes that this makes back off, if not all or none of them; a map says more about each. */
  scopes?: Backoffs
  /** What the request really cost, if that is not what was expected. */
  cost?: number
  /** False keeps AutoThrottle's delay as it is. Scrapy's `autothrottle_dont_adjust_delay` is the opposite. */
  adjustDelay?: boolean
}

/** @internal How to wait for another attempt: not before `delay` milliseconds, not longer than `timeout`. */
export interface Again {
  delay: number
  signal: AbortSignal | null
  timeout: number | undefined
}

/** Made by `throttle.acquire` and `throttle.run`. */
export class Permit {
  /** When it was given, in milliseconds of the throttle's clock. */
  readonly sentAt: number
  /** The scopes that agreed. */
  readonly scopes: readonly string[]
  readonly #settle: (outcome: PermitOutcome) => void
  readonly #again: (outcome: PermitOutcome, again: Again) => Promise<Permit>
  #isSettled = false

  /** @internal */
  constructor(
    sentAt: number,
    scopes: readonly string[],
    settle: (outcome: PermitOutcome) => void,
    again: (outcome: PermitOutcome, again: Again) => Promise<Permit>,
  ) {
    this.#settle = settle
    this.#again = again
    this.sentAt = sentAt
    this.scopes = scopes
  }

  /** Whether it was settled. */
  get isSettled(): boolean {
    return this.#isSettled
  }

  /**
   * Gives the slots back and tells what happened. Only the first call counts.
   *
   * @throws {ManagerError} if `scopes` makes no sense; nothing is settled then.
   */
  settle(outcome: PermitOutcome = {}): void {
    if (this.#isSettled) return
    checkedBackoffs('settle', outcome.scopes, this.scopes)
    this.#isSettled = true
    this.#settle(outcome)
  }

  /** @internal Settles and waits for leave to send the same request again. */
  again(outcome: PermitOutcome, again: Again): Promise<Permit> {
    this.#isSettled = true
    return this.#again(outcome, again)
  }

  /** Settles as *ignored* if nothing was said. */
  [Symbol.dispose](): void {
    this.settle()
  }
}
