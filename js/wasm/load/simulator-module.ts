/**
 * The simulator's module, from bytes that travel inside JavaScript. Node, Workers and edge functions take
 * another file.
 */
import deflated from '../../../pkg/simulator.deflated.js'
import { inflate } from './inflate.js'

/** Its bytes, inflated by this call. */
export const simulatorModule = () => inflate(deflated)
