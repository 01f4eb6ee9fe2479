/**
 * The engine's module, from bytes that travel inside JavaScript. For Node, Workers and edge
 * functions `tools/scripts/dist.mjs` makes another source.
 */
import deflated from '../../../pkg/autothrottle.deflated.js'
import { inflate } from './inflate.js'

/** Its bytes, inflated by this call. */
export const engineModule = () => inflate(deflated)
