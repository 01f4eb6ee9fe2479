/**
 * One of several that go on alone, since they cannot ask each other: each with its part of every limit.
 *
 * Its clock runs slower by their number, so gaps, rates and what was learned are divided without a word about
 * them. Slots are no span, and a quota is an amount: those are divided by themselves. The trap is one slot
 * that cannot be divided: each of them has one at least, so scopes with fewer slots than there are processes
 * have more in flight than they should. A request that costs more than a part of a quota waits for the way.
 */
import { LONGEST_TIMEOUT } from '../base/clock.js'
import type { Clock, EngineOptions, QuotaOptions, ScopeOptions } from '../options/options.js'
import type { State } from './messages.js'

/** A quota that names no window has this one, in milliseconds. */
const WINDOW_MS = 60_000

/** What a snapshot says of a quota. */
interface Spent {
  readonly window: number
  readonly sends: readonly (readonly [ago: number, cost: number])[]
}

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

/** The part of one of `share` processes: of slots, and of what a quota gives in its window. */
export function divided(options: EngineOptions, share: number): EngineOptions {
  const { defaults } = options
  const window = (options.window ?? defaults?.window ?? WINDOW_MS) / share
  const at =
    options.window === undefined ? { defaults: { ...part(defaults ?? {}, share), window } } : { window }
  const named = Object.entries(options.scopes ?? {}).map(([name, scope]) => [name, part(scope, share)])
  return {
    ...part(options, share),
    ...(defaults && { defaults: part(defaults, share) }),
    ...(options.scopes && { scopes: Object.fromEntries(named) }),
    ...at,
  }
}

/** The same of a scope's settings. The clock runs slower, so a window has to be shorter to last as long. */
export function part<T extends ScopeOptions>(limits: T, share: number): T {
  const { concurrency, quota, window } = limits
  const one = (each: number | QuotaOptions): number | QuotaOptions => {
    if (typeof each === 'number') return each / share
    const own = each.window === undefined ? {} : { window: each.window / share }
    return { ...each, ...own, limit: each.limit / share }
  }
  return {
    ...limits,
    ...(concurrency !== undefined && { concurrency: Math.max(Math.floor(concurrency / share), 1) }),
    ...(quota !== undefined && {
      quota: typeof quota === 'object' && 'length' in quota ? quota.map(one) : one(quota),
    }),
    ...(window !== undefined && { window: window / share }),
  }
}

/** What was known of all, for one of them: its part of what was used, and spans by its slower clock. */
export function dividedState({ snapshot, settings, ...state }: State, share: number): State {
  const scopes = Object.entries(snapshot.scopes).map(([name, scope]) => {
    const { hold, quotas } = scope as { hold?: number; quotas?: Spent[] }
    const spent = quotas?.map(({ window, sends, ...rest }) => ({
      ...rest,
      window: window / share,
      sends: sends.map(([ago, cost]) => [ago / share, cost / share]),
    }))
    return [name, { ...scope, ...(hold && { hold: hold / share }), ...(spent && { quotas: spent }) }]
  })
  return {
    ...state,
    snapshot: { ...snapshot, scopes: Object.fromEntries(scopes) },
    settings: settings.map(([name, partial]) => [name, part(partial, share)]),
    // Alone it has its part of the slots, and the others theirs.
    members: [],
  }
}
