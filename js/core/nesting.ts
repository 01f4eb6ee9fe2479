/**
 * Calls inside functions of `run`, `map` and `wrap`, and inside hooks: which of them waits for a slot that
 * its own function holds.
 *
 * A call is known to be inside while its function has not returned to us yet. After an `await`, V8's
 * asynchronous stack traces say it, read for calls that wait while a function runs. They end inside clients
 * that speak in events (got, undici) and in timers. `AsyncLocalStorage` knows there, too. In Node before 24
 * it slows every promise of the process, so it is used with one of those clients alone. From 24 on it doubles
 * the cost of a call. Functions get it once slots are short or calls nest: after the first call that waits
 * while one runs, or is inside one.
 *
 * Where it is not known, time says it: no slot has come back for a while, and requests wait for one.
 */

import { builtin } from '../base/builtin.js'
import { HOW_TO_NEST, NestedError } from '../base/errors.js'
import type { Clock } from '../options/options.js'
import { namedScopes, type Scopes, urlTextOf } from '../scopes/names.js'
import { type Inside, NOTHING, NOWHERE, type Permit } from './permit.js'
import type { Waiter } from './waiting.js'
import type { Warnings } from './warnings.js'

/** The place of a permit whose request is being sent. */
const SENDS = -2
/** The name of the frame that awaits a function. */
export const FRAME = 'autothrottle run'
const HERE = new RegExp(`at async .*${FRAME}`)
/** How many calls that leave at once while functions run are looked at; later, those at powers of two. */
const LOOKED_AT = 16
/** How long no slot comes back before it is looked who holds them, in milliseconds. */
const LOOK_MS = 10_000
/** The look at which a warning says that no slot comes back: after two minutes. */
const LOOKS = 12
/** The advice against forgotten permits. */
export const HOW_TO_SETTLE = 'use `run`, or `using permit = …`'
/** The same, where it may be no permit. */
export const HOW_TO_END = `${HOW_TO_SETTLE}, read bodies, set requestTimeout`

interface Storage {
  run<T>(store: Permit, call: (permit: Permit) => T, permit: Permit): T
  getStore(): Permit | undefined
}

/** Waiting requests, as this file reads them. */
export interface Requests {
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
  readonly #clock: Pick<Clock, 'setTimeout' | 'clearTimeout' | 'isPerRequest'>
  readonly #running: Permit[] = []
  #here: Permit | undefined
  /** `null` where there is none for free, `undefined` before the first question. */
  #storage: Storage | null | undefined
  /** Whether functions are called with the storage. */
  #isFollowing = false
  /** Functions that were called before. */
  #unfollowed: Set<Permit> | undefined
  /** Calls that left at once while functions ran. */
  #beside = 0
  /** Whether calls come by clients in which stacks end. */
  #hasClients = false
  /** Calls inside functions that wait. */
  #waits = 0
  /** Counts what leaves and what ends. */
  #moves = 0
  #timer: { handle: unknown } | undefined

  constructor(warnings: Warnings, clock: Pick<Clock, 'setTimeout' | 'clearTimeout' | 'isPerRequest'>) {
    this.#warnings = warnings
    this.#clock = clock
  }

  /** A client sends by this throttle: its calls are followed also where that is not free. */
  followClients(): void {
    this.#hasClients = true
    this.#storage ??= undefined
    this.#follow()
  }

  /** Calls a function; `over` follows when what it gives is there. */
  call<T>(permit: Permit, work: (permit: Permit) => T): T {
    this.#run(permit)
    return this.#within(permit, work, this.#isFollowing ? this.#known : null)
  }

  /** The same for a hook. */
  ask<T>(permit: Permit, hook: (permit: Permit) => T): T {
    this.#run(permit)
    return this.#within(permit, hook, this.#known)
  }

  /** The same for what sends a request: only if it calls the throttle it is one of those that run. */
  send<T>(permit: Permit, work: (permit: Permit) => T): T {
    if (permit.place === NOWHERE) permit.place = SENDS
    return this.#within(permit, work, this.#known)
  }

