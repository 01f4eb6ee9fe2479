/**
 * The module as Cloudflare's Workers want it: imported, and compiled when the Worker is deployed. They cannot compile bytes.
 */
// @ts-expect-error: what a bundler makes of a .wasm file is nothing that TypeScript knows.
import compiled from '../../pkg/autothrottle_bg.wasm'

/** The compiled module. */
export function wasmModule(): WebAssembly.Module {
  return compiled as WebAssembly.Module
}
