/**
 * The module of shared limits in Cloudflare's Workers and in edge functions of Next.js and Vercel: imported,
 * and compiled at deployment. They cannot compile bytes.
 */
// @ts-expect-error: what a bundler makes of a .wasm file is unknown to TypeScript.
import compiled from '../../../pkg/shared_bg.wasm?module'

/** The module. */
export const sharedModule = (): WebAssembly.Module => compiled
