/** The engine's module inside JavaScript. */
import base64 from '../../pkg/autothrottle_bg.wasm.base64.js'
import { compile } from './bytes.js'

/** Compiles the module. */
export const wasmModule = (): WebAssembly.Module => compile(base64)
