/**
 * Turns the engine's decisions into calls: who waits, and asking until no more requests may leave.
 *
 * A listener may submit while permits are handed out. Only `drain` asks, therefore, one drain at a time, and
 * none while no request waits. When to ask again is `wake.ts`.
 *
 * A gap is from send to send, but a request begins a microtask after it was granted. A loop that asks for a
 * thousand may go on in between. Until a granted request has started, `now()` stays at its grant: a later
 * grant would otherwise be stamped after it and leave beside it. If a request starts noticeably later than
 * its permit says (`started`), or takes a while to leave (`reportLateStart`: the first `fetch` of a process),
 * the driver tells the engine.
 */

import { TimeoutError } from '../base/errors.js'
import type { Clock } from '../options/options.js'
import { type Ticket, WAIT } from '../wasm/engine.js'
import { Aborts } from './aborts.js'
import type { Host } from './host.js'
import type { Nesting, Requests } from './nesting.js'
import type { Pause } from './pause.js'
import type { Permit } from './permit.js'
import { Places, type Waiters } from './places.js'
import type { Alarm, Waiter } from './waiting.js'
import { type Wake, wakeOf } from './wake.js'

const SOON = /* @__PURE__ */ Promise.resolve()

/** How late after its permit a request may begin without a report to the engine, in milliseconds. */
export const LATE_MS = 0.5

/** The place of a ticket: no two that wait have one. */
const place = (ticket: Ticket) => ticket | 0

/** Whether it can only leave after another that waits, which came before: then there is no need to ask. */
function isBehind({ rank, scopes, cost, inside }: Waiter, other: Waiter): boolean {
  const isAlike = rank !== undefined && rank === other.rank && cost === other.cost
  return isAlike && scopes[0] === other.scopes[0] && inside === undefined
}

export class Driver implements Requests {
  readonly engine: Host
  readonly clock: Clock
  readonly aborts = new Aborts()
  readonly #nesting: Nesting | undefined
  /** By the place of their tickets. Those of a shared engine are never used again. */
  readonly #waiting: Waiters
  /** The newest waiter. */
  #last: Waiter | undefined
  readonly #wake: Wake
  readonly #onRest: () => void
  readonly #onError: (error: unknown) => boolean
  #isDraining = false
  #isStale = false
  #isSoon = false
  /** Permits that were granted and not used yet, and when the first of them was granted. */
  #granted = 0
  #grantedAt = 0
  /** Whether a gap may count from a send: then it is looked at whether it is late. */
  isPaced: boolean

  /**
   * `onRest` is called when everything that could be sent was, `onError` with what the engine throws: true if
   * that was all there is to do.
   */
  constructor(
    engine: Host,
    clock: Clock,
    onRest: () => void,
    onError: (error: unknown) => boolean = () => false,
    nesting?: Nesting,
    isPaced = true,
  ) {
    this.engine = engine
    this.clock = clock
    this.#waiting = engine.listen === undefined ? new Places() : new Map()
    this.#nesting = nesting
    this.#onRest = onRest
    this.#onError = onError
    this.isPaced = isPaced
    this.#wake = wakeOf(clock, this)
  }

  /** Now, as the engine gets it. */
  now(): number {
    return this.#granted > 0 ? this.#grantedAt : this.clock.now()
  }

