/**
 * Brings shared limits in, on first use and synchronously. A module of its own, with the engine inside:
 * throttles of one process do not carry it.
 */
import { initSync, throwAs, WasmShared } from '../../../pkg/shared.js'
import { EngineBrokenError } from '../../base/errors.js'
import { moduleOf } from './module-source.js'
import { sharedModule } from './shared-module.js'

export type { WasmShared }

let isLoaded = false

/**
 * The class of the machine, ready for use.
 *
 * @throws {WasmBlockedError} where compiling is forbidden.
 */
export function loadShared(): typeof WasmShared {
  if (isLoaded) return WasmShared
  initSync({ module: moduleOf('shared', sharedModule) })
  throwAs(() => new EngineBrokenError())
  isLoaded = true
  return WasmShared
}
