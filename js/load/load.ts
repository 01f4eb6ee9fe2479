/**
 * Brings the engine in, on first use and synchronously.
 *
 * The traps: an `await init()` that every user must remember, and work at import, which Workers forbid. Here
 * nothing happens before the first engine is made, and then it takes some milliseconds.
 */
import { initSync, parse_crawl_delay, parse_hints, WasmEngine } from '../../pkg/autothrottle.js'
import { wasmModule } from './inline.js'

let isLoaded = false
let compile = wasmModule

/** Another source of the module than the bytes inside JavaScript. Before the first use. */
export function provide(source: () => WebAssembly.Module): void {
  compile = source
}

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
  initSync({ module: compile() })
  isLoaded = true
}
