/** Warnings: the event `warning` if it has a listener, else one line on the console. Each comes once. */
import { type Ears, type ThrottleEvents, WarningEvent } from './events.js'

/** More scopes than this with a warning each are forgotten, and may be told again. */
const MOST_KNOWN = 10_000

export class Warnings {
  readonly #ears: Ears
  readonly #tell: (event: ThrottleEvents['warning']) => void
  readonly #isPrinted: boolean
  readonly #told = new Set<string>()

  constructor(ears: Ears, tell: (event: ThrottleEvents['warning']) => void, isPrinted: boolean) {
    this.#ears = ears
    this.#tell = tell
    this.#isPrinted = isPrinted
  }

  /** Tells it, once for each code and scope, or what else it is about. */
  once(code: WarningEvent['code'], message: string, scope?: string, about = scope): void {
    const key = `${code} ${about ?? ''}`
    if (this.#told.has(key)) return
    if (this.#told.size >= MOST_KNOWN) this.#told.clear()
    this.#told.add(key)
    this.tell(code, message, scope)
  }

  /** Tells it, for callers that take care of the once. */
  tell(code: WarningEvent['code'], message: string, scope?: string): void {
    if (this.#ears.warning.isHeard) this.#tell(new WarningEvent(code, message, scope))
    else if (this.#isPrinted) console.warn(`autothrottle: ${message} (${code})`)
  }
}
