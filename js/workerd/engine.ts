/** `autothrottle/engine` in Workers. */
import './provide.js'

export * from '../wasm/engine.js'
