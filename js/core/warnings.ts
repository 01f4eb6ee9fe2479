/** Warnings: the event `warning` if it has a listener, else one line on the console. Each comes once. */
import { oneLine } from '../base/text.js'
import { eventOf, type ThrottleEvents, type Topics, type WarningEvent } from './events.js'

/** More scopes than this with a warning each are forgotten, and may be told again. */
const MOST_KNOWN = 10_000

export class Warnings {
  readonly #topics: Topics
  readonly #emit: (event: ThrottleEvents['warning']) => void
  readonly #isPrinted: boolean
  readonly #emitted = new Set<string>()

  constructor(topics: Topics, emit: (event: ThrottleEvents['warning']) => void, isPrinted: boolean) {
    this.#topics = topics
    this.#emit = emit
    this.#isPrinted = isPrinted
  }

  /** Tells it, once for each code and scope, or what else it is about. */
  once(code: WarningEvent['code'], message: string, scope?: string, about = scope): void {
    const key = `${code} ${about ?? ''}`
    if (this.#emitted.has(key)) return
    if (this.#emitted.size >= MOST_KNOWN) this.#emitted.clear()
    this.#emitted.add(key)
    this.emit(code, message, scope)
  }

  /** Tells it, for callers that take care of the once. */
  emit(code: WarningEvent['code'], message: string, scope?: string): void {
    if (this.#topics.warning.hasObservers) this.#emit(eventOf('warning', { code, message, scope }))
    // A scope's name is any text: it neither begins another line nor commands the terminal.
    else if (this.#isPrinted) console.warn(`autothrottle: ${oneLine(message)} (${code})`)
  }
}
