/**
 * The simulator's module in Cloudflare's Workers and in edge functions of Next.js and Vercel: imported, and
 * compiled at deployment. They cannot compile bytes.
 */
// @ts-expect-error: TypeScript does not know what a bundler makes of a .wasm file.
import compiled from '../../../pkg/simulator_bg.wasm?module'

/** The module. */
export const simulatorModule = (): WebAssembly.Module => compiled
