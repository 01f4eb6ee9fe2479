/**
 * The public face: what a program calls. It checks what it is given, finds the scopes, and leaves the rest to
 * the scheduler (`scheduler.ts`: permits and how they end) and to `fetch/fetch.ts`.
 */
import { isObject, isThrottle } from '../base/checks.js'
import { systemClock } from '../base/clock.js'
import { ClosedError } from '../base/errors.js'
import { watchExit } from '../core/at-exit.js'
import { type ThrottleEvents, ThrottleEventTarget } from '../core/events.js'
import type { Host } from '../core/host.js'
import { checkMapping, type MapOptions, mapItems } from '../core/map.js'
import type { Permit, Wait } from '../core/permit.js'
import {
  checkInit,
  checkItems,
  checkKeys,
  checkOptions,
  checkSignal,
  FETCH_KEYS,
  MAP_KEYS,
  NO_OPTIONS,
  notWork,
  REQUEST_KEYS,
  type RequestOptions,
  RUN_KEYS,
  type RunOptions,
  type ThrottledRequestInit,
  unknownWordIn,
} from '../core/requests.js'
import { Runner } from '../core/run.js'
import { Scheduler } from '../core/scheduler.js'
import { Warnings } from '../core/warnings.js'
import { applyRobots } from '../fetch/crawl-delay.js'
import { Fetcher } from '../fetch/fetch.js'
import { Robots } from '../fetch/robots.js'
import { DRIVER_KEYS, ENGINE_KEYS } from '../options/generated.js'
import type { Clock, ThrottleOptions } from '../options/options.js'
import { splitOptions } from '../options/split.js'
import { isPaced, namesOfNone, problemOfName, warnOfSpans } from '../options/units.js'
import { ScopeControl } from '../scopes/control.js'
import {
  checkedName,
  hostInName,
  hostOf,
  itself,
  namedScopes,
  type Scopes,
  type Target,
  withHint,
} from '../scopes/names.js'
import { ManagedScopes } from '../scopes/strategy.js'
import { Engine, type Peek, type Snapshot, type Stats } from '../wasm/engine.js'

const NO_INIT: RequestInit = {}
const BY_SECOND = 'the second argument of wrap names it'
const BY_TARGET = "map's option target names it"

let methods: string[] | undefined

/**
 * The names of the methods. The first call makes options that are assigned an error. A throttle stays
 * extensible: Deno adds to an event target, and mocks replace a method.
 */
function methodsOf(prototype: object): string[] {
  const names = Object.getOwnPropertyNames(prototype)
  const found = names.filter((name) => {
    const { value } = Object.getOwnPropertyDescriptor(prototype, name)!
    return typeof value === 'function' && name !== 'constructor'
  })
  for (const key of [...DRIVER_KEYS, ...ENGINE_KEYS, 'maxWait', 'timeout']) {
    if (key === 'fetch' || names.includes(key)) continue
    const set = () => {
      throw new TypeError(`${key}: want it as an option, createThrottle({ ${key}: … })`)
    }
    Object.defineProperty(prototype, key, { set, configurable: true })
  }
  return found
}

function handedOut(permit: Permit, { signal = null }: RequestOptions): Permit {
  permit.outer = signal
  return permit.watch()
}

/** Decides when requests leave. Made by {@link createThrottle}. */
export class Throttle extends ThrottleEventTarget {
  readonly #engine: Host
  readonly #scheduler: Scheduler
  readonly #clock: Clock
  readonly #fetcher: Fetcher
  readonly #hasHook: boolean
  readonly #runner: Runner
  readonly #robots: Robots | undefined
  #left: Promise<void> | undefined
  #draining: Promise<void> | undefined
  /** @internal As they were typed, for entries that send by rules of their own. */
  readonly options: ThrottleOptions

