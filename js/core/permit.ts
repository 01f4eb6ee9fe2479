/**
 * Permission to send one request. It holds a slot in every scope of the request until it is settled.
 *
 * `using permit = …` settles it as *ignored* at the end of the block, whatever happened there. One that is
 * collected as garbage is given back.
 */

import type { HeadersLike, SomeHints } from '../answers/headers.js'
import { joined } from '../base/joined.js'
import type { Clock } from '../options/options.js'
import type { Backoffs } from '../scopes/hooks.js'
import type { Target } from '../scopes/names.js'
import type { Settled, Ticket } from '../wasm/engine.js'
import type { Pause } from './pause.js'

/**
 * How a request ended, for `permit.settle`: a response of any client will do. Without a status and an error
 * the throttle learns no pace from it.
 */
export interface PermitOutcome {
  /** The status of the response. */
  status?: number | undefined
  /** The same, as Node, undici and got call it. */
  statusCode?: number | undefined
  /** The response's headers in any form, also as a flat list of names and values. */
  headers?: HeadersLike | readonly string[] | undefined
  /** Hints that were not in headers; they take the place of `headers`. */
  hints?: SomeHints | undefined
  /**
   * Why there was no response. If it carries one (`error.status`, `error.response.status`, `error.headers`
   * …), that counts. An abort by the caller says no word about the server.
   */
  error?: unknown
  /** Milliseconds from send to response headers. Default: now − sent, if there was a response. */
  latency?: number | undefined
  /** Whether the answer is bad, if you know better than the status and `backoff.statusCodes`. */
  backoff?: boolean | undefined
  /** The scopes that back off by this answer, if not all or none; a map says more about each. */
  scopes?: Backoffs | undefined
  /**
   * The true cost of the request, if it is not the expected one: a number, or a map of scope to cost if its
   * scopes had costs of their own.
   */
  cost?: number | Readonly<Record<string, number>> | undefined
  /** False keeps AutoThrottle's delay as it is. Scrapy's `autothrottle_dont_adjust_delay` is the opposite. */
  adjustDelay?: boolean | undefined
}

/** The slots come back, and that is all. */
export const NOTHING: PermitOutcome = {}

/**
 * The function that a call is made in: its permit, `true` for one of those that run, `false` for none,
 * `undefined` before the first look.
 */
export type Inside = Permit | boolean | undefined

/** How a request waits. */
export interface Wait {
  readonly signal?: AbortSignal | null
  readonly priority?: number | undefined
  readonly cost?: number | undefined
  readonly delay?: number | undefined
  readonly maxWait?: number | undefined
  /** When it came in, where a part of its `maxWait` may be over. */
  readonly since?: number | undefined
  /** The function that it is called in, where that is known. */
  readonly inside?: Inside
  /** Its method, of a call of `fetch` alone. */
  readonly method?: string | undefined
  /** Whether it belongs to what was taken in before: a hop, a retry, the robots.txt of a request. */
  readonly isTaken?: boolean
}

/** The end of a request, or what its next attempt waits for. */
export type Verdict = Exclude<Settled, 'again'> | Promise<Permit>

/** The owner's methods that a permit calls. */
interface PermitOwner {
  readonly clock: Clock
  readonly driver: { reportLateStart(permit: Permit): void }
  send(permit: Permit, input: RequestInfo | URL, init?: RequestInit): Promise<Response>
  settle(permit: Permit, outcome: PermitOutcome): void
  adjust(permit: Permit, cost: NonNullable<PermitOutcome['cost']>): void
  lost(ticket: Ticket, scopes: readonly string[]): void
}

/** The data of a permit that was collected as garbage. */
type Lost = readonly [owner: PermitOwner, ticket: Ticket, scopes: readonly string[]]

/** Made on first use: an import has no effects. */
let registry: FinalizationRegistry<Lost> | undefined

/** The place of a permit that is not among those that run. */
export const NOWHERE = -1

/** Made by `throttle.acquire` and `throttle.run`. */
export class Permit {
  /** When the request could leave, in milliseconds of the throttle's clock. */
  readonly sentAt: number
  /** The scopes that agreed. */
  readonly scopes: readonly string[]
  /** The URL, the `Request` or the `{ scopes }` that the permit is for. */
  readonly target: Target
  /** @internal */
  readonly ticket: Ticket
  /** @internal Its number in events. */
  readonly id: number
  /** @internal Whether it is watched for being collected as garbage. */
  declare isWatched: boolean
  /** @internal Calls inside its function that wait, and those inside of these. */
  declare waits: number
  /** @internal See `around`. */
  declare within: Permit | undefined
  /** @internal Its place among the functions that run. */
  place = NOWHERE
  /** @internal The signal of who waited for it; `undefined` for requests that the throttle itself hears. */
  outer: AbortSignal | null | undefined = undefined
  /** @internal Aborts what its function does, where that has a `requestTimeout`. */
  declare stop: AbortController | undefined
  /**
   * @internal How often its request may be sent again, or its function called again. It is unknown until the
   * function or the first answer says it.
   */
  declare left: number | undefined
  /** @internal How its function waits for its next call, where there may be one. */
  declare again: Wait | undefined
  /** @internal What became of it, where it was settled while its function ran. */
  declare verdict: { readonly verdict: Verdict; readonly askedMs: number } | undefined
  /** @internal Whether its server gave a good answer. */
  declare isGood: boolean
  /** @internal The waits of its request's own retries: they are no time of its function's. */
  declare pause: Pause | undefined
  /** @internal What it was to cost: in all of its scopes, or in each. */
  readonly cost: number | readonly number[]
  /** @internal What has been taken for it in each of its scopes, where that may be something else. */
  declare charged: readonly number[] | undefined
  /** @internal Whether `adjust` was called. */
  declare isAdjusted: boolean
  /** @internal The method of its request, of a call of `fetch` alone. */
  declare method: string | undefined
  /** @internal The permit of the same request that came after this one. */
  declare next: Permit | undefined
  readonly #scheduler: PermitOwner
  #isSettled = false

