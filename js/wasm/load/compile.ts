/**
 * From bytes to a module.
 *
 * Where a page's policy forbids WebAssembly, the browser's own error does not say what to write.
 */
import { WasmBlockedError } from '../../base/errors.js'

/**
 * Compiles, synchronously.
 *
 * @throws {WasmBlockedError} where compiling is forbidden.
 */
export function compile(bytes: Uint8Array<ArrayBuffer>): WebAssembly.Module {
  try {
    return new WebAssembly.Module(bytes)
  } catch (cause) {
    // The bytes are ours and whole: only a policy can refuse them.
    throw new WasmBlockedError({ cause })
  }
}
