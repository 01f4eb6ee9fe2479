/**
 * A program that ends while requests wait, or have not ended, says so: its event loop has no more work that
 * could let them go.
 *
 * The trap is a permit that is never settled, or a function of `run` that never ends. Node finds no work to
 * do and ends without a word: with code 13, or with 0 inside of `main()`. An import has no effects:
 * the listener is added with the first throttle.
 *
 * A throttle that only its own requests know could be collected before it speaks. So the newest throttle is
 * kept, and those whose requests were not over when another was made.
 */

/** Who may be left waiting. */
export interface Stuck {
  /** Whether no request waits, and none is under way. */
  readonly isIdle: boolean
  /** The program ends. */
  tellStuck(): void
}

type Process = { on?(event: 'beforeExit', listener: () => void): void }
type Platform = { readonly process?: Process; readonly EdgeRuntime?: string }

const stuck = new Set<WeakRef<Stuck>>()
const kept = new Set<Stuck>()
let isListening = false

/**
 * Node, Bun and Deno have an event for it, which comes only if no timer or socket keeps them alive. The
 * caller keeps `one`.
 */
export function watchExit(one: Stuck): void {
  const { process, EdgeRuntime } = globalThis as Platform
  // Next.js ends a build where code of its edge so much as looks at `process.on`.
  if (EdgeRuntime !== undefined || typeof process?.on !== 'function') return
  for (const each of stuck) if (each.deref() === undefined) stuck.delete(each)
  for (const each of kept) if (each.isIdle) kept.delete(each)
  stuck.add(new WeakRef(one))
  kept.add(one)
  if (isListening) return
  isListening = true
  process.on('beforeExit', () => {
    for (const each of [...stuck]) each.deref()?.tellStuck()
  })
}
