/**
 * Calls inside functions of `run`, `map` and `wrap`: which of them waits for a slot that its own function
 * holds.
 *
 * A call is known to be inside while its function has not returned to us yet. After an `await`,
 * `AsyncLocalStorage` says it where that is free; in Node before 24 it slows every promise of the process.
 * There V8's asynchronous stack traces say it, read only for calls that wait while a function runs. The
 * traps: to guess where a runtime knows neither, and work for those who do not nest.
 *
 * Where it is not known, time says it: no slot has come back for a while, and functions hold all of them.
 */

import { builtin } from '../base/builtin.js'
import { NestedError } from '../base/errors.js'
import type { Clock } from '../options/options.js'
import { namedScopes, type Scopes, urlTextOf } from '../scopes/names.js'
import type { Waiter } from './driver.js'
import { NOTHING, type Permit } from './permit.js'
import type { Warnings } from './warnings.js'

/**
 * The function that a call is made in: its permit, `true` for one of those that run, `false` for none,
 * `undefined` before the first look.
 */
export type Inside = Permit | boolean | undefined

/** The name of the frame that awaits a function. */
export const FRAME = 'autothrottle run'
const HERE = new RegExp(`at async .*${FRAME}`)
/** How long no slot comes back before it is looked who holds them, in milliseconds. */
const LOOK_MS = 10_000
/** The look at which a warning says that functions hold all slots, where no call inside them is known. */
const LOOKS = 12

interface Storage {
  run<T>(store: Permit, call: (permit: Permit) => T, permit: Permit): T
  getStore(): Permit | undefined
}

/** Who waits, as it is seen from here. */
export interface Crowd {
  /** Requests in flight, of this process. */
  readonly inFlight: number
  readonly waiters: Iterable<Waiter>
  /** Whether it waits for a slot, and for no time that is known. */
  isForSlot(waiting: Waiter): boolean
  end(waiting: Waiter, error: unknown): void
}

export class Nesting {
  readonly #warnings: Warnings
  /** Its timers keep no process alive. */
  readonly #clock: Pick<Clock, 'setTimeout' | 'clearTimeout'>
  readonly #running: Permit[] = []
  #here: Permit | undefined
  /** `null` where there is none for free. */
  #storage: Storage | null | undefined
  /** Calls inside functions that wait. */
  #waits = 0
  /** Counts what leaves and what ends. */
  #moves = 0
  #timer: { handle: unknown } | undefined

  constructor(warnings: Warnings, clock: Pick<Clock, 'setTimeout' | 'clearTimeout'>) {
    this.#warnings = warnings
    this.#clock = clock
  }

