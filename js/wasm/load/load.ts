/**
 * Brings the engine in, on first use and synchronously.
 *
 * No code is compiled before the first engine is made, and then it takes some milliseconds: users await no
 * `init()`, and Workers forbid work at import.
 */
import {
  check_driver_options,
  initSync,
  nearest,
  parse_crawl_delay,
  parse_hints,
  throwAs,
  WasmEngine,
} from '../../../pkg/autothrottle.js'
import { EngineBrokenError } from '../../base/errors.js'
import { engineModule } from './engine-module.js'
import { moduleOf } from './given.js'

let isLoaded = false

function prepare(): void {
  if (isLoaded) return
  initSync({ module: moduleOf('engine', engineModule) })
  throwAs(() => new EngineBrokenError())
  isLoaded = true
}

/**
 * The class of the engine, ready for use.
 *
 * @throws {WasmBlockedError} where compiling is forbidden.
 */
export function load(): typeof WasmEngine {
  prepare()
  return WasmEngine
}

/** The pure readers, ready for use. */
export function loadFunctions() {
  prepare()
  return { check_driver_options, nearest, parse_hints, parse_crawl_delay }
}
