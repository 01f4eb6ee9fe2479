/**
 * Requests of members, as the writer holds them.
 *
 * The trap is a number that is believed twice: turns and grants are counted anew with each story of a member.
 */
import type { Waiter } from '../core/driver.js'
import { CostExceedsQuotaError, QueueFullError } from '../core/errors.js'
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

/** A request of a member. What of it is not here, the engine has. */
export interface Held extends Waiter, Pick<Ask, 'id'> {
  readonly member: Member
  attempt: number
  isFlying: boolean
  /** The engine's instant at which it was granted. */
  at: number
}

/** A member that has told no story yet. */
export function memberOf(id: string, seenAt: number): Member {
  return {
    ...{ id, hello: 0, turns: 0, grants: 0, orders: 0, seenAt, watch: 0 },
    ...{ requests: new Map(), early: new Map(), granted: [], refused: [] },
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
