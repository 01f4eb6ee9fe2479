/**
 * Brings the engine in, on first use and synchronously.
 *
 * The traps: an `await init()` that every user must remember, and work at import, which Workers forbid. Here
 * nothing happens before the first engine is made, and then it takes about a millisecond. Where the module comes from is
 * the business of `#wasm`, which package.json resolves by runtime.
 */
import { wasmModule } from '#wasm'
import { initSync, parse_crawl_delay, parse_hints, WasmEngine } from '../../pkg/autothrottle.js'

let isLoaded = false

/** The class of the engine, ready for use. */
export function load(): typeof WasmEngine {
  prepare()
  return WasmEngine
}

/** The pure readers, ready for use. */
export function loadFunctions() {
  prepare()
  return { parse_hints, parse_crawl_delay }
}

function prepare(): void {
  if (isLoaded) return
  initSync({ module: wasmModule() })
  isLoaded = true
}
