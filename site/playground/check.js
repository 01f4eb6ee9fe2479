/**
 * Options that were pasted, checked by `createThrottle` itself: the errors are those of code. What only a
 * driver reads is fine there and has no meaning in a simulation, so it is sorted out afterwards.
 *
 * The package comes when the page is idle: the first chart needs the simulator alone.
 */

let loaded
/** The package; fetched once. */
export function autothrottle() {
  loaded ??= import('autothrottle')
  return loaded
}

/** Throws what `createThrottle` throws. */
export async function check(options) {
  const { createThrottle } = await autothrottle()
  createThrottle(options).close()
}

/** The options without what only a driver reads: a simulation has a network and a clock of its own. */
export function forSimulation(options) {
  const {
    requestTimeout,
    robots,
    hints,
    redirects,
    redirectMaxDelay,
    release,
    debug,
    unref,
    warnings,
    ...rest
  } = options
  return rest
}
