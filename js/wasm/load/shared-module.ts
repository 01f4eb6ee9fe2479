/**
 * The module of shared limits, from bytes that travel inside JavaScript. Node, Workers and edge functions
 * take another file.
 */
import deflated from '../../../pkg/shared.deflated.js'
import { inflate } from './inflate.js'

/** Its bytes, inflated by this call. */
export const sharedModule = () => inflate(deflated)
