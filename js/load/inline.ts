/**
 * The module as bytes that travel inside JavaScript: the one way that every runtime and bundler knows.
 */
import base64 from '../../pkg/autothrottle_bg.wasm.base64.js'

/** Compiles the module. */
export function wasmModule(): WebAssembly.Module {
  const text = atob(base64)
  const bytes = new Uint8Array(text.length)
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index)
  return new WebAssembly.Module(bytes)
}
