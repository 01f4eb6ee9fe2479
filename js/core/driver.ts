/**
 * Turns the engine's decisions into calls: who waits, and asking until nobody may leave.
 *
 * The traps: a listener that submits while we are handing out permissions, and work for nobody. So only
 * `drain` asks, one drain at a time, and none while nobody waits. When to ask again is `wake.ts`.
 */

import type { Clock } from '../options/options.js'
import { type Engine, type Ticket, WAIT } from '../wasm/engine.js'
import { Aborts } from './aborts.js'
import { TimeoutError } from './errors.js'
import type { Waiting } from './waiting.js'
import { type Alarm, type Wake, wakeOf } from './wake.js'

export class Driver {
  readonly engine: Engine
  readonly clock: Clock
  readonly aborts = new Aborts()
  readonly #waiting = new Map<Ticket, Waiting>()
  readonly #wake: Wake
  readonly #onRest: () => void
  #isDraining = false
  #isStale = false

  /** `onRest` is called when everything that could be sent was. */
  constructor(engine: Engine, clock: Clock, onRest: () => void) {
    this.engine = engine
    this.clock = clock
    this.#onRest = onRest
    this.#wake = wakeOf(clock, this)
  }

  /** Whether nobody waits: then a request may leave at once, and an answer lets nobody go. */
  get isFree(): boolean {
    return this.#waiting.size === 0 && !this.#isDraining
  }

  /** Keeps who waits for its ticket; `begin` follows. */
  add(waiting: Waiting, timeout: number | undefined): void {
    this.#waiting.set(waiting.ticket, waiting)
    if (waiting.signal) this.aborts.add(waiting.signal, waiting)
    if (timeout !== undefined) waiting.alarm = this.alarm(timeout, () => this.#expire(waiting, timeout))
  }

  /** Asks for everybody, and sees to it that it is asked again for this one. */
  begin(waiting: Waiting): void {
    this.drain()
    if (this.#waiting.get(waiting.ticket) === waiting) this.#wake.begin(waiting)
  }

  /** Something changed: asks if anybody waits. */
  changed(): void {
    if (this.#waiting.size > 0) this.drain()
    else this.#onRest()
  }

  /** The caller no longer wants it. Nobody is told. */
  abandon(waiting: Waiting): void {
    this.#forget(waiting)
    this.engine.cancel(this.clock.now(), waiting.ticket)
    this.drain()
  }

  /** Tells those who wait (for one scope) that there is no use. All leave before anybody is asked again. */
  failAll(error: unknown, scope?: string): void {
    const now = this.clock.now()
    const failed = [...this.#waiting.values()].filter(
      ({ scopes }) => scope === undefined || scopes.includes(scope),
    )
    for (const waiting of failed) {
      this.#forget(waiting)
      this.engine.cancel(now, waiting.ticket)
    }
    this.drain()
    for (const waiting of failed) waiting.fail(error)
  }

  /** Asks until there is nothing more to send, then sleeps until there may be. */
  drain(): void {
    this.#isStale = true
    if (this.#isDraining) return
    this.#isDraining = true
    try {
      while (this.#isStale) {
        this.#isStale = false
        const now = this.clock.now()
        let ticket = this.engine.poll(now)
        while (ticket >= 0) {
          const waiting = this.#waiting.get(ticket)
          if (waiting) this.#wake.grant(waiting, now)
          ticket = this.engine.poll(now)
        }
        this.#wake.sleep(ticket === WAIT ? this.engine.wakeAt : Number.POSITIVE_INFINITY, now)
      }
    } finally {
      this.#isDraining = false
    }
    this.#onRest()
  }

  /** Calls `ring` after `ms`, unless it is cancelled. */
  alarm(ms: number, ring: () => void): Alarm {
    return this.#wake.alarm(ms, ring)
  }

  /** It leaves: called by what wakes it. */
  grant(waiting: Waiting, at: number): void {
    this.#forget(waiting)
    waiting.grant(at)
  }

  /** It was granted and never came: called by what wakes it. */
  giveBack(waiting: Waiting): void {
    this.#forget(waiting)
    this.engine.cancel(this.clock.now(), waiting.ticket)
    this.#isStale = true
  }

  #expire(waiting: Waiting, timeout: number): void {
    this.#forget(waiting)
    this.engine.cancel(this.clock.now(), waiting.ticket)
    waiting.fail(new TimeoutError(timeout))
    this.drain()
  }

  #forget(waiting: Waiting): void {
    if (!this.#waiting.delete(waiting.ticket)) return
    waiting.alarm?.cancel()
    if (waiting.signal) this.aborts.remove(waiting.signal, waiting)
    this.#wake.end(waiting)
  }
}
