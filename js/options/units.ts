/**
 * Delays that look like seconds.
 *
 * The trap is `delay: 2`: milliseconds, so a server gets 500 requests a second from a user who meant one in
 * two seconds.
 */
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
