/**
 * Who brings the modules. The package's code is there once for all ES modules; an entry of a runtime, or
 * `initialize` of `autothrottle/slim`, says where its WebAssembly comes from.
 */
import { compile } from './compile.js'

type Source = () => WebAssembly.Module | Uint8Array<ArrayBuffer>

type Name = 'engine' | 'simulator' | 'shared'

const given: { [name in Name]?: Source } = {}

/** Says where a module comes from, for all that is made from now on. */
export function give(name: Name, source: Source): void {
  given[name] = source
}

/**
 * A module, compiled by this call: what was given, else what is here.
 *
 * @throws {WasmBlockedError} where compiling is forbidden.
 */
export function moduleOf(name: Name, here: Source): WebAssembly.Module {
  const made = (given[name] ?? here)()
  return ArrayBuffer.isView(made) ? compile(made as Uint8Array<ArrayBuffer>) : made
}
