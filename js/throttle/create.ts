/**
 * How throttles are made: synchronously, and without a timer before the first wait.
 */
import { isThrottle } from '../base/checks.js'
import type { ThrottleOptions } from '../options/options.js'
import { Throttle } from './throttle.js'

/**
 * Makes a throttle, synchronously in every runtime. It has no timer before the first wait.
 *
 * @throws {ConfigError} listing every problem of the options.
 */
export function createThrottle(options: ThrottleOptions = {}): Throttle {
  return new Throttle(options)
}

/** A function with fetch's own signature, for clients that take a custom `fetch`. */
export function throttledFetch(
  throttleOrOptions: Throttle | ThrottleOptions = {},
  send?: typeof fetch,
): Throttle['fetch'] {
  if (isThrottle(throttleOrOptions)) {
    if (send !== undefined)
      throw new TypeError('a throttle has its own fetch: give it as an option of the throttle')
    return (throttleOrOptions as Throttle).fetch
  }
  const options = throttleOrOptions as ThrottleOptions
  return createThrottle(send ? { ...options, fetch: send } : options).fetch
}