  // Few permits have one of these, and each field that is not there is eight bytes less.
  static {
    Object.assign(Permit.prototype, {
      isWatched: false,
      waits: 0,
      within: undefined,
      stop: undefined,
      left: undefined,
      again: undefined,
      verdict: undefined,
      isGood: false,
      pause: undefined,
      charged: undefined,
      isAdjusted: false,
      method: undefined,
      next: undefined,
    })
  }

  /** @internal */
  constructor(
    scheduler: PermitOwner,
    ticket: Ticket,
    id: number,
    scopes: readonly string[],
    cost: number | readonly number[],
    target: Target,
    sentAt: number,
  ) {
    this.#scheduler = scheduler
    this.ticket = ticket
    this.id = id
    this.scopes = scopes
    this.cost = cost
    this.target = target
    this.sentAt = sentAt
  }

  /** Whether it was settled, or its request was sent by `fetch`, which settles it. */
  get isSettled(): boolean {
    return this.#isSettled
  }

  /**
   * Sends the request that the permit is for, and reads its answer for the throttle. It is bound, so you can
   * take it out: `map(urls, async (url, { fetch }) => (await fetch(url)).text())`. A second call rejects with
   * a `TypeError`. If `run` or `map` has `retry`, it repeats the request whatever its method, else as the
   * throttle's `retry` says.
   */
  get fetch(): (input: RequestInfo | URL, init?: RequestInit) => Promise<Response> {
    return (input, init) => this.#scheduler.send(this, input, init)
  }

  /** Aborts when the answer is no longer wanted: by the caller's signal, or by `requestTimeout`. */
  get signal(): AbortSignal {
    if (this.stop) return joined(this.outer ?? null, this.stop)
    this.outer ??= new AbortController().signal
    return this.outer
  }

  /**
   * Gives the slots back and says what happened. Only the first call counts.
   *
   * @throws {TypeError} if status or headers make no sense; the slots come back all the same.
   * @throws {ConfigError} if `cost` makes no sense beside the costs that were expected; likewise.
   * @throws {ManagerError} if `scopes` makes no sense, or a scope's manager throws; the slots come back all
   *   the same.
   */
  settle(outcome: PermitOutcome = NOTHING): void {
    if (this.take()) this.#scheduler.settle(this, outcome)
  }

  /**
   * Corrects what the request costs, as often as more is known, also after it was settled: a map of scope to
   * cost, or a number where all of its scopes had one cost. Bound, as `fetch` is. Requests that come later
   * pay for a higher cost; what is less comes back.
   *
   * @throws {ConfigError} for what is no cost, and for a scope that is not the request's.
   */
  get adjust(): (cost: NonNullable<PermitOutcome['cost']>) => void {
    return (cost) => {
      let last: Permit = this
      while (last.next) last = last.next
      this.#scheduler.adjust(last, cost)
    }
  }

  /** @internal Its slots come back when it is collected as garbage. Some runtimes have no registry. */
  watch(): this {
    if (typeof FinalizationRegistry === 'undefined') return this
    registry ??= new FinalizationRegistry(([home, ...lost]) => home.lost(...lost))
    this.isWatched = true
    registry.register(this, [this.#scheduler, this.ticket, this.scopes], this)
    return this
  }

  /** @internal Its request begins only now. */
  startsAt(now: number): void {
    ;(this as { sentAt: number }).sentAt = now
  }

  /**
   * @internal The permit of the function that it was asked for in, or of the next one around that that runs
   * still. Those that are over are forgotten: a function that calls itself anew before it ends, and so on
   * without end, would keep all that were before it.
   */
  get around(): Permit | undefined {
    let { within } = this
    while (within?.place === NOWHERE) within = within.within
    if (within !== this.within) this.within = within
    return within
  }

  /**
   * @internal It was asked for in this one's function. A request that is being sent waits for no call of its
   * context: a socket's events have the context of the request that opened it.
   */
  nest(inside: Permit): void {
    const { around } = inside
    this.within = inside.outer === undefined ? around : inside
  }

  /** @internal Marks it as settled; false if it was. */
  take(): boolean {
    if (this.#isSettled) return false
    this.#isSettled = true
    if (this.isWatched) registry?.unregister(this)
    return true
  }

  /** @internal A permit with its ticket for who sends its request; this one is settled. */
  pass(target: Target): Permit | undefined {
    if (this.#isSettled) return undefined
    const { driver, clock } = this.#scheduler
    driver.reportLateStart(this)
    this.take()
    const { ticket, id, scopes, cost } = this
    const passed = new Permit(this.#scheduler, ticket, id, scopes, cost, target, clock.now())
    const { left, charged, method, isAdjusted, pause, within } = this
    this.next = Object.assign(passed, { left, charged, method, isAdjusted, pause })
    if (within) passed.within = within
    return passed
  }

  /** Settles as *ignored* if it was not settled before. */
  [Symbol.dispose](): void {
    this.settle()
  }
}
