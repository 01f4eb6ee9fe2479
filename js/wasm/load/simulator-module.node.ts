/** The simulator's module in Node: the file itself, as with the engine's. */
import { readFileSync } from 'node:fs'
import { compile } from './compile.js'

/** The module; read and compiled by this call. The path is that from `dist/node/`, where this ends up. */
export const simulatorModule = (): WebAssembly.Module =>
  compile(readFileSync(new URL('../../pkg/simulator_bg.wasm', import.meta.url)))
