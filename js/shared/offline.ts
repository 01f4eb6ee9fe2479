/**
 * One of several that go on alone, since they cannot ask each other: each with its part of every limit.
 *
 * Its clock runs slower by their number, so gaps, rates, quotas and what was learned are divided without a
 * word about them; slots are no span and are divided by themselves. The trap is one slot that cannot be
 * divided: each of them has one at least, so scopes with fewer slots than there are processes have more in
 * flight than they should.
 */
import { LONGEST_TIMEOUT } from '../core/clock.js'
import type { Clock, EngineOptions, ScopeOptions } from '../options/options.js'

/**
 * A clock that is ahead by `ahead()` milliseconds, and runs slower by `share`. It stands still where that
 * becomes less.
 */
export function derived(clock: Clock, ahead: () => number, share: number): Clock {
  const from = clock.now()
  let last = Number.NEGATIVE_INFINITY
  return {
    now: () => {
      last = Math.max(last, from + (clock.now() - from) / share + ahead())
      return last
    },
    wallNow: () => clock.wallNow(),
    setTimeout: (wake, ms) => clock.setTimeout(wake, Math.min(ms * share, LONGEST_TIMEOUT)),
    clearTimeout: (handle) => clock.clearTimeout(handle),
  }
}

/** The options with each slot's part. */
export function divided(options: EngineOptions, share: number): EngineOptions {
  const part = <T extends { concurrency?: number } | undefined>(limits: T): T =>
    limits?.concurrency === undefined
      ? limits
      : { ...limits, concurrency: Math.max(Math.floor(limits.concurrency / share), 1) }
  const scopes = Object.entries(options.scopes ?? {}).map(
    ([name, scope]) => [name, part(scope)] as [string, ScopeOptions],
  )
  return {
    ...part(options),
    ...(options.defaults && { defaults: part(options.defaults) }),
    ...(options.scopes && { scopes: Object.fromEntries(scopes) }),
  }
}
