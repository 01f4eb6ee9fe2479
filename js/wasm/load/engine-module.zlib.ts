/**
 * The engine's module where there is zlib and perhaps no file beside: Deno, Bun, and what bundlers make
 * for Node.
 */
import deflated from '../../../pkg/autothrottle.deflated.js'
import { compile } from './compile.js'
import { inflate } from './inflate.js'

/** The module; compiled by this call. */
export const engineModule = (): WebAssembly.Module => compile(inflate(deflated))
