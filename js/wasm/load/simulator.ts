/**
 * Brings the simulator in, on first use and synchronously. A module of its own: throttles do not carry it.
 */
import { initSync, simulate } from '../../../pkg/simulator.js'
import { simulatorModule } from './simulator-module.js'

let isLoaded = false

/**
 * The simulator, ready for use.
 *
 * @throws {WasmBlockedError} where compiling is forbidden.
 */
export function loadSimulator(): typeof simulate {
  if (!isLoaded) initSync({ module: simulatorModule() })
  isLoaded = true
  return simulate
}
