/**
 * A request that waits for permission: one object of a fixed shape beside its promise, since a hundred
 * thousand may wait.
 */
import type { Target } from '../scopes/names.js'
import type { Ticket } from '../wasm/engine.js'
import type { Abortable } from './aborts.js'
import type { Permit } from './permit.js'

/** A call at an instant, for a request in flight. */
export interface Alarm {
  cancel(): void
}

/** A request that waits, as its driver sees it. */
export interface Waiter extends Abortable {
  readonly ticket: Ticket
  /** Its number in events. */
  readonly id: number
  readonly scopes: readonly string[]
  readonly cost: number | readonly number[]
  readonly signal: AbortSignal | null
  readonly target: Target
  /** The method of its request, of a call of `fetch` alone. */
  readonly method: string | undefined
  /** Its priority, where none but its one scope, its cost and its age say when it leaves. */
  readonly rank?: number | undefined
  /** The timer that ends the wait, if it has a `maxWait`. */
  alarm: Alarm | undefined
  /** The permit of the function that waits for it. */
  readonly inside?: Permit | undefined
  /** It leaves; it was granted at `at`. */
  grant(at: number): void
  /** It never will. */
  fail(error: unknown): void
}

/** The scheduler's methods that a waiter calls. */
interface WaitingOwner {
  readonly driver: { granted(permit: Permit): void; abandon(waiting: Waiter): void }
  permit(
    ticket: Ticket,
    id: number,
    names: readonly string[],
    cost: Waiter['cost'],
    target: Target,
    at: number,
    method?: string,
  ): Permit
  cancelled(waiting: Waiting, error: unknown): void
}

export class Waiting implements Waiter {
  readonly ticket: Ticket
  readonly id: number
  readonly scopes: readonly string[]
  readonly cost: number | readonly number[]
  /** The permit of the attempt before. */
  readonly before: Permit | undefined
  readonly target: Target
  readonly signal: AbortSignal | null
  readonly method: string | undefined
  readonly rank: number | undefined
  alarm: Alarm | undefined
  readonly inside: Permit | undefined
  readonly #scheduler: WaitingOwner
  /** The promise for the caller. */
  readonly permit: Promise<Permit>
  #resolve!: (permit: Permit) => void
  #reject!: (error: unknown) => void

  constructor(
    scheduler: WaitingOwner,
    ticket: Ticket,
    id: number,
    scopes: readonly string[],
    cost: Waiter['cost'],
    target: Target,
    wait: { readonly signal?: AbortSignal | null; readonly method?: string | undefined },
    rank: number | undefined,
    before: Permit | undefined,
    inside: Permit | undefined,
  ) {
    this.#scheduler = scheduler
    this.ticket = ticket
    this.id = id
    this.scopes = scopes
    this.cost = cost
    this.before = before
    this.target = target
    this.signal = wait.signal ?? null
    this.method = before?.method ?? wait.method
    this.rank = rank
    this.alarm = undefined
    this.inside = inside
    this.permit = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** It leaves. */
  grant(at: number): void {
    try {
      const { ticket, id, scopes, cost, target, method } = this
      const permit = this.#scheduler.permit(ticket, id, scopes, cost, target, at, method)
      const { before, inside } = this
      if (inside) permit.nest(inside)
      if (before) {
        before.next = permit
        permit.left = before.left! - 1
      }
      this.#scheduler.driver.granted(permit)
      this.#resolve(permit)
    } catch (error) {
      this.#reject(error)
    }
  }

  /** It never will. */
  fail(error: unknown): void {
    this.#scheduler.cancelled(this, error)
    this.#reject(error)
  }

  /** The caller no longer wants it. */
  abort(reason: unknown): void {
    this.#scheduler.driver.abandon(this)
    this.fail(reason)
  }
}