  #within<T>(permit: Permit, work: (permit: Permit) => T, storage: Storage | null): T {
    const outer = this.#here
    this.#here = permit
    try {
      return storage === null ? work(permit) : storage.run(permit, work, permit)
    } finally {
      this.#here = outer
    }
  }

  over(permit: Permit): void {
    const { place } = permit
    permit.place = NOWHERE
    if (place < 0) return
    this.#moves++
    if (this.#unfollowed !== undefined) this.#unfollowed.delete(permit)
    const last = this.#running.pop()!
    if (last === permit) return
    this.#running[place] = last
    last.place = place
  }

  #run(permit: Permit): void {
    permit.place = this.#running.push(permit) - 1
  }

  /** Whether functions run whose permit is not used yet. */
  get isRunning(): boolean {
    return this.#held().length > 0
  }

  /** The storage, if it may be used. */
  get #known(): Storage | null {
    if (this.#storage === undefined) this.#storage = storage(this.#hasClients)
    return this.#storage
  }

  /** From now on functions are called with the storage. */
  #follow(): void {
    if (this.#isFollowing || this.#known === null) return
    this.#isFollowing = true
    this.#unfollowed = new Set(this.#running.filter((permit) => !isHook(permit)))
  }

  /** How many functions run that the stack alone tells of. */
  get #blind(): number {
    return this.#unfollowed === undefined ? this.#running.length : this.#unfollowed.size
  }

  /** The function that this is known to be called in. */
  get inside(): Inside {
    const inside = this.#here ?? this.#storage?.getStore()
    if (inside !== undefined) this.#follow()
    // A loop that a function began may outlive it: then it is one like any other.
    if (inside !== undefined) return inside.place === NOWHERE ? undefined : inside
    if (this.#blind === 0 || this.#known === null) return undefined
    const count = this.#beside++
    const isLookedAt = count < LOOKED_AT || (count & (count - 1)) === 0
    return (isLookedAt && this.#isInStack()) || undefined
  }

  /** The same, also by the stack. */
  where(): Inside {
    return this.inside ?? this.isTraced()
  }

  /** Whether the stack says that this, which may wait, is called in a function that runs. */
  isTraced(): boolean {
    if (this.#blind === 0) return false
    const isInside = this.#isInStack()
    this.#follow()
    return isInside
  }

  #isInStack(): boolean {
    const isInside = HERE.test(stack())
    if (isInside) this.#follow()
    return isInside
  }

  /**
   * The unused permit of the function, if a call for these scopes is the request that it is for. One with a
   * delay of its own, or with a cost that the permit did not take, is another request.
   */
  unused(inside: Inside, scopes: Scopes, cost = 1, delay = 0): Permit | undefined {
    if (delay > 0) return undefined
    const { names, costs } = namedScopes(scopes)
    const all = inside === true ? this.#running : inside ? [inside] : []
    for (const permit of all) {
      if (permit.isSettled || isHook(permit) || permit.scopes.length !== names.length) continue
      const isSame = names.every((name, index) => {
        const at = permit.scopes.indexOf(name)
        const taken = typeof permit.cost === 'number' ? permit.cost : permit.cost[at]
        const isDefault = costs === undefined && cost === 1
        return at >= 0 && (isDefault || (costs?.[index] ?? cost) === taken)
      })
      if (isSame) return permit
    }
    return undefined
  }

  /** A call inside waits; gives the function that waits for it. */
  block(inside: Inside): Permit | undefined {
    const held = inside === true ? this.#held() : []
    const permit = inside === true ? (held.find(({ waits }) => waits === 0) ?? held[0]) : inside
    if (!permit) return undefined
    for (const outer of around(permit)) {
      if (outer.place === SENDS) this.#run(outer)
      outer.waits++
    }
    this.#waits++
    return permit
  }

  /** One waits no longer, perhaps a call inside a function. */
  unblock(inside: Permit | undefined): void {
    this.#moves++
    if (inside === undefined) return
    for (const outer of around(inside)) outer.waits--
    this.#waits--
  }

  /**
   * Requests wait, and none may leave before one ends, or another process says so. If all that is in flight
   * are functions that wait for calls inside them, no other code can give a slot back: their slots are.
   */
  stuck(requests: Requests, isShared: boolean): void {
    if (!isShared && this.#free(requests)) return
    // A timer of one request in a Worker is none for others.
    if (this.#clock.isPerRequest && this.#waits === 0) return
    this.#watch(requests, isShared, 1)
  }

  /** No request waits. */
  rest(): void {
    if (this.#timer) this.#clock.clearTimeout(this.#timer.handle)
    this.#timer = undefined
  }

  #free(requests: Requests): boolean {
    if (this.#waits === 0) return false
    const held = this.#held()
    if (held.length !== requests.inFlight || held.some(({ waits }) => waits === 0)) return false
    for (const waiting of requests.waiters) if (waiting.inside && !requests.isForSlot(waiting)) return false
    const functions = held.filter((permit) => !isHook(permit))
    if (functions.length > 0) {
      const message = 'functions of run, map or wrap hold all slots that calls inside wait for'
      const how = 'their slots are given back; raise `concurrency` or `maxInFlight`'
      this.#warnings.once('nested', `${message} (${scopesOf(functions)}): ${how}`)
    }
    for (const permit of functions) permit.settle(NOTHING)
    // Hooks run before their answer is settled, so their permits keep the slot.
    for (const waiting of [...requests.waiters])
      if (waiting.inside && isHook(waiting.inside))
        requests.end(waiting, new NestedError(urlTextOf(waiting.target) ?? scopesOf([waiting])))
    return true
  }

  /** Looks again later, unless something moves until then. */
  #watch(requests: Requests, isShared: boolean, looks: number): void {
    if (this.#timer) return
    const moves = this.#moves
    const timer = { handle: undefined as unknown }
    this.#timer = timer
    timer.handle = this.#clock.setTimeout(() => {
      if (this.#timer !== timer) return
      this.#timer = undefined
      const isStill = this.#moves === moves
      if (isStill && isShared && this.#free(requests)) return
      if (isStill) this.#guess(requests, looks)
      this.#watch(requests, isShared, isStill ? looks + 1 : 1)
    }, LOOK_MS)
  }

  /**
   * A waiting call for the very URL that a function without the storage is called for counts as its own.
   * Of all else that holds slots there can only be a warning.
   */
  #guess(requests: Requests, looks: number): void {
    const held = this.#held()
    const areFunctions = held.length === requests.inFlight
    const isBlind = (permit: Permit) => this.#unfollowed?.has(permit) ?? !(this.#storage && isHook(permit))
    const blind = held.filter(isBlind)
    if (areFunctions ? blind.length === 0 : looks !== LOOKS) return
    const stuck = [...requests.waiters].filter((waiting) => requests.isForSlot(waiting))
    const urls = new Set(blind.map(({ target }) => urlTextOf(target)))
    for (const waiting of areFunctions ? stuck : []) {
      const url = urlTextOf(waiting.target)
      const { method = (waiting.target as { method?: unknown } | undefined)?.method } = waiting
      if (method !== undefined && url !== undefined && urls.has(url))
        requests.end(waiting, new NestedError(url))
    }
    if (looks !== LOOKS || stuck.length === 0) return
    const message = `no slot of ${scopesOf(stuck)} came back for 2 minutes`
    const how = areFunctions ? HOW_TO_NEST : HOW_TO_END
    const code = areFunctions ? 'nested' : 'unsettled'
    this.#warnings.once(code, `${message}, and ${stuck.length} requests wait: ${how}`)
  }

  /** Functions whose permit is not used yet. */
  #held(): Permit[] {
    return this.#running.filter(({ isSettled }) => !isSettled)
  }
}

/** The scopes of the first, in words. */
export function scopesOf(all: Iterable<Pick<Permit, 'scopes'>>): string {
  return [...new Set([...all].flatMap(({ scopes }) => scopes))].slice(0, 3).join(', ')
}

/** A permit, and those of the functions around it. */
function* around(permit: Permit): Iterable<Permit> {
  for (let outer: Permit | undefined = permit; outer; outer = outer.around) yield outer
}

/** A hook holds the permit of a request that the throttle itself hears. */
function isHook({ outer }: Permit): boolean {
  return outer === undefined
}

/** `AsyncLocalStorage` where it is no hook at every promise, or is wanted all the same. */
function storage(isWanted: boolean): Storage | null {
  const { AsyncLocalStorage } = (builtin('async_hooks') ?? {}) as { AsyncLocalStorage?: new () => Storage }
  if (AsyncLocalStorage === undefined) return null
  if (!isWanted && '_enable' in AsyncLocalStorage.prototype) return null
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
