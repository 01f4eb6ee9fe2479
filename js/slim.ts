/**
 * `autothrottle/slim`: the main entry without the module in it, for pages. The module is an asset of yours:
 * served compressed, cached, and compiled while it streams. `fromScrapySettings` and `byIp`, which no page
 * can use, are in the main entry alone.
 *
 * ```ts
 * import { createThrottle, initialize } from 'autothrottle/slim'
 * import url from 'autothrottle/slim.wasm?url' // as Vite says it
 *
 * await initialize(fetch(url))
 * const throttle = createThrottle({ defaults: { rampup: true } })
 * ```
 */
export { NotInitializedError } from './base/errors.js'
export * from './throttle/everywhere.js'
export { slimBuild as build } from './wasm/load/build.js'
export { initialize, type ModuleSource } from './wasm/load/initialize.js'
