/**
 * Brings the simulator in, on first use and synchronously. A module of its own: throttles do not carry it.
 */
import { initSync, LiveSimulation, Played, simulate } from '../../../pkg/simulator.js'
import { moduleOf } from './module-source.js'
import { simulatorModule } from './simulator-module.js'

let isLoaded = false

/**
 * The simulator, ready for use.
 *
 * @throws {WasmBlockedError} where compiling is forbidden.
 */
export function loadSimulator() {
  if (!isLoaded) initSync({ module: moduleOf('simulator', simulatorModule) })
  isLoaded = true
  return { simulate, LiveSimulation, Played }
}
