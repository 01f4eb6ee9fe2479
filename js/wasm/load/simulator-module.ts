/**
 * The simulator's module, from bytes that travel inside JavaScript. Node, Workers and edge functions take
 * another file.
 */
import packed from '../../../pkg/simulator.packed.js'
import { compile } from './compile.js'
import { unpack } from './unpack.js'

/** The module; compiled by this call. */
export const simulatorModule = (): WebAssembly.Module => compile(unpack(packed))
