/** The module of shared limits in Node: the file itself, as with the engine's. */
import { readFileSync } from 'node:fs'

/** Its bytes, read by this call. The path is that from `dist/node/`, where this ends up. */
export const sharedModule = () => readFileSync(new URL('../../pkg/shared_bg.wasm', import.meta.url))
