/**
 * The simulator's module, from bytes that travel inside JavaScript. Node, Workers and edge functions take
 * another file.
 */
import deflated from '../../../pkg/simulator.deflated.js'
import { compile } from './compile.js'
import { inflate } from './inflate.js'

/** The module; compiled by this call. */
export const simulatorModule = (): WebAssembly.Module => compile(inflate(deflated))
