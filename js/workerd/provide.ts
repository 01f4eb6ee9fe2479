/**
 * The module as Cloudflare's Workers want it: imported, and compiled when the Worker is deployed. They cannot compile bytes.
 *
 * The entries beside this file are what package.json gives to runtimes that say `workerd`; all others get plain modules
 * with relative imports, which a page can load without a bundler.
 */
// @ts-expect-error: what a bundler makes of a .wasm file is nothing that TypeScript knows.
import compiled from '../../pkg/autothrottle_bg.wasm'
import { provide } from '../wasm/load/load.js'

provide(() => compiled as WebAssembly.Module)
