/**
 * The public face: what a program calls. It checks what it is given, finds the scopes, and leaves the rest to the desk
 * (`desk.ts`: permits and how they end) and to `fetch/fetch.ts`.
 */

import { Fetcher, type FetchOptions } from '../fetch/fetch.js'
import { outcomeOfError, outcomeOfResult } from '../fetch/outcome.js'
import { Robots } from '../fetch/robots.js'
import { unknownKeys } from '../options/checks.js'
import type { Clock, ThrottleOptions } from '../options/options.js'
import { parted } from '../options/split.js'
import { ScopeControl } from '../scopes/control.js'
import { checkedName, hostOf, namedScopes, type Scopes, type Target } from '../scopes/names.js'
import { ManagedScopes } from '../scopes/strategy.js'
import { Engine, type Peek, parseRobots, type Snapshot, type Stats } from '../wasm/engine.js'
import { systemClock } from './clock.js'
import { Desk, type Wait } from './desk.js'
import { ClosedError, ConfigError, TimeoutError } from './errors.js'
import { ThrottleEventTarget, WarningEvent } from './events.js'
import { type MapOptions, mapItems } from './map.js'
import type { Permit } from './permit.js'
import { keep } from './unsettled.js'

/** What a single request may say. */
export interface RequestOptions {
  /** Aborts the wait: rejects with `signal.reason` and frees the place at once. */
  signal?: AbortSignal | null
  /** Higher is first, as in p-queue. Any finite number, default 0. */
  priority?: number
  /** Expected cost in units of the scopes' quotas, default 1. A map target names its own. */
  cost?: number
  /**
   * Milliseconds that it may wait for permission; then it rejects with a `TimeoutError`. Default none.
   *
   * A client's own timeout counts the wait, too, where the client calls a throttled `fetch` (ky: 10 s, then it gives
   * up): switch it off (`timeout: false` in ky) and use `requestTimeout`, which counts from the send.
   */
  timeout?: number
  /** The request's own delay in milliseconds, default 0. Scrapy's draft: `throttling_delay`. */
  delay?: number
}

/** What a single call of `run`, `wrap` and `map` may say. */
export interface RunOptions extends RequestOptions {
  /**
   * Milliseconds from send until `fn` is done; then it rejects with a `TimeoutError`, the slots come back, and backoff
   * hears of a timeout. What `fn` does goes on unless it listens to a signal of yours. Default: the throttle's.
   */
  requestTimeout?: number
}

/** `RequestInit` with a word for the throttle. */
export interface ThrottledRequestInit extends RequestInit {
  throttle?: FetchOptions
}

const NO_OPTIONS: RunOptions & FetchOptions = {}
const REQUEST_KEYS = ['signal', 'priority', 'cost', 'timeout', 'delay']
const RUN_KEYS = [...REQUEST_KEYS, 'requestTimeout']
const MAP_KEYS = ['ordered', 'buffer', 'errors', 'signal']
const FETCH_KEYS = ['priority', 'cost', 'timeout', 'requestTimeout', 'delay', 'scopes', 'adjustDelay']

/** Decides when requests leave. Made by {@link createThrottle}. */
export class Throttle extends ThrottleEventTarget {
  readonly #engine: Engine
  readonly #desk: Desk
  readonly #clock: Clock
  readonly #fetcher: Fetcher
  readonly #hasHook: boolean
  readonly #requestTimeout: number | undefined
  readonly #robotsMaxDelay: number
  readonly #overruled = new Set<string>()

