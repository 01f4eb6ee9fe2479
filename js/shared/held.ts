/**
 * Requests of members, as the writer holds them.
 *
 * The trap is a number that is believed twice: turns and grants are counted anew with each story of a member.
 */
import type { Waiter } from '../core/driver.js'
import { CostExceedsQuotaError, QueueFullError } from '../core/errors.js'
import type { Alarm } from '../core/wake.js'
import type { Ticket } from '../wasm/types.js'
import type { Ask, Grant, Refusal, Remembered, Turn } from './messages.js'

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
  /** As {@link Grant.ids}. */
  granted: number[]
  refused: Refusal[]
}

/** What of a request is kept here: the engine has the rest. */
type Known = Pick<Ask, 'id' | 'attempt' | 'names'>

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

  constructor(member: Member, ask: Known, ticket: Ticket, granted: (held: Held, at: number) => void) {
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

/** A member that has told no story yet. */
export function memberOf(id: string, seenAt: number): Member {
  const counts = { hello: 0, turns: 0, grants: 0, orders: 0 }
  return {
    ...{ id, ...counts, seenAt, watch: 0, granted: [], refused: [] },
    requests: new Map(),
    early: new Map(),
  }
}

/** Unlike that of any other request of its member, and of its other attempts. */
export function nameOf({ id, attempt }: { id: number; attempt: number }): string {
  return `${id}/${attempt}`
}

/** What the next writer is told of a member. */
export function rememberedOf({ id, hello, turns, orders, requests }: Member): Remembered {
  const counts = new Map<string, [count: number, names: readonly string[]]>()
  for (const { isFlying, scopes } of requests.values()) {
    if (!isFlying) continue
    const key = scopes.length === 1 ? scopes[0]! : JSON.stringify(scopes)
    const same = counts.get(key)
    if (same) same[0]++
    else counts.set(key, [1, scopes])
  }
  return [id, [hello, turns, orders], [...counts.values()]]
}

/** Why the engine does not take it. */
export function refusalOf(id: number, error: unknown): Refusal {
  if (error instanceof QueueFullError) return [id, 'full']
  if (error instanceof CostExceedsQuotaError) return [id, 'cost', error.scope ?? null, error.path ?? null]
  return [id, 'wrong', (error as Error).message]
}
