/**
 * Requests of members, as the writer holds them.
 *
 * The trap is a number that is believed twice: turns and grants are counted anew with each story of a member.
 */

import { CostExceedsQuotaError, QueueFullError, ScopeDownError } from '../base/errors.js'
import type { Waiter } from '../core/driver.js'
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
  /** The engine's instant at which the last of them was. */
  grantedAt: number
  refused: Refusal[]
}

/**
 * A request of a member. What of it is not here, the engine has.
 *
 * A class: as an object that is put together of others, with functions of its own, it took six microseconds.
 */
export class Held implements Waiter {
  readonly signal = null
  alarm = undefined
  readonly member: Member
  readonly id: number
  attempt: number
  readonly scopes: readonly string[]
  readonly ticket: Ticket
  isFlying: boolean
  /** The engine's instant at which it was granted. */
  at = 0
  readonly #owed: Set<Member>

  /** @param owed where its member stands while it has to be told. */
  constructor(
    member: Member,
    { id, attempt, names }: Pick<Ask, 'id' | 'attempt' | 'names'>,
    ticket: Ticket,
    isFlying: boolean,
    owed: Set<Member>,
  ) {
    this.member = member
    this.id = id
    this.attempt = attempt
    this.scopes = names
    this.ticket = ticket
    this.isFlying = isFlying
    this.#owed = owed
  }

  grant(at: number): void {
    this.isFlying = true
    this.at = this.member.grantedAt = at
    this.member.granted.push(this.id, this.attempt)
    this.#owed.add(this.member)
  }

  /** Its member says so itself. */
  fail(): void {}

  /** Its member says so itself. */
  abort(): void {}
}

/** A member that has told no story yet. */
export function memberOf(id: string, seenAt: number): Member {
  return {
    ...{ id, hello: 0, turns: 0, grants: 0, orders: 0, seenAt, watch: 0 },
    ...{ requests: new Map(), early: new Map(), granted: [], grantedAt: 0, refused: [] },
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
  if (error instanceof ScopeDownError) return [id, 'down', error.scope, error.forMs]
  return [id, 'wrong', (error as Error).message]
}
