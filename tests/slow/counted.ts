/**
 * A module of the package that counts its work: Binaryen puts a call at the head of each loop and of each
 * function of the very module that is shipped.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
// @ts-expect-error: a script without types
import { WASM_FEATURES } from '../../tools/scripts/lib.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
let steps = 0

/** The module with a counter at each loop and function. */
function counted(name: string): WebAssembly.Module {
  const scratch = mkdtempSync(join(tmpdir(), 'autothrottle-linear-'))
  try {
    const out = join(scratch, 'counted.wasm')
    const args = [...WASM_FEATURES, '--log-execution', join(root, `pkg/${name}_bg.wasm`), '-o', out]
    execFileSync(join(root, 'node_modules/.bin/wasm-opt'), args)
    return new WebAssembly.Module(readFileSync(out))
  } finally {
    rmSync(scratch, { recursive: true })
  }
}

/** Makes the bindings of a module use the one that counts. */
export function count(name: string, initSync: (from: { module: WebAssembly.Module }) => unknown): void {
  const { Instance } = WebAssembly
  WebAssembly.Instance = class extends Instance {
    constructor(module: WebAssembly.Module, imports: WebAssembly.Imports = {}) {
      const log_execution = () => {
        steps++
      }
      const own = WebAssembly.Module.imports(module).find(({ name }) => name === 'log_execution')!.module
      super(module, { ...imports, [own]: { ...imports[own], log_execution } })
    }
  }
  initSync({ module: counted(name) })
  WebAssembly.Instance = Instance
}

/** How many loops and calls some work takes. */
export function stepsOf(work: () => void): number {
  steps = 0
  work()
  return steps
}
