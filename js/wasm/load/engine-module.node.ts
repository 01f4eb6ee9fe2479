/**
 * The engine's module in Node: the file itself. To inflate it took as long as all the rest up to the first
 * permit, for zlib brings Node's streams in.
 *
 * The trap is a bundle, which has no file beside it: bundlers take another file (condition `module`).
 */
import { readFileSync } from 'node:fs'
import { compile } from './compile.js'

/** The module; read and compiled by this call. The path is that from `dist/node/`, where this ends up. */
export const engineModule = (): WebAssembly.Module =>
  compile(readFileSync(new URL('../../pkg/autothrottle_bg.wasm', import.meta.url)))
