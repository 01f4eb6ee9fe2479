/**
 * The simulator's module, from bytes that travel inside JavaScript. For Node, Workers and edge
 * functions `tools/scripts/dist.mjs` makes another source.
 */
import deflated from '../../../pkg/simulator.deflated.js'
import { inflate } from './inflate.js'

/** Its bytes, inflated by this call. */
export const simulatorModule = () => inflate(deflated)
