/**
 * One scope from outside: what it is doing, and how to change that while it runs.
 */

import { isPlain, misfit, notA } from '../base/checks.js'
import type { Driver } from '../core/driver.js'
import type { ScopeOptions } from '../options/options.js'
import type { ScopeStats } from '../wasm/engine.js'
import type { Handles } from './handles.js'

/** One scope of a throttle. */
export class ScopeControl {
  /** The scope's name. */
  readonly name: string
  readonly #driver: Driver
  readonly #handles: Handles

  readonly #look: (partial: object) => void

  /** @internal `look` warns of settings that make sense, and are hardly meant. */
  constructor(driver: Driver, handles: Handles, name: string, look: (partial: object) => void) {
    this.#driver = driver
    this.#handles = handles
    this.#look = look
    this.name = name
    Object.freeze(this)
  }

  /** Its statistics. */
  get stats(): ScopeStats {
    const { engine, clock } = this.#driver
    return this.#handles.look([this.name], ([handle]) => engine.stats(handle!, clock.now()))
  }

  /**
   * Changes settings and keeps what was learned. It counts at once, also for waiting requests. More slots
   * than `maxInFlight` raise that, unless you typed it. Other scopes keep theirs: 16 beside a `rate`.
   *
   * @throws {ConfigError} listing every problem; then no setting has changed.
   */
  configure(partial: Omit<ScopeOptions, 'manager'>): void {
    if (!isPlain(partial)) throw misfit('configure', 'an object, such as { rate: 5 }', partial)
    this.#change('configure', partial)
    this.#look(partial)
  }

  /** Sends no request for `ms` milliseconds. A longer hold stays. */
  hold(ms: number): void {
    if (typeof ms !== 'number' || !(ms >= 0)) throw notA('hold', 'milliseconds from 0', ms)
    this.#change('hold', ms)
    this.#look({ hold: ms })
  }

  /** Sends no request until `resume`. */
  pause(): void {
    this.#change('pause')
  }

  /** Ends a pause. */
  resume(): void {
    this.#change('resume')
  }

  /**
   * Forgets what was learned and lifts the hold. The spent parts of quotas and budgets stay spent. Settings
   * and what is in flight stay.
   */
  reset(): void {
    this.#change('reset')
  }

  #change(how: 'configure' | 'hold' | 'pause' | 'resume' | 'reset', value?: unknown): void {
    const { engine, clock } = this.#driver
    engine[how](clock.now(), this.#handles.of(this.name).handle, value as never)
    this.#driver.drain()
  }
}
