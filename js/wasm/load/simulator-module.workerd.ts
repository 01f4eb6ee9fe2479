/**
 * The simulator's module in Cloudflare's Workers: imported, and compiled at deployment. Workers cannot
 * compile bytes.
 */
// @ts-expect-error: what a bundler makes of a .wasm file is nothing that TypeScript knows.
import compiled from '../../../pkg/simulator_bg.wasm'

/** The module. */
export const simulatorModule = (): WebAssembly.Module => compiled
