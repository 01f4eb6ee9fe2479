/**
 * A request that waits for permission: one object of a fixed shape beside its promise, since a hundred
 * thousand may wait.
 */
import type { Target } from '../scopes/names.js'
import type { Ticket } from '../wasm/engine.js'
import type { Desk } from './desk.js'
import type { Waiter } from './driver.js'
import type { Permit } from './permit.js'
import type { Alarm } from './wake.js'

/** What waits. */
type Request = Pick<Waiting, 'ticket' | 'scopes' | 'cost' | 'target' | 'signal' | 'method' | 'rank'>

export class Waiting implements Waiter {
  readonly ticket: Ticket
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
  readonly #desk: Desk
  readonly #resolve: (permit: Permit) => void
  readonly #reject: (error: unknown) => void

  constructor(
    desk: Desk,
    { ticket, scopes, cost, target, signal, method, rank }: Request,
    before: Permit | undefined,
    inside: Permit | undefined,
    resolve: (permit: Permit) => void,
    reject: (error: unknown) => void,
  ) {
    this.#desk = desk
    this.ticket = ticket
    this.scopes = scopes
    this.cost = cost
    this.before = before
    this.target = target
    this.signal = signal
    this.method = method
    this.rank = rank
    this.alarm = undefined
    this.inside = inside
    this.#resolve = resolve
    this.#reject = reject
  }

  /** It leaves. */
  grant(at: number): void {
    try {
      const permit = this.#desk.permit(this.ticket, this.scopes, this.cost, this.target, at, this.method)
      if (this.before) this.before.next = permit
      this.#desk.driver.given(permit)
      this.#resolve(permit)
    } catch (error) {
      this.#reject(error)
    }
  }

  /** It never will. */
  fail(error: unknown): void {
    this.#desk.cancelled(this, error)
    this.#reject(error)
  }

  /** The caller no longer wants it. */
  abort(reason: unknown): void {
    this.#desk.driver.abandon(this)
    this.fail(reason)
  }
}
