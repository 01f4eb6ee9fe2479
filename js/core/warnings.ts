/** Warnings: the event `warning` if it has a listener, else one line on the console. Each comes once. */
import { oneLine } from '../base/text.js'
import { urlTextOf } from '../scopes/names.js'
import type { Outcome } from '../wasm/engine.js'
import { eventOf, type ThrottleEvents, type Topics, type WarningEvent } from './events.js'
import type { Permit } from './permit.js'

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

// Scopes whose requests end without a status: the throttle would not notice a 429 there, and warns. A scope
// that was warned of is looked up no more.

/** How many requests of a scope may end without a status before the warning. */
const NO_STATUS = 20
const HOW_TO_SEND = 'send with the fetch of the permit, ({ fetch }) => …'
/** Scopes whose silent requests are counted. */
const MOST_COUNTED = 10_000

export class MissingStatus {
  readonly #warnings: Warnings
  readonly #hasRobots: boolean
  readonly #counts = new Map<string, number>()
  /** Fast path: the scope of the last warning, whose requests are counted no more. */
  #warned: string | undefined

  /** `hasRobots`: URLs are to be asked about first, which `fetch` alone does. */
  constructor(warnings: Warnings, hasRobots: boolean) {
    this.#warnings = warnings
    this.#hasRobots = hasRobots
  }

  /** A request of the caller's ended. */
  ended({ scopes, target, outer }: Permit, { status, error, backoff, hints, scopes: own }: Outcome): void {
    if (this.#hasRobots && urlTextOf(target) !== undefined) {
      const message = `robots has no effect on what other clients send: ${HOW_TO_SEND}`
      this.#warnings.once('no-effect', message, undefined, 'robots')
    }
    if ((status ?? error ?? backoff ?? hints ?? own) !== undefined) {
      if (this.#counts.size === 0) return
      this.#warned = undefined
      for (const scope of scopes) this.#counts.delete(scope)
      return
    }
    if (scopes[0] === this.#warned && scopes.length === 1) return
    if (urlTextOf(target) === undefined || outer?.aborted) return
    if (this.#counts.size > MOST_COUNTED) this.#counts.clear()
    for (const scope of scopes) {
      const count = (this.#counts.get(scope) ?? 0) + 1
      if (count > NO_STATUS) continue
      this.#counts.set(scope, count)
      if (count < NO_STATUS) continue
      const what = `the last ${NO_STATUS} requests of ${scope} ended without a status, so a 429 has no effect`
      const how = `${HOW_TO_SEND}, return the response, or settle({ status })`
      this.#warnings.once('no-status', `${what}: ${how}`, scope)
      if (scopes.length === 1) this.#warned = scope
    }
  }
}
