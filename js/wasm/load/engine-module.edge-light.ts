/** The engine's module in edge functions of Next.js and Vercel: imported. They cannot compile bytes. */
// @ts-expect-error: what a bundler makes of a .wasm file is nothing that TypeScript knows.
import compiled from '../../../pkg/autothrottle_bg.wasm?module'

/** The module. */
export const engineModule = (): WebAssembly.Module => compiled