  /**
   * @throws {ConfigError} listing every problem of the options.
   * @throws {SnapshotError} listing every problem of the snapshot.
   */
  constructor(options: ThrottleOptions = {}) {
    super()
    // Methods may be taken off: `const { run } = throttle`.
    methods ??= methodsOf(Throttle.prototype)
    for (const name of methods) {
      const value = this[name as 'run'].bind(this)
      Object.defineProperty(this, name, { value, configurable: true, writable: true })
    }
    const { engineOptions, driverOptions } = splitOptions(options)
    const { clock, snapshot, shared, unref, robots, debug, warnings, hints, ...settings } = driverOptions
    const { scopes, manager } = options
    const defaults = manager === undefined ? options.defaults : { ...options.defaults, manager }
    this.options = options
    this.#clock = clock ?? systemClock(unref ?? false)
    const idleClock = clock ?? systemClock(true)
    if (shared === undefined) {
      const engine = new Engine(engineOptions)
      if (snapshot !== undefined) engine.restore(snapshot, this.#clock.now(), this.#clock.wallNow())
      this.#engine = engine
    } else {
      this.#engine = shared.open({ options: engineOptions, snapshot, clock: this.#clock, idleClock })
    }
    const managed = ManagedScopes.areIn(scopes, defaults) ? new ManagedScopes(scopes, defaults) : undefined
    const emit = (event: ThrottleEvents[keyof ThrottleEvents]) => this.emit(event)
    const sink = {
      topics: this.topics,
      emit,
      managed,
      isDebug: debug ?? false,
      warnings: new Warnings(this.topics, emit, warnings ?? true),
      hasRobots: robots !== undefined && robots.obey !== false,
    }
    this.#scheduler = new Scheduler(this.#engine, this.#clock, idleClock, sink, hints, isPaced(options))
    // Settings without effect, once the program had time to add a listener.
    queueMicrotask(() => {
      this.#scheduler.emitNotices()
      warnOfSpans(this.#scheduler.warnings, options)
      this.#warnOfNames()
    })
    this.#scheduler.warnUnusedNames = () => {
      if ((scopes ?? hints) && !this.#scheduler.closed) this.#warnOfNames(Object.keys(this.stats().scopes))
    }
    if (clock === undefined && unref !== true) watchExit(this.#scheduler)
    this.#runner = new Runner(this.#scheduler, settings)
    this.#hasHook = settings.getScopes !== undefined
    if (robots && sink.hasRobots) {
      this.#robots = new Robots(robots, {
        clock: this.#clock,
        fetch: (url, init) => this.#fetcher.fetchRobots(url, init),
        retries: this.#scheduler.retries('GET'),
        within: (call) => this.#runner.within(call),
        report: (host, bytes) => {
          if (!robots.rules && /^[ \t]*disallow[ \t]*:[ \t]*[/*]/im.test(new TextDecoder().decode(bytes))) {
            const message = `Disallow in robots.txt of ${host} has no effect`
            const how = 'type rules of autothrottle/robots into robots'
            this.#scheduler.warnings.once('no-effect', `${message}: ${how}`, undefined, 'Disallow')
          }
          this.robots(host, bytes, robots)
        },
      })
    }
    this.#fetcher = new Fetcher(this.#scheduler, settings, this.#robots)
    this.#scheduler.send = (permit, input, init) => this.#fetcher.send(permit, input, init)
  }

  /**
   * `fetch` that waits for its turn and learns from the answer. Same arguments, same result.
   * `init.signal` aborts the wait as well as the request.
   *
   * @throws {RetryAfterTooLongError} with `retry`, if the server asks for a longer wait than `maxRetryAfter`.
   * @throws {BodyNotReplayableError} with `retry`, if the body is a stream and would be needed again.
   * @throws {DisallowedError} with `robots`, if robots.txt does not allow the URL or could not be had.
   * @throws {TimeoutError} after `maxWait` of waiting, or `requestTimeout` of no answer.
   */
  readonly fetch = (input: RequestInfo | URL, init?: ThrottledRequestInit): Promise<Response> => {
    try {
      const { platform } = this.#fetcher
      if (this.#fetcher.isSending(input)) return platform(input, init)
      if (init !== undefined) this.#check(init)
      if (init?.throttle === undefined) return this.#fetcher.fetch(input, init ?? NO_INIT, NO_OPTIONS)
      const { throttle, ...rest } = init
      const options = throttle ?? NO_OPTIONS
      checkOptions(options, FETCH_KEYS, 'throttle')
      return this.#fetcher.fetch(input, rest, options)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** @internal */
  get scheduler(): Scheduler {
    return this.#scheduler
  }

  /** @internal Whether slots are held until bodies are over, for what sends by other means than `fetch`. */
  get isHeldByBodies(): boolean {
    return this.#fetcher.isHeldByBodies
  }

  /**
   * Waits, calls `fn` with the permit, and settles with what it returns or throws. It reads the responses of
   * any client: `status` or `statusCode` and `headers`, of the result or the error, of their `response`, or
   * of the error's `cause`. If the function returns something else, it sends with the permit's own `fetch`:
   *
   * ```ts
   * const page = await throttle.run(url, async ({ fetch }) => (await fetch(url)).text())
   * ```
   *
   * The first call of the throttle inside `fn` for the same scopes is the request that the permit is for.
   */
  run<T>(
    target: Target,
    fn: (permit: Permit) => T | PromiseLike<T>,
    options: RunOptions = NO_OPTIONS,
  ): Promise<T> {
    try {
      checkOptions(options, RUN_KEYS)
      this.#runner.check(options.retry)
      if (typeof fn !== 'function') throw notWork('run', target, fn)
      return this.#runner.run(this.#request(target, options), fn, options)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /**
   * The same function, throttled: each call waits, and settles with what it returns or throws, as in `run`.
   *
   * ```ts
   * const get = throttle.wrap(axios.get)
   * await get('https://api.example/items')
   * ```
   *
   * @param target what a call is for: a target, or a function of the arguments. Default: the first argument,
   *   which is a URL, a `Request`, or an object with a `url`.
   */
  wrap<This, A extends unknown[], R>(
    fn: (this: This, ...args: A) => R,
    target: Target | ((...args: A) => Target) = (...args) => itself(args[0], BY_SECOND),
    options: RunOptions = NO_OPTIONS,
  ): (this: This, ...args: A) => Promise<Awaited<R>> {
    if (typeof fn !== 'function') throw notWork('wrap', undefined, fn)
    const run = (wanted: Target, call: () => R) => this.run(wanted, call, options) as Promise<Awaited<R>>
    return async function (this: This, ...args: A): Promise<Awaited<R>> {
      const wanted = typeof target === 'function' ? target(...args) : target
      return await run(wanted, () => fn.apply(this, args))
    }
  }

  /**
   * Waits for the permit to send one request. An unsettled permit that is garbage-collected is given back.
   */
  acquire(target: Target, options: RequestOptions = NO_OPTIONS): Promise<Permit> {
    try {
      checkOptions(options, REQUEST_KEYS)
      const permit = this.#request(target, options)
      if (!(permit instanceof Promise)) {
        // The caller cannot use it before the microtasks run.
        this.#scheduler.driver.granted(permit)
        queueMicrotask(() => this.#scheduler.driver.started(permit))
        return Promise.resolve(handedOut(permit, options))
      }
      return permit.then((granted) => {
        this.#scheduler.driver.started(granted)
        return handedOut(granted, options)
      })
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /**
   * Runs `fn` for each item when its request may leave, and gives the results in the order of the items.
   * It pulls at most `buffer` items (100) ahead: the source may be endless.
   *
   * ```ts
   * for await (const page of throttle.map(urls, async (url, { fetch }) => (await fetch(url)).text())) …
   * ```
   *
   * @param fn gets the item and the permit. Its `fetch` sends the request and hears the answer, its `signal`
   * is aborted when the iteration ends. Its result or error settles the permit, as in `run`.
   * @param options.target what an item is for. Default: the item itself, which is then a URL, a `Request` or
   *   `{ scopes }`.
   */
  map<I, T>(
    items: Iterable<I> | AsyncIterable<I>,
    fn: (item: I, permit: Permit) => T | PromiseLike<T>,
    options: MapOptions & { target?: (item: I) => Target; errors: 'settle' },
  ): AsyncGenerator<PromiseSettledResult<T>, void, undefined>
  map<I, T>(
    items: Iterable<I> | AsyncIterable<I>,
    fn: (item: I, permit: Permit) => T | PromiseLike<T>,
    options?: MapOptions & { target?: (item: I) => Target },
  ): AsyncGenerator<T, void, undefined>
  map<I, T>(
    items: Iterable<I> | AsyncIterable<I>,
    fn: (item: I, permit: Permit) => T | PromiseLike<T>,
    options: MapOptions & { target?: (item: I) => Target } = {},
  ): AsyncGenerator<T | PromiseSettledResult<T>, void, undefined> {
    checkItems(items)
    const { target = (item: I) => itself(item, BY_TARGET), ...rest } = options ?? {}
    if (typeof fn !== 'function') throw notWork('map', undefined, fn)
    checkKeys(rest, MAP_KEYS, 'map')
    checkMapping(options ?? {})
    checkSignal(rest.signal)
    const inside = this.#scheduler.nesting.where()
    const { retry } = rest
    this.#runner.check(retry)
    const own = (signal: AbortSignal) => (retry === undefined ? { signal } : { signal, retry })
    const ask = (item: I, signal: AbortSignal) => {
      try {
        return this.#request(target(item), { signal, inside })
      } catch (error) {
        throw options?.target === undefined ? withHint(error, BY_TARGET) : error
      }
    }
    const work = async (item: I, signal: AbortSignal, left: () => void) =>
      this.#runner.run(
        ask(item, signal),
        (permit) => {
          left()
          return fn(item, permit)
        },
        own(signal),
      )
    this.#scheduler.unread++
    const { maxWaiting = Number.POSITIVE_INFINITY } = this.options
    const isFull = () => this.#scheduler.driver.waiting >= maxWaiting
    return mapItems(items, work, rest, () => this.#scheduler.unread--, isFull)
  }

  /**
   * Takes the robots.txt of a host (or of a URL's): one slot and its `Crawl-delay`, in place of the defaults.
   * If you gave the scope a delay or slots of its own, these stay, with one warning if they differ.
   *
   * @returns what the file asks for; `null` without a rule on the pace.
   */
  robots(
    host: string,
    text: string | Uint8Array,
    options: { userAgent: string; maxDelay?: number },
  ): { crawlDelayMs: number } | null {
    const maxDelay = this.options.robots?.maxDelay
    return applyRobots(this.#scheduler, this.#engine, host, text, { maxDelay, ...options })
  }

  /** When a request could leave as things stand, and why not now. It sends no request. */
  peek(target: Target, options: { cost?: number } = {}): Peek {
    const scopes = this.#scopesOf(target)
    if (scopes instanceof Promise) {
      scopes.catch(() => {})
      throw new TypeError('peek: with getScopes, want { scopes }')
    }
    checkOptions(options, ['cost'])
    const { names, costs } = namedScopes(scopes)
    const cost = costs ?? options.cost ?? 1
    return this.#scheduler.handles.look(names, (handles) =>
      this.#engine.peek(this.#clock.now(), handles, { cost }),
    )
  }

  /** One scope: its statistics, and how to change its pace. */
  scope(name: string): ScopeControl {
    const host = hostInName(checkedName(name))
    if (host !== undefined) throw new TypeError(`scope: want the host alone, "${host}"; got "${name}"`)
    const isKnown = this.#hasHook || this.#engine.find(name) >= 0
    const problem = isKnown ? undefined : problemOfName(name)
    if (problem !== undefined)
      this.#scheduler.warnings.once('no-effect', `scope(${JSON.stringify(name)}) ${problem}`, name)
    return new ScopeControl(this.#scheduler.driver, this.#scheduler.handles, name, (partial) =>
      warnOfSpans(this.#scheduler.warnings, partial, name),
    )
  }

  /** The throttle's clock, in milliseconds, as in `peek().at`, `permit.sentAt` and `holdUntil`. */
  now(): number {
    return this.#clock.now()
  }

  /** Statistics of the throttle and of all scopes. */
  stats(): Stats {
    return this.#engine.stats(undefined, this.#clock.now())
  }

  /**
   * The learned state, as plain JSON for `createThrottle({ snapshot })`, here or in another process.
   */
  snapshot(): Snapshot {
    return this.#engine.snapshot(this.#clock.now(), this.#clock.wallNow())
  }

  /** Sends no request until `resume`. */
  pause(): void {
    this.#engine.pause(this.#clock.now())
    this.#scheduler.driver.drain()
  }

  /** Ends a pause. */
  resume(): void {
    this.#engine.resume(this.#clock.now())
    this.#scheduler.driver.drain()
  }

  /** Resolves when no request waits or is in flight. */
  idle(): Promise<void> {
    this.#scheduler.warnUnusedNames()
    return this.#scheduler.idle()
  }

  /**
   * Takes in no more: each new request is rejected with a `ClosedError`. Resolves when all that was taken in
   * is over, with its retries, redirects and functions; then the throttle is closed. `close` ends it early.
   *
   * ```ts
   * process.once('SIGTERM', () => throttle.drain())
   * ```
   */
  drain(): Promise<void> {
    if (this.#scheduler.closed) return this.#left ?? Promise.resolve()
    this.#draining ??= this.#scheduler.draining.begin(new ClosedError(undefined, true)).then(() => {
      this.close()
      return this.#left
    })
    return this.#draining
  }

  /** Rejects what waits, and each new request, with a `ClosedError`. Requests in flight may end. */
  close(reason?: unknown): void {
    if (this.#scheduler.closed) return
    this.#scheduler.warnUnusedNames()
    const closed = new ClosedError(reason)
    this.#scheduler.close(closed)
    this.#robots?.close(closed)
    this.#left = this.idle().then(() => this.#engine.close?.())
    // A program that waits for it sees the error; one that does not goes on.
    this.#left.catch(() => {})
  }

  /** Closes, and waits until what is in flight has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
    await this.#left
  }

  /** Says which names in the options are the scope of no request. */
  #warnOfNames(met?: readonly string[]): void {
    for (const [name, problem] of namesOfNone(this.options, met))
      this.#scheduler.warnings.once('no-effect', problem, name)
  }

  #check(init: ThrottledRequestInit): void {
    checkInit(init)
    const unknown = init && unknownWordIn(init)
    if (unknown) this.#scheduler.warnings.once('no-effect', unknown[1], undefined, `fetch ${unknown[0]}`)
  }

  #request(target: Target, wait: Wait): Permit | Promise<Permit> {
    const scopes = this.#scopesOf(target)
    return scopes instanceof Promise
      ? this.#scheduler.later(scopes, target, wait)
      : this.#scheduler.request(scopes, target, wait)
  }

  #scopesOf(target: Target): Scopes | Promise<Scopes> {
    if (isObject(target) && 'scopes' in target) return target.scopes
    return this.#hasHook ? this.#fetcher.scopesOf(target) : hostOf(target)
  }
}

// How throttles are made: synchronously, and without a timer before the first wait.

/**
 * Makes a throttle, synchronously in every runtime. It has no timer before the first wait.
 *
 * @throws {ConfigError} listing every problem of the options.
 */
export function createThrottle(options: ThrottleOptions = {}): Throttle {
  return new Throttle(options)
}

/** A function with fetch's own signature, for clients that take a custom `fetch`. */
export function throttledFetch(
  throttleOrOptions: Throttle | ThrottleOptions = {},
  send?: typeof fetch,
): Throttle['fetch'] {
  if (isThrottle(throttleOrOptions)) {
    if (send !== undefined)
      throw new TypeError('a throttle has its own fetch: give it as an option of the throttle')
    return (throttleOrOptions as Throttle).fetch
  }
  const options = throttleOrOptions as ThrottleOptions
  return createThrottle(send ? { ...options, fetch: send } : options).fetch
}
