/**
 * Requests of members, as the writer holds them.
 *
 * The trap is a number that is believed twice: turns and grants are counted anew with each story of a member.
 */
import type { Waiter } from '../core/driver.js'
import { CostExceedsQuotaError, QueueFullError } from '../core/errors.js'
import type { Alarm } from '../core/wake.js'
import type { Ticket } from '../wasm/types.js'
import type { Ask, Hello, Refusal, Turn } from './messages.js'

/** One process, as the writer knows it. */
export interface Member {
  readonly id: string
  hello: number
  turns: number
  grants: number
  /** The number of the last order that was heard. */
  orders: number
  seenAt: number
  watch: 0 | 1 | 2
  readonly requests: Map<number, Held>
  /** Turns that came before those that go before them. */
  readonly early: Map<number, Turn>
  granted: (readonly [number, number])[]
  refused: Refusal[]
}

/** A request of a member. */
export class Held implements Waiter {
  readonly signal = null
  alarm: Alarm | undefined
  ticket: Ticket
  readonly scopes: readonly string[]
  readonly member: Member
  readonly id: number
  attempt: number
  isFlying = false
  readonly #granted: (held: Held, at: number) => void

  constructor(member: Member, ask: Ask, ticket: Ticket, granted: (held: Held, at: number) => void) {
    this.member = member
    this.id = ask.id
    this.attempt = ask.attempt
    this.scopes = ask.names
    this.ticket = ticket
    this.#granted = granted
  }

  grant(at: number): void {
    this.isFlying = true
    this.#granted(this, at)
  }

  /** Its member says so itself. */
  fail(): void {}
  abort(): void {}
}

/** A member that says its first story. */
export function memberOf({ from: id }: Hello, seenAt: number): Member {
  const counts = { hello: 0, turns: 0, grants: 0, orders: 0 }
  return {
    ...{ id, ...counts, seenAt, watch: 0, granted: [], refused: [] },
    requests: new Map(),
    early: new Map(),
  }
}

/** Why the engine does not take it. */
export function refusalOf(id: number, error: unknown): Refusal {
  if (error instanceof QueueFullError) return [id, 'full']
  if (error instanceof CostExceedsQuotaError) return [id, 'cost', error.scope ?? null, error.path ?? null]
  return [id, 'wrong', (error as Error).message]
}
