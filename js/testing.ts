/**
 * A clock that tests move by hand, so that a test of an hour takes a millisecond and never flickers.
 *
 * ```ts
 * const clock = new FakeClock()
 * const throttle = createThrottle({ clock })
 * const done = throttle.acquire('https://example.com/')
 * await clock.advance(1000)
 * ```
 */

import { builtin } from './base/builtin.js'
import { kindOf } from './base/checks.js'
import { LONGEST_TIMEOUT } from './base/clock.js'
import type { Clock } from './options/options.js'

/** Work that is not done after this number of turns of the event loop, without a timer, will never be. */
const MOST_TURNS = 100

type Channels = Pick<typeof globalThis, 'MessageChannel'>

interface Timer {
  readonly id: number
  readonly at: number
  readonly wake: () => void
}

export class FakeClock implements Clock {
  #now: number
  #wallOffset: number
  #timers: Timer[] = []
  #made = 0

  /** @param start engine time at the beginning, in milliseconds; wall time starts at `wallStart`. */
  constructor(start = 0, wallStart: number = Date.UTC(2026, 0, 1)) {
    checkMillis(start)
    this.#now = start
    this.#wallOffset = wallStart - start
  }

  now(): number {
    return this.#now
  }

  wallNow(): number {
    return this.#now + this.#wallOffset
  }

  setTimeout(wake: () => void, ms: number): unknown {
    // As Node and browsers have it: what is no number is at once, and what is too long is soon.
    const wait = ms > LONGEST_TIMEOUT ? 1 : ms > 0 ? ms : 0
    const timer = { id: ++this.#made, at: this.#now + wait, wake }
    this.#timers.push(timer)
    return timer.id
  }

  clearTimeout(handle: unknown): void {
    this.#timers = this.#timers.filter(({ id }) => id !== handle)
  }

  /** How many timers are armed. */
  get timers(): number {
    return this.#timers.length
  }

  /** When the next timer fires, in milliseconds of engine time; `Infinity` if none is armed. */
  get nextAt(): number {
    return this.#timers.reduce((least, { at }) => Math.min(least, at), Number.POSITIVE_INFINITY)
  }

  /**
   * Lets `ms` milliseconds pass. Timers fire in order, each at its own instant, and whatever promises they
   * resolve runs before the next. If timers throw, the others fire all the same, and this rejects with the
   * first error.
   */
  async advance(ms: number): Promise<void> {
    checkMillis(ms)
    const until = this.#now + ms
    const errors: unknown[] = []
    await settled()
    for (let at = this.nextAt; at <= until; at = this.nextAt) {
      this.#now = Math.max(this.#now, at)
      this.#fireDue(errors)
      await settled()
    }
    this.#now = until
    await settled()
    if (errors.length > 0) throw errors[0]
  }

  /**
   * Fires timers in order, each at its own instant, until `work` is done; gives what it gives.
   *
   * @param atMost how many milliseconds may pass, an hour unless you say more.
   * @throws {Error} if `work` is not done then, or waits although no timer is armed.
   */
  async run<T>(work: PromiseLike<T>, atMost = 3_600_000): Promise<T> {
    checkMillis(atMost)
    const until = this.#now + atMost
    let isDone = false
    const over = () => {
      isDone = true
    }
    work.then(over, over)
    for (let idle = 0; idle < MOST_TURNS; idle++) {
      await settled()
      if (isDone) return work
      if (this.nextAt > until && this.#timers.length > 0)
        throw new Error(`the work is not done after ${atMost} ms: settle its permits, resume(), or say more`)
      if (this.#timers.length === 0) continue
      idle = 0
      await this.advance(Math.max(0, this.nextAt - this.#now))
    }
    throw new Error('the work waits although no timer is armed: settle its permits, or resume()')
  }

  /**
   * Moves the clock without firing anything, as when a laptop sleeps: timers fire late, at the next
   * `advance`. Below 0 it turns the clock back, as a broken one does.
   */
  jump(ms: number): void {
    if (!Number.isFinite(ms)) throw new TypeError(`want milliseconds; got ${kindOf(ms)}`)
    this.#now += ms
  }

  /** Moves wall time alone, as when a user sets the clock. */
  setWall(wallMs: number): void {
    this.#wallOffset = wallMs - this.#now
  }

  #fireDue(errors: unknown[]): void {
    const due = this.#timers.filter(({ at }) => at <= this.#now).sort((a, b) => a.at - b.at || a.id - b.id)
    for (const timer of due) {
      // One that fired before it may have cleared it.
      if (!this.#timers.includes(timer)) continue
      this.#timers = this.#timers.filter((each) => each !== timer)
      try {
        timer.wake()
      } catch (error) {
        errors.push(error)
      }
    }
  }
}

/** @throws {TypeError} for what would stop the clock. */
function checkMillis(ms: number): void {
  if (!(typeof ms === 'number' && ms >= 0)) throw new TypeError(`want milliseconds from 0; got ${kindOf(ms)}`)
}

/** One turn of the real event loop: every promise that can move has moved. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    // jsdom has none; Node has, below it.
    const { MessageChannel: Channel } = globalThis.MessageChannel
      ? globalThis
      : (builtin('worker_threads') as Channels)
    const channel = new Channel()
    channel.port1.onmessage = () => {
      channel.port1.close()
      resolve()
    }
    channel.port2.postMessage(undefined)
  })
}
