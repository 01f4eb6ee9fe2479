/** The simulator's module where there is zlib: Node, Deno, Bun. */
import deflated from '../../../pkg/simulator.deflated.js'
import { compile } from './compile.js'
import { inflate } from './inflate.js'

/** The module; compiled by this call. */
export const simulatorModule = (): WebAssembly.Module => compile(inflate(deflated))
