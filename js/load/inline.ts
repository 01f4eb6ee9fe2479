/**
 * Brings the engine's module in: its bytes travel inside JavaScript, and are compiled on first use.
 *
 * The traps: an `await init()` that every user must remember, and work at import, which Workers forbid. Here
 * nothing happens before the first engine is made, and then synchronously (about a millisecond).
 */
import { initSync, parse_crawl_delay, parse_hints, WasmEngine } from '../../pkg/autothrottle.js'
import base64 from '../../pkg/autothrottle_bg.wasm.base64.js'

let isLoaded = false

/** The class of the engine, ready for use. */
export function load(): typeof WasmEngine {
  compile()
  return WasmEngine
}

/** The pure readers, ready for use. */
export function loadFunctions() {
  compile()
  return { parse_hints, parse_crawl_delay }
}

function compile(): void {
  if (isLoaded) return
  initSync({ module: new WebAssembly.Module(bytesOf(base64)) })
  isLoaded = true
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64)
  const bytes = new Uint8Array(text.length)
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index)
  return bytes
}
