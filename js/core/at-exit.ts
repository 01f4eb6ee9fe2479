/**
 * A program that ends while requests wait, or have not ended, says so: its event loop has no more work that
 * could let them go.
 *
 * The trap is a permit that is never settled, or a function of `run` that never ends. Node finds no work to
 * do and ends without a word: with code 13, or with 0 inside of `main()`. An import has no effects:
 * the listener is added with the first throttle. It keeps no throttle in memory.
 */

/** Who may be left waiting. */
export interface Stuck {
  /** The program ends. */
  tellStuck(): void
}

type Process = { on?(event: 'beforeExit', listener: () => void): void }
type Platform = { readonly process?: Process; readonly EdgeRuntime?: string }

const stuck = new Set<WeakRef<Stuck>>()
let isListening = false

/**
 * Node, Bun and Deno have an event for it, which comes only if no timer or socket keeps them alive. The
 * caller keeps `one`.
 */
export function watchExit(one: Stuck): void {
  const { process, EdgeRuntime } = globalThis as Platform
  // Next.js ends a build where code of its edge so much as looks at `process.on`.
  if (EdgeRuntime !== undefined || typeof WeakRef === 'undefined') return
  if (typeof process?.on !== 'function') return
  for (const each of stuck) if (each.deref() === undefined) stuck.delete(each)
  stuck.add(new WeakRef(one))
  if (isListening) return
  isListening = true
  process.on('beforeExit', () => {
    for (const each of [...stuck]) each.deref()?.tellStuck()
  })
}
