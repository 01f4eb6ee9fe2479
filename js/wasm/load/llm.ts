/**
 * Brings the readers and budgets of language models in, on first use and synchronously. A module of its own:
 * throttles do not carry it.
 */
import { initSync, refusal, reported, throwAs, WasmAsked, WasmBody, WasmBudgets } from '../../../pkg/llm.js'
import { EngineBrokenError } from '../../base/errors.js'
import { llmModule } from './llm-module.js'
import { moduleOf } from './module-source.js'

export type { WasmAsked, WasmBody, WasmBudgets }

let isLoaded = false

/**
 * They, ready for use.
 *
 * @throws {WasmBlockedError} where compiling is forbidden.
 */
export function loadLlm() {
  if (!isLoaded) {
    initSync({ module: moduleOf('llm', llmModule) })
    throwAs(() => new EngineBrokenError())
    isLoaded = true
  }
  return { WasmAsked, WasmBody, WasmBudgets, refusal, reported }
}
