/**
 * How those who wait are woken: by one timer, or each by its own where a timer belongs to the request that
 * armed it.
 *
 * The traps: a timer per request; a timer that fires early, late or twice and is believed; a wait of forty
 * days, which `setTimeout` turns into none. Waking up therefore only ever means asking again. In Cloudflare's
 * Workers a timer ends with its request and may not wake another: there each waiter looks for itself, and
 * takes what another request's answer has granted it.
 *
 * A timer knows whole milliseconds and fires a part of one late. A gap is from send to send and never shorter
 * than the delay, so each lateness would be added to the next gap: 4 % of a delay of 10 ms. Where one scope
 * sends every 10 to 100 ms, the timer is therefore a millisecond short. The rest is waited for by turns of
 * the event loop. That costs a tenth of a processor at most. Above 100 ms a late millisecond is below 1 %;
 * below 10 ms the turns would cost more than a tenth of a processor.
 */

import { LONGEST_TIMEOUT } from '../base/clock.js'
import type { Clock } from '../options/options.js'
import { Deadlines } from './deadlines.js'
import type { Alarm, Waiter } from './waiting.js'

/** The callbacks of the timer. */
export interface Sleeper {
  /** A timer rang: asks the engine. */
  wake(): void
  /** The request leaves; it was granted at `at`. */
  grant(waiting: Waiter, at: number): void
  /** Gives back a grant that is not taken. */
  giveBack(waiting: Waiter): void
}

/** How those who wait are woken. */
export interface Wake {
  /** A request waits, and the engine was asked. */
  begin(waiting: Waiter): void
  /** The engine lets it go: now, or when it looks. */
  grant(waiting: Waiter, now: number): void
  /** It waits no longer. */
  end(waiting: Waiter): void
  /** All were asked at `now`; there is no work before `at`. Rings what is due. */
  sleep(at: number, now: number): void
  /** Calls `ring` after `ms`, unless it is cancelled. */
  alarm(ms: number, ring: () => void): Alarm
}

export function wakeOf(clock: Clock, sleeper: Sleeper): Wake {
  return clock.isPerRequest ? new OwnTimers(clock, sleeper) : new OneTimer(clock, sleeper)
}

/** Gaps between two sends of a scope that are met by turns, in milliseconds: between, rounded as they are. */
const TURNED = [9.99, 99.9] as const
/** How much earlier the timer fires then: what it may be late, and what the engine rounds up. */
const TURNS_MS = 1.01

/** One timer for everybody. */
class OneTimer implements Wake {
  readonly #clock: Clock
  readonly #sleeper: Sleeper
  readonly #alarms = new Deadlines()
  #at = Number.POSITIVE_INFINITY
  #timer: { handle: unknown; at: number } | undefined
  /** The scope that sent last, when, and how long after it had sent before; 0 if another did. */
  #scope: string | undefined
  #sent = 0
  #gap = 0

  constructor(clock: Clock, sleeper: Sleeper) {
    this.#clock = clock
    this.#sleeper = sleeper
  }

  begin(): void {}

  end(): void {}

  grant(waiting: Waiter, now: number): void {
    const scope = waiting.scopes[0]
    this.#gap = scope === this.#scope ? now - this.#sent : 0
    this.#scope = scope
    this.#sent = now
    this.#sleeper.grant(waiting, now)
  }

