/**
 * Options that were pasted, checked by `createThrottle` itself: the errors are those of code. What only a
 * driver reads is fine there and means nothing to a simulation, so it is told apart afterwards.
 */
import { createThrottle } from 'autothrottle'

/** Throws what `createThrottle` throws. */
export function check(options) {
  createThrottle(options).close()
}

/** The options without what only a driver reads: a simulation has a network and a clock of its own. */
export function forSimulation(options) {
  const { requestTimeout, robots, hints, redirects, redirectMaxDelay, release, debug, unref, ...rest } =
    options
  return rest
}
