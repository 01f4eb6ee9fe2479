/**
 * Modules of Node's, where there are any (Deno and Bun have them too): asked for at run time, so that no
 * bundler trips over them.
 *
 * The edge functions of Next.js have a `process` whose properties throw when they are read.
 */

/**
 * The module, or `undefined` in a runtime that has none or cannot be asked (Node before 20.16, browsers, edge
 * functions).
 */
export function builtin(name: string): unknown {
  try {
    const { process } = globalThis as { process?: { getBuiltinModule?: (name: string) => unknown } }
    return process?.getBuiltinModule?.(name)
  } catch {
    return undefined
  }
}
