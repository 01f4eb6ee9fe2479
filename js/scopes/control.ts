/**
 * One scope from outside: what it is doing, and how to change that while it runs.
 */

import { isPlain, kindOf, notA } from '../base/checks.js'
import { ConfigError } from '../base/errors.js'
import type { Driver } from '../core/driver.js'
import type { ScopeOptions } from '../options/options.js'
import type { ScopeHandle, ScopeStats } from '../wasm/engine.js'
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
   * Changes settings and keeps what was learned. It counts at once, also for waiting requests.
   *
   * @throws {ConfigError} listing every problem; then no setting has changed.
   */
  configure(partial: Omit<ScopeOptions, 'manager'>): void {
    if (!isPlain(partial))
      throw new ConfigError([
        { path: 'configure', want: 'an object, such as { rate: 5 }', got: kindOf(partial) },
      ])
    this.#change((now, handle) => this.#driver.engine.configure(now, handle, partial))
    this.#look(partial)
  }

  /** Sends no request for `ms` milliseconds. A longer hold stays. */
  hold(ms: number): void {
    if (typeof ms !== 'number' || !(ms >= 0)) throw notA('hold', 'milliseconds from 0', ms)
    this.#change((now, handle) => this.#driver.engine.hold(now, handle, ms))
    this.#look({ hold: ms })
  }

  /** Sends no request until `resume`. */
  pause(): void {
    this.#change((now, handle) => this.#driver.engine.pause(now, handle))
  }

  /** Ends a pause. */
  resume(): void {
    this.#change((now, handle) => this.#driver.engine.resume(now, handle))
  }

  /** Forgets what was learned and lifts the hold. Settings and what is in flight stay. */
  reset(): void {
    this.#change((now, handle) => this.#driver.engine.reset(now, handle))
  }

  #change(change: (now: number, handle: ScopeHandle) => void): void {
    change(this.#driver.clock.now(), this.#handles.of(this.name).handle)
    this.#driver.drain()
  }
}
