/**
 * Brings the readers of language models in, on first use and synchronously. A module of its own: throttles do
 * not carry it.
 */
import { initSync, refusal, throwAs, WasmAsked, WasmBody } from '../../../pkg/llm.js'
import { EngineBrokenError } from '../../base/errors.js'
import { llmModule } from './llm-module.js'
import { moduleOf } from './module-source.js'

export type { WasmAsked, WasmBody }

let isLoaded = false

/**
 * The readers, ready for use.
 *
 * @throws {WasmBlockedError} where compiling is forbidden.
 */
export function loadLlm() {
  if (!isLoaded) {
    initSync({ module: moduleOf('llm', llmModule) })
    throwAs(() => new EngineBrokenError())
    isLoaded = true
  }
  return { WasmAsked, WasmBody, refusal }
}
