/**
 * The engine's module, from bytes that travel inside JavaScript. Node, Workers and edge functions take
 * another file.
 */
import packed from '../../../pkg/autothrottle.packed.js'
import { compile } from './compile.js'
import { unpack } from './unpack.js'

/** The module; compiled by this call. */
export const engineModule = (): WebAssembly.Module => compile(unpack(packed))
