/**
 * The engine's module in Cloudflare's Workers: imported, and compiled at deployment. Workers cannot compile
 * bytes.
 */
// @ts-expect-error: what a bundler makes of a .wasm file is nothing that TypeScript knows.
import compiled from '../../../pkg/autothrottle_bg.wasm'

/** The module. */
export const engineModule = (): WebAssembly.Module => compiled
