/**
 * The engine's module, from bytes that travel inside JavaScript. Node, Workers and edge functions take
 * another file.
 */
import deflated from '../../../pkg/autothrottle.deflated.js'
import { compile } from './compile.js'
import { inflate } from './inflate.js'

/** The module; compiled by this call. */
export const engineModule = (): WebAssembly.Module => compile(inflate(deflated))
