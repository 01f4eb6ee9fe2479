/** The engine's module inside JavaScript. */
import packed from '../../pkg/autothrottle.packed.js'
import { compile } from './bytes.js'

/** Compiles the module. */
export const wasmModule = (): WebAssembly.Module => compile(packed)
