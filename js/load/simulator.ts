/**
 * Brings the simulator in, on first use and synchronously. A module of its own: throttles do not carry it.
 */
import { initSync, simulate } from '../../pkg/simulator.js'
import base64 from '../../pkg/simulator_bg.wasm.base64.js'
import { compile } from './bytes.js'

let isLoaded = false
let source = () => compile(base64)

/** Another source of the module than the bytes inside JavaScript. Before the first use. */
export function provideSimulator(other: () => WebAssembly.Module): void {
  source = other
}

/** The simulator, ready for use. */
export function loadSimulator(): typeof simulate {
  if (!isLoaded) initSync({ module: source() })
  isLoaded = true
  return simulate
}
