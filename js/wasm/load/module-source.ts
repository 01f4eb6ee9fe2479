/**
 * The sources of the modules. The package's code is there once for all ES modules; an entry of a runtime, or
 * `initialize` of `autothrottle/slim`, says where its WebAssembly comes from.
 */
import { WasmBlockedError } from '../../base/errors.js'

type Source = () => WebAssembly.Module | Uint8Array<ArrayBuffer>

type Name = 'engine' | 'simulator' | 'shared' | 'llm'

const sources: { [name in Name]?: Source } = {}

/** Says where a module comes from, for all that is made from now on. */
export function setModuleSource(name: Name, source: Source): void {
  sources[name] = source
}

/**
 * A module, compiled by this call: of the source that was set, else of `here`.
 *
 * @throws {WasmBlockedError} where compiling is forbidden.
 */
export function moduleOf(name: Name, here: Source): WebAssembly.Module {
  const made = (sources[name] ?? here)()
  return ArrayBuffer.isView(made) ? compile(made as Uint8Array<ArrayBuffer>) : made
}

// From bytes to a module.
//
// Where a page's policy forbids WebAssembly, the browser's own error does not say what to write.

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