  /** A permit was granted; `started` follows in this turn of the event loop. */
  granted(permit: Permit): void {
    if (this.#granted++ === 0) this.#grantedAt = permit.sentAt
  }

  /** The request of a permit starts. */
  started(permit: Permit): void {
    if (this.#granted > 0) this.#granted--
    this.reportLateStart(permit)
  }

  /**
   * The request of a permit is on its way only now. Where no gap counts from it, the clock is left alone.
   * `isSent`: it is; else only those that wait for the next one count.
   */
  reportLateStart(permit: Permit, isSent = true): void {
    if (!(this.engine.isAwaited ?? (this.isPaced && (isSent || this.#waiting.size > 0)))) return
    const now = this.clock.now()
    if (now - permit.sentAt < LATE_MS) return
    permit.startsAt(now)
    try {
      this.engine.sentAt(now, permit.ticket)
    } catch (error) {
      if (!this.#onError(error)) throw error
    }
  }

  get inFlight(): number {
    return this.engine.inFlight
  }

  /** How many wait. */
  get waiting(): number {
    return this.#waiting.size
  }

  get waiters(): Iterable<Waiter> {
    return this.#waiting.values()
  }

  /** Whether it waits for a slot, and for no time that is known. */
  isForSlot({ scopes, cost }: Waiter): boolean {
    const handles = scopes.map((scope) => this.engine.find(scope))
    const { reason } = this.engine.peek(this.clock.now(), handles, { cost })
    return reason === 'concurrency' || reason === 'max-in-flight'
  }

  /** Those who wait for this scope alone. */
  waitingFor(scope: string): Waiter[] {
    return [...this.#waiting.values()].filter(({ scopes: [first, other] }) => first === scope && !other)
  }

  /** Keeps who waits for its ticket; `begin` follows. `allowed`: its `maxWait` as it was typed. */
  add(waiting: Waiter, maxWait: number | undefined, allowed = maxWait): void {
    this.#waiting.set(place(waiting.ticket), waiting)
    this.aborts.add(waiting.signal, waiting)
    if (maxWait !== undefined)
      waiting.alarm = this.alarm(maxWait, () => this.end(waiting, new TimeoutError(allowed!)))
  }

  /** Polls the engine for all that wait, and arms the timer for this request. */
  begin(waiting: Waiter): void {
    const last = this.#last
    this.#last = waiting
    if (last === undefined || !this.#waits(last) || !isBehind(waiting, last)) this.drain()
    if (this.#waits(waiting)) this.#wake.begin(waiting)
  }

  #waits(waiting: Waiter): boolean {
    return this.#waiting.get(place(waiting.ticket)) === waiting
  }

  /**
   * A request ended, and no more is to be told of it: asks once for all that end in this turn of the
   * microtasks. In a Worker another request's turn may not wake one.
   */
  ended(at: number): void {
    if (this.clock.isPerRequest) this.drain(at)
    else if (!this.#isSoon) {
      this.#isSoon = true
      SOON.then(this.#askSoon)
    }
  }

  readonly #askSoon = (): void => {
    this.#isSoon = false
    this.changed()
  }

  /** Something changed, at `at` or now: asks if a request waits. */
  changed(at?: number): void {
    if (this.#waiting.size > 0) this.drain(at)
    else this.#rest()
  }

  #rest(): void {
    if (this.#waiting.size === 0) this.#nesting?.rest()
    this.#onRest()
  }

  /** The caller no longer wants it. It gets no answer. */
  abandon(waiting: Waiter): void {
    this.forget(waiting)
    this.#cancel(waiting)
    this.drain()
  }

  /** Rejects all waiting requests, or those of one scope. All have left before one asks again. */
  failAll(error: unknown, scope?: string): void {
    const all = [...this.#waiting.values()]
    const failed = scope === undefined ? all : all.filter(({ scopes }) => scopes.includes(scope))
    for (const waiting of failed) {
      this.forget(waiting)
      this.#cancel(waiting)
    }
    this.drain()
    for (const waiting of failed) waiting.fail(error)
  }

  /** The engine refuses one that waits. */
  refuse(ticket: Ticket, error: unknown): void {
    const waiting = this.#waiting.get(place(ticket))
    if (waiting?.ticket !== ticket) return
    this.forget(waiting)
    waiting.fail(error)
  }

  /** Asks until there is no more to send, then sleeps until there may be. `at`: the time, if it was read. */
  drain(at?: number): void {
    this.#isStale = true
    if (this.#isDraining) return
    this.#isDraining = true
    try {
      while (this.#isStale) {
        this.#isStale = false
        const isStill = this.#granted > 0
        const now = isStill ? this.#grantedAt : (at ?? this.clock.now())
        at = undefined
        let ticket = this.engine.poll(now)
        while (ticket >= 0) {
          const waiting = this.#waiting.get(place(ticket))
          if (waiting) this.#wake.grant(waiting, now)
          ticket = this.engine.poll(now)
        }
        const next = ticket === WAIT ? this.engine.wakeAt : Number.POSITIVE_INFINITY
        if (ticket === WAIT) this.isPaced = true
        this.#wake.sleep(next, isStill ? this.clock.now() : now)
        if (next === Number.POSITIVE_INFINITY && this.#waiting.size > 0)
          this.#nesting?.stuck(this, this.engine.listen !== undefined)
      }
    } catch (error) {
      if (!this.#onError(error)) throw error
    } finally {
      this.#isDraining = false
    }
    this.#rest()
  }

  /** A timer rang: all that was granted has started, for all microtasks have run. */
  wake(): void {
    this.#granted = 0
    this.drain()
  }

  /** Calls `ring` after `ms`, unless it is cancelled. */
  alarm(ms: number, ring: () => void): Alarm {
    return this.#wake.alarm(ms, ring)
  }

  /** The result of the work, unless an answer takes longer than it may: then `abort` hears of it, too. */
  within<T>(work: Promise<T>, ms: number, abort: (error: unknown) => void, pause?: Pause): Promise<T> {
    const end = this.clock.now() + ms
    return new Promise((resolve, reject) => {
      const ring = () => {
        const now = this.clock.now()
        const left = pause ? end + pause.spent(now) - now : 0
        const again = () => {
          alarm = this.alarm(left, ring)
        }
        if (pause?.isOn) pause.ended = again
        else if (left > 0) again()
        else {
          const error = new TimeoutError(ms, true)
          reject(error)
          abort(error)
        }
      }
      let alarm = this.alarm(ms, ring)
      work.finally(() => alarm.cancel()).then(resolve, reject)
    })
  }

  /** It leaves: called by what wakes it. */
  grant(waiting: Waiter, at: number): void {
    this.forget(waiting)
    waiting.grant(at)
  }

  /** It was granted and never came: called by what wakes it. */
  giveBack(waiting: Waiter): void {
    this.forget(waiting)
    this.#cancel(waiting)
    this.#isStale = true
  }

  /** It waits no longer, if it waits still. */
  end(waiting: Waiter, error: unknown): void {
    if (!this.#waits(waiting)) return
    this.forget(waiting)
    this.#cancel(waiting)
    waiting.fail(error)
    this.drain()
  }

  #cancel({ ticket }: Waiter): void {
    try {
      this.engine.cancel(this.clock.now(), ticket)
    } catch (error) {
      if (!this.#onError(error)) throw error
    }
  }

  /** It waits no longer; the caller tells the engine. */
  forget(waiting: Waiter): void {
    if (!this.#waiting.delete(place(waiting.ticket))) return
    if (this.#last === waiting) this.#last = undefined
    waiting.alarm?.cancel()
    this.#nesting?.unblock(waiting.inside)
    this.aborts.remove(waiting.signal, waiting)
    this.#wake.end(waiting)
  }
}
