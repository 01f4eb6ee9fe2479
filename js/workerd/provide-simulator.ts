/** The simulator's module as Workers want it: imported, and compiled when the Worker is deployed. */
// @ts-expect-error: what a bundler makes of a .wasm file is nothing that TypeScript knows.
import compiled from '../../pkg/simulator_bg.wasm'
import { provide } from '../wasm/load/simulator.js'

provide(() => compiled as WebAssembly.Module)
