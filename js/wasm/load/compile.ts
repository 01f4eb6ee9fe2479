/**
 * From bytes to a module.
 *
 * The trap is a page whose policy forbids WebAssembly, where the browser's own error does not say what to
 * write.
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
