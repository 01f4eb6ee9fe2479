/**
 * Turns the engine's decisions into calls, with one timer.
 *
 * The traps: a timer per request; a timer that fires early, late or twice and is believed; a wait of forty days,
 * which `setTimeout` turns into none; a listener that submits while we are handing out permissions. So waking
 * up only ever means asking again, and only `drain` asks. Where a timer belongs to the request that armed it (Workers),
 * each waiter has its own, and takes what another request's drain has granted it.
 */

import type { Clock } from '../options/options.js'
import {
  type Engine,
  type Outcome,
  type ScopeHandle,
  type SubmitOptions,
  type Ticket,
  WAIT,
} from '../wasm/engine.js'
import { LONGEST_TIMEOUT } from './clock.js'
import { type Deadline, Deadlines } from './deadlines.js'
import { TimeoutError } from './errors.js'

/** Who waits for a ticket. Called once, one or the other. */
export interface Waiter {
  /** The scopes of its request. */
  readonly scopes: readonly string[]
  grant(ticket: Ticket, now: number): void
  fail(error: unknown): void
}

interface Waiting {
  waiter: Waiter
  deadline: Deadline | undefined
  /** Where timers are per request: when it was granted, and the timer that will tell. */
  granted?: number
  timer?: unknown
}

/** Where timers are per request, a waiter looks so often whether another request's answer let it go, in milliseconds. */
const LOOK = 50
/** Where the request that was granted has ended without a word, its place is given back after so long. */
const UNCLAIMED = 10_000

export class Driver {
  readonly engine: Engine
  readonly clock: Clock
  readonly #waiting = new Map<Ticket, Waiting>()
  readonly #deadlines = new Deadlines()
  readonly #onRest: () => void
  #timer: { handle: unknown; at: number } | undefined
  readonly #granted = new Set<Ticket>()
  #wakeAt = Number.POSITIVE_INFINITY
  #isDraining = false
  #isStale = false

  /** `onRest` is called after every drain: everything that could be sent was. */
  constructor(engine: Engine, clock: Clock, onRest: () => void) {
    this.engine = engine
    this.clock = clock
    this.#onRest = onRest
  }

  submit(
    scopes: readonly ScopeHandle[],
    options: SubmitOptions & { timeout?: number },
    waiter: Waiter,
  ): Ticket {
    const ticket = this.engine.submit(this.clock.now(), scopes, options)
    this.#wait(ticket, waiter, options.timeout)
    return ticket
  }

  /** The request ended so that it is sent again: its ticket waits anew and keeps its age. */
  retry(ticket: Ticket, outcome: Outcome & { retryDelay: number }, waiter: Waiter, timeout?: number): void {
    this.engine.settle(this.clock.now(), ticket, outcome)
    this.#wait(ticket, waiter, timeout)
  }

  settle(ticket: Ticket, outcome: Outcome): void {
    this.engine.settle(this.clock.now(), ticket, outcome)
    this.drain()
  }

  /** The caller no longer wants it, waiting or sent. Nobody is told. */
  cancel(ticket: Ticket): void {
    this.#forget(ticket)
    this.engine.cancel(this.clock.now(), ticket)
    this.drain()
  }

  /** Tells those who wait (for one scope) that there is no use. All leave before anybody is asked again. */
  failAll(error: unknown, scope?: string): void {
    const now = this.clock.now()
    const failed = [...this.#waiting].filter(
      ([, { waiter }]) => scope === undefined || waiter.scopes.includes(scope),
    )
    for (const [ticket] of failed) {
      this.#forget(ticket)
      this.engine.cancel(now, ticket)
    }
    this.drain()
    for (const [, { waiter }] of failed) waiter.fail(error)
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
          this.#grant(ticket, now)
          ticket = this.engine.poll(now)
        }
        if (this.#granted.size > 0) this.#giveBack(now)
        const wakeAt = ticket === WAIT ? this.engine.wakeAt : Number.POSITIVE_INFINITY
        for (let due = this.#deadlines.takeDue(now); due; due = this.#deadlines.takeDue(now)) due.expire()
        this.#wakeAt = Math.min(wakeAt, this.#deadlines.next)
        if (!this.clock.isPerRequest) this.#arm(this.#wakeAt, now)
      }
    } finally {
      this.#isDraining = false
    }
    this.#onRest()
  }

  #wait(ticket: Ticket, waiter: Waiter, timeout?: number): void {
    const expire = () => this.#expire(ticket, timeout ?? 0)
    const deadline =
      timeout === undefined ? undefined : this.#deadlines.add(this.clock.now() + timeout, expire)
    this.#waiting.set(ticket, { waiter, deadline })
    this.drain()
    if (this.clock.isPerRequest) this.#look(ticket)
  }

  #grant(ticket: Ticket, now: number): void {
    const waiting = this.#waiting.get(ticket)
    if (!waiting) return
    if (this.clock.isPerRequest) {
      waiting.granted = now
      this.#granted.add(ticket)
    } else {
      this.#forget(ticket)
      waiting.waiter.grant(ticket, now)
    }
  }

  /** One waiter's own eyes: in its own request's time it takes what it was granted, or looks again. */
  #look(ticket: Ticket): void {
    const waiting = this.#waiting.get(ticket)
    if (!waiting) return
    if (waiting.granted !== undefined) {
      this.#forget(ticket)
      waiting.waiter.grant(ticket, waiting.granted)
      return
    }
    const ms = Math.min(Math.max(Math.ceil(this.#wakeAt - this.clock.now()), 1), LOOK)
    waiting.timer = this.clock.setTimeout(() => {
      this.drain()
      this.#look(ticket)
    }, ms)
  }

  #giveBack(now: number): void {
    for (const ticket of this.#granted) {
      const granted = this.#waiting.get(ticket)?.granted
      if (granted === undefined || now - granted < UNCLAIMED) continue
      this.#forget(ticket)
      this.engine.cancel(now, ticket)
      this.#isStale = true
    }
  }

  #expire(ticket: Ticket, timeout: number): void {
    const waiting = this.#forget(ticket)
    if (!waiting) return
    this.engine.cancel(this.clock.now(), ticket)
    this.#isStale = true
    waiting.waiter.fail(new TimeoutError(timeout))
  }

  #forget(ticket: Ticket): Waiting | undefined {
    const waiting = this.#waiting.get(ticket)
    if (!waiting) return undefined
    this.#waiting.delete(ticket)
    this.#granted.delete(ticket)
    if (waiting.timer !== undefined) this.clock.clearTimeout(waiting.timer)
    if (waiting.deadline) this.#deadlines.strike(waiting.deadline)
    return waiting
  }

  /** A timer that fires before `at` does no harm, so one that is armed for earlier stays. */
  #arm(at: number, now: number): void {
    if (this.#timer && this.#timer.at <= at && at !== Number.POSITIVE_INFINITY) return
    if (this.#timer) this.clock.clearTimeout(this.#timer.handle)
    this.#timer = undefined
    if (at === Number.POSITIVE_INFINITY) return
    const ms = Math.min(Math.max(Math.ceil(at - now), 1), LONGEST_TIMEOUT)
    const timer = { handle: undefined as unknown, at: Math.min(at, now + ms) }
    this.#timer = timer
    timer.handle = this.clock.setTimeout(() => {
      if (this.#timer === timer) this.#timer = undefined
      this.drain()
    }, ms)
  }
}