  /** Calls a function; `over` follows when what it gives is there. */
  call<T>(permit: Permit, work: (permit: Permit) => T): T {
    if (this.#storage === undefined) this.#storage = storage()
    permit.place = this.#running.push(permit) - 1
    const outer = this.#here
    this.#here = permit
    try {
      return this.#storage === null ? work(permit) : this.#storage.run(permit, work, permit)
    } finally {
      this.#here = outer
    }
  }

  over(permit: Permit): void {
    const { place } = permit
    if (place < 0) return
    permit.place = -1
    this.#moves++
    const last = this.#running.pop()!
    if (this.#timer !== undefined && this.#running.length === 0) this.rest()
    if (last === permit) return
    this.#running[place] = last
    last.place = place
  }

  /** Whether functions run whose permit is not used yet. */
  get isRunning(): boolean {
    return !this.#held().next().done
  }

  /** The function that this is known to be called in. */
  get inside(): Permit | undefined {
    return this.#here ?? this.#storage?.getStore()
  }

  /** The same, also by the stack. */
  where(): Inside {
    return this.inside ?? this.isTraced()
  }

  /** Whether the stack says that this is called in a function that runs. */
  isTraced(): boolean {
    return this.#storage === null && this.#running.length > 0 && HERE.test(stack())
  }

  /** The unused permit of the function, if it is one for these scopes. */
  unused(inside: Inside, scopes: Scopes): Permit | undefined {
    const { names } = namedScopes(scopes)
    const all = inside === true ? this.#running : inside ? [inside] : []
    for (const permit of all) {
      const isSame =
        permit.scopes.length === names.length && names.every((name) => permit.scopes.includes(name))
      if (isSame && !permit.isSettled) return permit
    }
    return undefined
  }

  /** A call inside waits; gives the function that waits for it. */
  block(inside: Inside): Permit | undefined {
    const held = inside === true ? [...this.#held()] : []
    const permit = inside === true ? (held.find(({ waits }) => waits === 0) ?? held[0]) : inside
    if (!permit) return undefined
    permit.waits++
    this.#waits++
    return permit
  }

  /** One waits no longer, perhaps a call inside a function. */
  unblock(inside: Permit | undefined): void {
    this.#moves++
    if (inside === undefined) return
    inside.waits--
    this.#waits--
  }

  /**
   * Requests wait, and none may leave before one ends, or another process says so. If all that is in flight
   * are functions that wait for calls inside them, no other code can give a slot back: their slots are.
   */
  stuck(crowd: Crowd, isShared: boolean): void {
    if (this.#running.length === 0) return
    if (!isShared && this.#free(crowd)) return
    if (this.#storage === null || (isShared && this.#waits > 0)) this.#watch(crowd, isShared, 1)
  }

  /** No request waits, or no function runs. */
  rest(): void {
    if (this.#timer) this.#clock.clearTimeout(this.#timer.handle)
    this.#timer = undefined
  }

  #free(crowd: Crowd): boolean {
    if (this.#waits === 0) return false
    const held = [...this.#held()]
    if (held.length !== crowd.inFlight || held.some(({ waits }) => waits === 0)) return false
    for (const waiting of crowd.waiters) if (waiting.inside && !crowd.isForSlot(waiting)) return false
    const message = `functions of run, map or wrap hold all slots that calls inside them wait for`
    const how = 'their slots are given back; raise `concurrency`'
    this.#warnings.once('nested', `${message} (${scopesOf(held)}): ${how}`)
    for (const permit of held) permit.settle(NOTHING)
    return true
  }

  /** Looks again later, unless something moves until then. */
  #watch(crowd: Crowd, isShared: boolean, looks: number): void {
    if (this.#timer) return
    const moves = this.#moves
    const timer = { handle: undefined as unknown }
    this.#timer = timer
    timer.handle = this.#clock.setTimeout(() => {
      if (this.#timer !== timer) return
      this.#timer = undefined
      const isStill = this.#moves === moves
      if (isStill && isShared && this.#free(crowd)) return
      if (isStill && this.#storage === null) this.#guess(crowd, looks)
      if (this.#running.length > 0) this.#watch(crowd, isShared, isStill ? looks + 1 : 1)
    }, LOOK_MS)
  }

  /**
   * The runtime does not know whose calls wait. One for the very URL that a function is called for is taken
   * for its own; of others it can only be told.
   */
  #guess(crowd: Crowd, looks: number): void {
    const held = [...this.#held()]
    if (held.length === 0 || held.length !== crowd.inFlight) return
    const urls = new Set(held.map(({ target }) => urlTextOf(target)))
    const stuck = [...crowd.waiters].filter((waiting) => crowd.isForSlot(waiting))
    for (const waiting of stuck) {
      const url = urlTextOf(waiting.target)
      if (waiting.method !== undefined && url !== undefined && urls.has(url))
        crowd.end(waiting, new NestedError(url))
    }
    if (looks < LOOKS || stuck.length === 0) return
    const minutes = (LOOKS * LOOK_MS) / 60_000
    const message = `for ${minutes} minutes functions of run, map or wrap hold all slots (${scopesOf(held)})`
    const how =
      'if they call the throttle, let them call the fetch that they are given, ({ fetch }) => fetch(url)'
    this.#warnings.once('nested', `${message}, and requests wait for one: ${how}`)
  }

  /** Functions whose permit is not used yet. */
  *#held(): Generator<Permit> {
    for (const permit of this.#running) if (!permit.isSettled) yield permit
  }
}

function scopesOf(permits: readonly Permit[]): string {
  return [...new Set(permits.flatMap(({ scopes }) => scopes))].join(', ')
}

/** `AsyncLocalStorage` where it is no hook at every promise. */
function storage(): Storage | null {
  const { AsyncLocalStorage } = (builtin('async_hooks') ?? {}) as { AsyncLocalStorage?: new () => Storage }
  if (AsyncLocalStorage === undefined || '_enable' in AsyncLocalStorage.prototype) return null
  return new AsyncLocalStorage()
}

/** The stack as deep as it goes. */
function stack(): string {
  const limited = Error as { stackTraceLimit?: number }
  const before = limited.stackTraceLimit
  limited.stackTraceLimit = 200
  const { stack } = new Error()
  if (before !== undefined) limited.stackTraceLimit = before
  return typeof stack === 'string' ? stack : ''
}
