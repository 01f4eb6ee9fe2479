/** The engine's module where there is zlib: Node, Deno, Bun. */
import deflated from '../../../pkg/autothrottle.deflated.js'
import { compile } from './compile.js'
import { inflate } from './inflate.js'

/** The module; compiled by this call. */
export const engineModule = (): WebAssembly.Module => compile(inflate(deflated))
