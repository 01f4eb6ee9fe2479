/**
 * Permits that no code can settle any more, since none has them: their slots come back.
 *
 * The trap is a registry that keeps alive what it watches: it knows the ticket, not the permit.
 */
import type { Desk } from './desk.js'
import type { Permit } from './permit.js'

interface Lost {
  readonly desk: Desk
  readonly ticket: number
  readonly scopes: readonly string[]
}

let registry: FinalizationRegistry<Lost> | undefined

/**
 * Watches a permit that goes out. Made on first use: an import has no effects. Some runtimes have no
 * registry.
 */
export function watchPermit(permit: Permit, desk: Desk): Permit {
  if (typeof FinalizationRegistry === 'undefined') return permit
  registry ??= new FinalizationRegistry(({ desk, ticket, scopes }: Lost) => desk.lost(ticket, scopes))
  permit.isWatched = true
  registry.register(permit, { desk, ticket: permit.ticket, scopes: permit.scopes }, permit)
  return permit
}

/** It was settled. */
export function release(permit: Permit): void {
  registry?.unregister(permit)
}
