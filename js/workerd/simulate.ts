/** `autothrottle/simulate` in Workers. */
import './provide-simulator.js'

export * from '../simulate.js'
