/**
 * A program that ends while requests wait says so: its event loop has no more work that could let them go.
 *
 * The trap is a permit that is never settled. The request behind it waits for good. Node finds no work to
 * do and ends without a word: with code 13, or with 0 inside of `main()`. An import has no effects:
 * the listener is added when the first request waits.
 */

/** Who may be left waiting. */
export interface Stuck {
  /** The program ends. */
  tellStuck(): void
}

type Process = { on?(event: 'beforeExit', listener: () => void): void }

const stuck = new Set<Stuck>()
let isListening = false

/**
 * Requests wait. Node, Bun and Deno have an event for it, which comes only if no timer or socket keeps them
 * alive.
 */
export function watchExit(one: Stuck): void {
  stuck.add(one)
  if (isListening) return
  isListening = true
  const { process } = globalThis as { process?: Process }
  process?.on?.('beforeExit', () => {
    for (const each of [...stuck]) each.tellStuck()
  })
}

/** None waits any more. */
export function unwatchExit(one: Stuck): void {
  stuck.delete(one)
}