  sleep(at: number, now: number): void {
    this.#at = at
    for (let due = this.#alarms.takeDue(now); due; due = this.#alarms.takeDue(now)) due.expire()
    this.#arm(now)
  }

  alarm(ms: number, ring: () => void): Alarm {
    const now = this.#clock.now()
    const deadline = this.#alarms.add(now + ms, ring)
    this.#arm(now)
    const cancel = () => {
      this.#alarms.strike(deadline)
      this.#arm(this.#clock.now())
    }
    return { cancel }
  }

  /**
   * A timer that fires too early does no harm, so one that is armed for earlier stays, unless no request
   * waits at all.
   */
  #arm(now: number): void {
    const at = Math.min(this.#at, this.#alarms.next)
    if (this.#timer && this.#timer.at <= at && at !== Number.POSITIVE_INFINITY) return
    if (this.#timer?.handle !== undefined) this.#clock.clearTimeout(this.#timer.handle)
    this.#timer = undefined
    if (at === Number.POSITIVE_INFINITY) return
    const isTurned = this.#gap > TURNED[0] && this.#gap < TURNED[1] && this.#clock.setImmediate
    const early = isTurned ? TURNS_MS : 0
    if (isTurned && at - now < early) {
      this.#turn(at, now)
      return
    }
    const ms = Math.min(Math.max(Math.ceil(at - now - early), 1), LONGEST_TIMEOUT)
    const timer = { handle: undefined as unknown, at: Math.min(at, now + ms) }
    this.#timer = timer
    timer.handle = this.#clock.setTimeout(() => this.#wake(timer), ms)
  }

  /**
   * Wakes at `at`, which is near, and lets the event loop go round until then. If the clock stands still, as
   * in tests that replace it, a timer has to do.
   */
  #turn(at: number, now: number): void {
    const timer = { handle: undefined, at }
    this.#timer = timer
    const turn = (before: number): void => {
      if (this.#timer !== timer) return
      const now = this.#clock.now()
      if (now >= at) this.#wake(timer)
      else if (now > before) this.#clock.setImmediate!(() => turn(now))
      else {
        this.#timer = undefined
        this.#gap = 0
        this.#arm(now)
      }
    }
    this.#clock.setImmediate!(() => turn(now))
  }

  #wake(timer: { at: number }): void {
    if (this.#timer === timer) this.#timer = undefined
    this.#sleeper.wake()
  }
}

/**
 * A waiter looks so often whether another request's answer let it go, in milliseconds: about a server's
 * latency.
 */
const LOOK_MS = 50
/**
 * A grant that is not taken for this long, in milliseconds, is given back: its request has ended without a
 * word.
 */
const UNCLAIMED_MS = 10_000

/** A waiter's own timer, and when it was granted. */
interface Look {
  timer: unknown
  granted: number | undefined
}

/** A timer for each. */
class OwnTimers implements Wake {
  readonly #clock: Clock
  readonly #sleeper: Sleeper
  readonly #looks = new Map<Waiter, Look>()
  #granted = 0
  #at = Number.POSITIVE_INFINITY

  constructor(clock: Clock, sleeper: Sleeper) {
    this.#clock = clock
    this.#sleeper = sleeper
  }

  begin(waiting: Waiter): void {
    const look: Look = { timer: undefined, granted: undefined }
    this.#looks.set(waiting, look)
    this.#look(waiting, look)
  }

  grant(waiting: Waiter, now: number): void {
    const look = this.#looks.get(waiting)
    if (look) {
      look.granted = now
      this.#granted++
    } else this.#sleeper.grant(waiting, now)
  }

  end(waiting: Waiter): void {
    const look = this.#looks.get(waiting)
    if (!look) return
    this.#looks.delete(waiting)
    if (look.granted !== undefined) this.#granted--
    if (look.timer !== undefined) this.#clock.clearTimeout(look.timer)
  }

  sleep(at: number, now: number): void {
    this.#at = at
    if (this.#granted === 0) return
    for (const [waiting, { granted }] of this.#looks)
      if (granted !== undefined && now - granted >= UNCLAIMED_MS) this.#sleeper.giveBack(waiting)
  }

  alarm(ms: number, ring: () => void): Alarm {
    const timer = this.#clock.setTimeout(ring, Math.min(ms, LONGEST_TIMEOUT))
    return { cancel: () => this.#clock.clearTimeout(timer) }
  }

  /** In its own request's time it takes what it was granted, or looks again. */
  #look(waiting: Waiter, look: Look): void {
    if (this.#looks.get(waiting) !== look) return
    if (look.granted !== undefined) {
      this.#sleeper.grant(waiting, look.granted)
      return
    }
    const ms = Math.min(Math.max(Math.ceil(this.#at - this.#clock.now()), 1), LOOK_MS)
    look.timer = this.#clock.setTimeout(() => {
      look.timer = undefined
      this.#sleeper.wake()
      this.#look(waiting, look)
    }, ms)
  }
}
