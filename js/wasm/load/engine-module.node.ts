/**
 * The engine's module in Node: the file itself. To inflate it takes three milliseconds more up to the first
 * permit, for zlib brings Node's streams in.
 *
 * The trap is a bundle, which has no file beside it: bundlers take another file (condition `module`).
 */
import { readFileSync } from 'node:fs'

/** Its bytes, read by this call. The path is that from `dist/node/`, where this ends up. */
export const engineModule = () => readFileSync(new URL('../../pkg/autothrottle_bg.wasm', import.meta.url))
