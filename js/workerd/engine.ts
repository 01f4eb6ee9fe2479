/** `autothrottle/engine` in Workers. */
import './provide.js'

export * from '../engine.js'
