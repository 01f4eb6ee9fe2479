/**
 * Brings the engine in, on first use and synchronously.
 *
 * No code is compiled before the first engine is made, and then it takes some milliseconds: users await no
 * `init()`, and Workers forbid work at import.
 */
import { initSync, throwAs } from '../../../pkg/autothrottle.js'
import { EngineBrokenError } from '../../base/errors.js'
import { engineModule } from './engine-module.js'
import { moduleOf } from './module-source.js'

export {
  check_driver_options,
  nearest,
  parse_crawl_delay,
  parse_hints,
  WasmEngine,
} from '../../../pkg/autothrottle.js'

let isLoaded = false

/**
 * Makes the module's class and functions ready for use.
 *
 * @throws {WasmBlockedError} where compiling is forbidden.
 */
export function prepare(): void {
  if (isLoaded) return
  initSync({ module: moduleOf('engine', engineModule) })
  throwAs(() => new EngineBrokenError())
  isLoaded = true
}
