/** `autothrottle` in Workers. */
import './provide.js'

export * from '../index.js'
