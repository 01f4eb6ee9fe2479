/** `autothrottle/simulate` in Workers, which cannot compile bytes. */
// @ts-expect-error: what a bundler makes of a .wasm file is nothing that TypeScript knows.
import compiled from '../../pkg/simulator_bg.wasm'
import { provideSimulator } from '../load/simulator.js'

provideSimulator(() => compiled as WebAssembly.Module)

export * from '../simulate.js'
