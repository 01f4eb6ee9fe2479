/**
 * Options that make sense to the engine, and hardly to who typed them.
 *
 * The traps: `delay: 2` is milliseconds, so a server gets 500 requests a second from a user who meant one in
 * two seconds; and `API.example` in `scopes` is the scope of no URL, since hosts are in small letters.
 */
import { hostOfName } from '../scopes/names.js'
import type { ScopeOptions, ThrottleOptions } from './options.js'

/** Below it a delay is nearly always meant in seconds. */
const LEAST_LIKELY_MS = 20

/** What to say of the first delay that looks like seconds, if there is one. */
export function delayInSeconds({ defaults, scopes, ...short }: ThrottleOptions): string | undefined {
  const places: [string, ScopeOptions | undefined][] = [
    ['', short as ScopeOptions],
    ['defaults.', defaults],
    ...Object.entries(scopes ?? {}).map(([name, scope]): [string, ScopeOptions] => [
      `scopes.${JSON.stringify(name)}.`,
      scope,
    ]),
  ]
  for (const [path, place] of places)
    for (const key of ['delay', 'slotDelay'] as const) {
      const ms = place?.[key]
      if (ms === undefined || !(ms > 0 && ms < LEAST_LIKELY_MS)) continue
      const rate = Math.round(1000 / ms)
      const seconds = `for ${ms} s type ${ms * 1000}`
      return `${path}${key} is in milliseconds: ${ms} is ${rate} requests a second; ${seconds}`
    }
  return undefined
}

/** Whether a send may keep the next one waiting for a time, as far as it was typed. */
export function isPaced({ defaults, scopes, robots, snapshot, shared, ...short }: ThrottleOptions): boolean {
  const { delay, slotDelay, rate, quota, rampup, autothrottle, manager, ...more } = { ...short, ...defaults }
  const others = [rate, quota, rampup, autothrottle, manager, more.followRateLimit]
  return delay !== 0 || [slotDelay, scopes, robots, snapshot, shared, ...others].some(Boolean)
}

/** What to say of each name in `scopes` and `hints` that no URL has for its scope. */
export function namesOfNone({ scopes, hints, getScopes }: ThrottleOptions): [name: string, said: string][] {
  // A hook may give any name.
  if (getScopes !== undefined) return []
  return ['scopes', 'hints'].flatMap((key) =>
    Object.keys((key === 'scopes' ? scopes : hints) ?? {}).flatMap((name): [string, string][] => {
      const said = saidOfName(name)
      return said === undefined ? [] : [[name, `${key}.${JSON.stringify(name)} ${said}`]]
    }),
  )
}

/** What to say of a name that no URL has for its scope; `undefined` where one may. */
export function saidOfName(name: string): string | undefined {
  if (/^(?=.*\*)[\w.*-]+$/.test(name)) {
    const all = 'defaults are for all hosts, getScopes: byDomainHierarchy() is for those of one domain'
    return `has no effect: names of scopes are no patterns; ${all}`
  }
  const host = hostOfName(name)
  return host === undefined
    ? undefined
    : `has no effect: it is the scope of no URL; type ${JSON.stringify(host)}`
}