  /**
   * @throws {ConfigError} listing every problem of the options.
   * @throws {SnapshotError} listing every problem of the snapshot.
   */
  constructor(options: ThrottleOptions = {}) {
    super()
    const { engineOptions, driverOptions } = parted(options)
    const { clock, snapshot, unref, robots, debug, hints, ...settings } = driverOptions
    const { scopes, backoff, manager } = options
    const defaults = manager === undefined ? options.defaults : { ...options.defaults, manager }
    this.#engine = new Engine(engineOptions)
    this.#clock = clock ?? systemClock(unref ?? false)
    if (snapshot !== undefined) this.#engine.restore(snapshot, this.#clock.now(), this.#clock.wallNow())
    this.#desk = new Desk({
      engine: this.#engine,
      clock: this.#clock,
      ears: this.ears,
      tell: (event) => this.tell(event),
      managed: ManagedScopes.areIn(scopes, defaults)
        ? new ManagedScopes(scopes, defaults, backoff)
        : undefined,
      hints,
      isDebug: debug ?? false,
    })
    // Settings without effect, once somebody can listen.
    queueMicrotask(() => this.#desk.tellNotices())
    this.#requestTimeout = settings.requestTimeout
    this.#hasHook = settings.getScopes !== undefined
    this.#robotsMaxDelay = robots?.maxDelay ?? 60_000
    let asking: Robots | undefined
    if (robots && robots.obey !== false) {
      const ask = (url: string, headers: Record<string, string>) =>
        this.run(url, () => (settings.fetch ?? globalThis.fetch)(url, { headers }), { priority: 1e9 })
      const tell = (host: string, bytes: Uint8Array) => void this.robots(host, bytes, robots)
      asking = new Robots(robots, this.#clock, ask, tell)
    }
    this.#fetcher = new Fetcher(this.#desk, settings, asking)
  }

  /**
   * `fetch` that waits for its turn and learns from the answer. Same arguments, same result.
   * `init.signal` aborts the wait as well as the request.
   *
   * @throws {RetryAfterTooLongError} with `retry`, if the server asks for a longer wait than `maxRetryAfter`.
   * @throws {BodyNotReplayableError} with `retry`, if the body is a stream and would be needed again.
   * @throws {DisallowedError} with `robots`, if robots.txt does not allow the URL or could not be had.
   * @throws {TimeoutError} after `timeout` of waiting, or `requestTimeout` of no answer.
   */
  readonly fetch = async (input: RequestInfo | URL, init?: ThrottledRequestInit): Promise<Response> => {
    if (init?.throttle === undefined) return this.#fetcher.fetch(input, init ?? {}, NO_OPTIONS)
    const { throttle: options, ...rest } = init
    checkKeys(options, FETCH_KEYS, 'throttle')
    checkMillis(options, 'throttle.')
    return this.#fetcher.fetch(input, rest, options)
  }

  /** @internal Whether slots are held until bodies are over, for what sends by other means than `fetch`. */
  get isHeldByBodies(): boolean {
    return this.#fetcher.isHeldByBodies
  }

  /**
   * Waits, calls `fn`, and settles with what it returns or throws. Responses of any client are heard: `status` or
   * `statusCode` and `headers`, of the result, of the error, or of `error.response`.
   */
  run<T>(
    target: Target,
    fn: (permit: Permit) => T | PromiseLike<T>,
    options: RunOptions = NO_OPTIONS,
  ): Promise<T> {
    try {
      if (options !== NO_OPTIONS) {
        checkKeys(options, RUN_KEYS, '')
        checkMillis(options, '')
      }
      const permit = this.#request(target, options)
      return permit instanceof Promise
        ? permit.then((given) => this.#work(given, fn, options))
        : this.#begin(permit, fn, options)
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
   * @param target what a call is for: a target, or a function of the arguments. Default: the first argument, which is a
   *   URL, a `Request`, or an object with a `url`.
   */
  wrap<This, A extends unknown[], R>(
    fn: (this: This, ...args: A) => R,
    target: Target | ((...args: A) => Target) = (...args) => args[0] as Target,
    options: RunOptions = NO_OPTIONS,
  ): (this: This, ...args: A) => Promise<Awaited<R>> {
    const run = (wanted: Target, call: () => R) => this.run(wanted, call, options) as Promise<Awaited<R>>
    return async function (this: This, ...args: A): Promise<Awaited<R>> {
      const wanted = typeof target === 'function' ? target(...args) : target
      return await run(wanted, () => fn.apply(this, args))
    }
  }

  /** Waits for leave to send one request. A permit that is collected as garbage unsettled is given back. */
  async acquire(target: Target, options: RequestOptions = NO_OPTIONS): Promise<Permit> {
    if (options !== NO_OPTIONS) {
      checkKeys(options, REQUEST_KEYS, '')
      checkMillis(options, '')
    }
    return keep(await this.#request(target, options), this.#desk)
  }

  /**
   * Runs `fn` for each item with leave to send, and gives the results as they come, in the order of the items. Items are
   * pulled only as fast as they can be sent: an endless source is welcome.
   *
   * ```ts
   * for await (const page of throttle.map(urls, async (url) => (await fetch(url)).text())) …
   * ```
   *
   * @param fn gets the item, the permit and a signal that is aborted when the iteration ends. What it returns or throws
   *   settles the permit, as in `run`.
   * @param options.target what an item is for. Default: the item itself, which is then a URL, a `Request` or `{ scopes }`.
   */
  map<I, T>(
    items: Iterable<I> | AsyncIterable<I>,
    fn: (item: I, permit: Permit, signal: AbortSignal) => T | PromiseLike<T>,
    options: MapOptions & { target?: (item: I) => Target; errors: 'settle' },
  ): AsyncGenerator<PromiseSettledResult<T>, void, undefined>
  map<I, T>(
    items: Iterable<I> | AsyncIterable<I>,
    fn: (item: I, permit: Permit, signal: AbortSignal) => T | PromiseLike<T>,
    options?: MapOptions & { target?: (item: I) => Target },
  ): AsyncGenerator<T, void, undefined>
  map<I, T>(
    items: Iterable<I> | AsyncIterable<I>,
    fn: (item: I, permit: Permit, signal: AbortSignal) => T | PromiseLike<T>,
    options: MapOptions & { target?: (item: I) => Target } = {},
  ): AsyncGenerator<T | PromiseSettledResult<T>, void, undefined> {
    const { target = (item) => item as Target, ...rest } = options
    checkKeys(rest, MAP_KEYS, 'map')
    const { buffer = 100 } = rest
    if (!(Number.isInteger(buffer) && buffer >= 1)) {
      throw new TypeError(`map.buffer: want a whole number from 1; got ${String(buffer)}`)
    }
    const work = async (item: I, signal: AbortSignal) =>
      this.run(target(item), (permit) => fn(item, permit, signal), { signal })
    return mapItems(items, work, rest)
  }

  /**
   * Feeds the robots.txt of a host (or of a URL's): one slot and its `Crawl-delay`, in place of what the defaults say.
   * A scope to which you gave a delay or slots of its own keeps them, with one warning if they differ.
   *
   * @returns what it asks for; `null` if nothing.
   */
  robots(
    host: string,
    text: string | Uint8Array,
    { userAgent, maxDelay = this.#robotsMaxDelay }: { userAgent: string; maxDelay?: number },
  ): { crawlDelayMs: number } | null {
    const asked = parseRobots(text, userAgent)
    const name = checkedName(host).includes('://') ? hostOf(host) : host
    const delay = asked ? Math.min(asked.crawlDelayMs, maxDelay) : undefined
    const outcome = this.#engine.crawlDelay(this.#clock.now(), this.#desk.handles.of(name).handle, delay)
    this.#desk.driver.drain()
    if (outcome === 'overruled' && !this.#overruled.has(name)) {
      this.#overruled.add(name)
      const wish = `robots.txt of ${name} asks for one request at a time, ${delay} ms apart`
      const message = `${wish}; the scope keeps its own settings (ignoreRobotsTxt: true silences this)`
      this.tell(new WarningEvent('robots-overruled', message, name))
    }
    return asked
  }

  /** When a request could be sent as things stand, and why not now. Changes nothing. */
  peek(target: Target, options: { cost?: number } = {}): Peek {
    const scopes = this.#scopesOf(target)
    if (scopes instanceof Promise) {
      scopes.catch(() => {})
      throw new TypeError('peek: with getScopes, want { scopes }')
    }
    const { names, costs } = namedScopes(scopes)
    const handles = names.map((name) => this.#desk.handles.of(name).handle)
    return this.#engine.peek(this.#clock.now(), handles, { cost: costs ?? options.cost ?? 1 })
  }

  /** One scope: what it is doing, and how to change that. */
  scope(name: string): ScopeControl {
    checkedName(name)
    return new ScopeControl(this.#desk.driver, () => this.#desk.handles.of(name).handle, name)
  }

  /** The throttle's clock, in milliseconds: what `peek().at`, `permit.sentAt` and `holdUntil` speak. */
  now(): number {
    return this.#clock.now()
  }

  /** The state of everything. */
  stats(): Stats {
    return this.#engine.stats(undefined, this.#clock.now())
  }

  /** What was learned, as plain JSON: give it to `createThrottle({ snapshot })`, here or in another process. */
  snapshot(): Snapshot {
    return this.#engine.snapshot(this.#clock.now(), this.#clock.wallNow())
  }

  /** Sends nothing until `resume`. */
  pause(): void {
    this.#engine.pause(this.#clock.now())
    this.#desk.driver.drain()
  }

  /** Ends a pause. */
  resume(): void {
    this.#engine.resume(this.#clock.now())
    this.#desk.driver.drain()
  }

  /** Resolves when nothing waits and nothing is in flight. */
  idle(): Promise<void> {
    return this.#desk.idle()
  }

  /** Rejects what waits with a `ClosedError` and takes in nothing more. What is in flight may end. */
  close(reason?: unknown): void {
    this.#desk.closed ??= new ClosedError(reason)
    this.#desk.driver.failAll(this.#desk.closed)
  }

  /** Closes, and waits until what is in flight has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
    await this.idle()
  }

  #request(target: Target, wait: Wait): Permit | Promise<Permit> {
    const scopes = this.#scopesOf(target)
    if (!(scopes instanceof Promise)) return this.#desk.request(scopes, target, wait)
    const known = this.#desk.driver.aborts.race(scopes, wait.signal ?? null)
    return this.#desk.enter(known).then((scopes) => this.#desk.request(scopes, target, wait))
  }

  #scopesOf(target: Target): Scopes | Promise<Scopes> {
    if (typeof target === 'object' && target !== null && 'scopes' in target) return target.scopes
    return this.#hasHook ? this.#fetcher.scopesOf(target) : hostOf(target)
  }

  /** `fn` is never called before `run` has returned. */
  async #begin<T>(
    permit: Permit,
    fn: (permit: Permit) => T | PromiseLike<T>,
    options: RunOptions,
  ): Promise<T> {
    await undefined
    return this.#work(permit, fn, options)
  }

  async #work<T>(
    permit: Permit,
    fn: (permit: Permit) => T | PromiseLike<T>,
    options: RunOptions,
  ): Promise<T> {
    const timeout = options.requestTimeout ?? this.#requestTimeout
    let result: T
    try {
      result = timeout === undefined ? await fn(permit) : await this.#within(timeout, () => fn(permit))
    } catch (error) {
      permit.settle(outcomeOfError(error, options.signal))
      throw error
    }
    permit.settle(outcomeOfResult(result))
    return result
  }

  /** What `call` gives, unless it takes too long. */
  #within<T>(timeout: number, call: () => T | PromiseLike<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const alarm = this.#desk.driver.alarm(timeout, () => reject(new TimeoutError(timeout, true)))
      const over = () => alarm.cancel()
      Promise.resolve().then(call).finally(over).then(resolve, reject)
    })
  }
}

/**
 * A throttle. Synchronous: there is nothing to await in any runtime, and no timer before the first wait.
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
  if (throttleOrOptions instanceof Throttle) {
    if (send !== undefined)
      throw new TypeError('a throttle has its own fetch: give it as an option of the throttle')
    return throttleOrOptions.fetch
  }
  return createThrottle(send ? { ...throttleOrOptions, fetch: send } : throttleOrOptions).fetch
}

function checkKeys(options: object, known: readonly string[], path: string): void {
  const problems = unknownKeys(options, known, path)
  if (problems.length > 0) throw new ConfigError(problems)
}

/** The two timeouts. */
function checkMillis(options: { timeout?: number; requestTimeout?: number }, path: string): void {
  for (const key of ['timeout', 'requestTimeout'] as const) {
    const value = options[key]
    if (value !== undefined && !(value >= 0))
      throw new TypeError(`${path}${key}: want milliseconds from 0; got ${String(value)}`)
  }
}
