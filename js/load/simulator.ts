/**
 * Brings the simulator in, on first use and synchronously. A module of its own: throttles do not carry it.
 */
import { initSync, simulate } from '../../pkg/simulator.js'
import packed from '../../pkg/simulator.packed.js'
import { compile } from './bytes.js'

let isLoaded = false
let source = () => compile(packed)

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
