/** The module of shared limits in CommonJS: the file itself. */
import { readFileSync } from 'node:fs'

declare const __dirname: string

/** Its bytes, read by this call. The path is that from `dist/cjs/`, where this ends up. */
export const sharedModule = () => readFileSync(`${__dirname}/../../pkg/shared_bg.wasm`)
