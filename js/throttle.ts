/**
 * The public face: fetch, run, acquire, and the control of scopes.
 *
 * One request's way: target → scope names → handles → `driver.submit` → permit → the real fetch → `settle`.
 */
import { systemClock } from './clock.js'
import { Driver } from './driver.js'
import {
  Engine,
  type Peek,
  type ScopeHandle,
  type ScopeStats,
  type Snapshot,
  type Stats,
  type Ticket,
} from './engine.js'
import { ClosedError, ConfigError, type Problem } from './errors.js'
import type { Clock, EngineOptions, ScopeOptions, ThrottleOptions } from './options.js'
import { Permit, type PermitOutcome } from './permit.js'
import { type Scopes, scopesOf, type Target } from './scopes.js'

/** What a single request may say. */
export interface RequestOptions {
  /** Aborts the wait: rejects with `signal.reason` and frees the place at once. */
  signal?: AbortSignal | null
  /** Higher is first, as in p-queue. Any finite number, default 0. */
  priority?: number
  /** Expected cost in units of the scopes' quotas, default 1. A map target names its own. */
  cost?: number
  /** Milliseconds that it may wait for permission; then it rejects with a `TimeoutError`. Default none. */
  timeout?: number
  /** The request's own delay in milliseconds, default 0. Scrapy's draft: `throttling_delay`. */
  delay?: number
}

/** What `init.throttle` of `throttle.fetch` may say. */
export interface FetchOptions extends Omit<RequestOptions, 'signal'> {
  /** Other scopes than the host's. Scrapy's draft: `throttling_scopes`. */
  scopes?: Scopes
  /** False keeps AutoThrottle's delay as it is. */
  adjustDelay?: boolean
}

/** `RequestInit` with a word for the throttle. */
export interface ThrottledRequestInit extends RequestInit {
  throttle?: FetchOptions
}

/** Something noteworthy that is no error. */
export class WarningEvent extends Event {
  /** Which warning: so many wait that memory may become a problem; a setting does nothing. */
  readonly code: 'many-waiting' | 'no-effect'
  /** In words. */
  readonly message: string
  /** The scope in which it was noticed, if it is about one. */
  readonly scope: string | undefined

  constructor(code: WarningEvent['code'], message: string, scope?: string) {
    super('warning')
    this.code = code
    this.message = message
    this.scope = scope
  }
}

/** Events of a throttle by name. */
export interface ThrottleEvents {
  /** Something that is worth knowing; each once. */
  warning: WarningEvent
}

/** An `EventTarget` that knows its events by name. */
type TypedTarget = Omit<EventTarget, 'addEventListener' | 'removeEventListener'> & {
  addEventListener<K extends keyof ThrottleEvents>(
    type: K,
    listener: ((event: ThrottleEvents[K]) => void) | null,
    options?: boolean | AddEventListenerOptions,
  ): void
  removeEventListener<K extends keyof ThrottleEvents>(
    type: K,
    listener: ((event: ThrottleEvents[K]) => void) | null,
    options?: boolean | EventListenerOptions,
  ): void
}

const TypedEventTarget = EventTarget as new () => TypedTarget

/** Decides when requests leave. Made by {@link createThrottle}. */
export class Throttle extends TypedEventTarget {
  readonly #engine: Engine
  readonly #driver: Driver
  readonly #clock: Clock
  readonly #fetch: typeof fetch | undefined
  readonly #handles = new Map<string, ScopeHandle>()
  readonly #idle: (() => void)[] = []
  readonly #warnThreshold: number
  #isWarned = false
  #closed: ClosedError | undefined

  /**
   * @throws {ConfigError} listing every problem of the options.
   * @throws {SnapshotError} listing every problem of the snapshot.
   */
  constructor(options: ThrottleOptions = {}) {
    super()
    const { engineOptions, clock, snapshot, fetch, unref } = parted(options)
    this.#engine = new Engine(engineOptions)
    this.#clock = clock ?? systemClock(unref ?? false)
    if (snapshot !== undefined) this.#engine.restore(snapshot, this.#clock.now(), this.#clock.wallNow())
    this.#fetch = fetch
    this.#driver = new Driver(this.#engine, this.#clock, () => this.#rest())
    this.#warnThreshold = this.#engine.warnThreshold
  }

  /**
   * `fetch` that waits for its turn and learns from the answer. Same arguments, same result.
   * `init.signal` aborts the wait as well as the request.
   */
  readonly fetch = async (input: RequestInfo | URL, init: ThrottledRequestInit = {}): Promise<Response> => {
    const { throttle: options = {}, ...rest } = init
    checkKeys(options, FETCH_KEYS, 'throttle')
    const signal = init.signal === undefined && input instanceof Request ? input.signal : init.signal
    const { scopes, adjustDelay, ...waiting } = options
    const target = scopes === undefined ? input : { scopes }
    const send = () => (this.#fetch ?? globalThis.fetch)(input, rest)
    return this.#send(target, send, { ...waiting, signal: signal ?? null }, adjustDelay ?? true)
  }

  /** Waits, calls `fn`, and settles with the status of what it returns, if it has one, or with what it throws. */
  async run<T>(
    target: Target,
    fn: (permit: Permit) => T | PromiseLike<T>,
    options: RequestOptions = {},
  ): Promise<T> {
    return this.#send(target, fn, options)
  }

  async #send<T>(
    target: Target,
    fn: (permit: Permit) => T | PromiseLike<T>,
    options: RequestOptions,
    adjustDelay = true,
  ): Promise<T> {
    const permit = await this.acquire(target, options)
    try {
      const result = await fn(permit)
      const status = (result as { status?: unknown } | null | undefined)?.status
      permit.settle(typeof status === 'number' ? { status, adjustDelay } : {})
      return result
    } catch (error) {
      permit.settle(isAbort(error, options.signal) ? {} : { error })
      throw error
    }
  }

  /** Waits for leave to send one request. */
  async acquire(target: Target, options: RequestOptions = {}): Promise<Permit> {
    checkKeys(options, REQUEST_KEYS, '')
    const { signal, timeout, priority = 0, cost, delay = 0 } = options
    signal?.throwIfAborted()
    if (this.#closed) throw this.#closed
    if (timeout !== undefined && !(timeout >= 0)) {
      throw new TypeError(`timeout: want milliseconds from 0; got ${String(timeout)}`)
    }
    const { names, costs } = scopesOf(target)
    const request = {
      priority,
      cost: costs ?? cost ?? 1,
      delay,
      ...(timeout === undefined ? {} : { timeout }),
    }
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        done()
        this.#driver.cancel(ticket)
        reject(signal!.reason)
      }
      const done = () => signal?.removeEventListener('abort', onAbort)
      const handles = names.map((name) => this.#handle(name))
      signal?.addEventListener('abort', onAbort)
      let ticket: Ticket
      try {
        ticket = this.#driver.submit(handles, request, {
          grant: (granted, now) => {
            done()
            resolve(new Permit(now, names, (outcome) => this.#settle(granted, now, outcome)))
          },
          fail: (error) => {
            done()
            reject(error)
          },
        })
      } catch (error) {
        done()
        throw error
      }
      this.#warn()
    })
  }

  /** When a request could be sent as things stand, and why not now. Changes nothing. */
  peek(target: Target, options: { cost?: number } = {}): Peek {
    const { names, costs } = scopesOf(target)
    const handles = names.map((name) => this.#handle(name))
    return this.#engine.peek(this.#clock.now(), handles, { cost: costs ?? options.cost ?? 1 })
  }

  /** One scope: what it is doing, and how to change that. */
  scope(name: string): ScopeControl {
    return new ScopeControl(this.#driver, () => this.#handle(name), name)
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
    this.#driver.drain()
  }

  /** Ends a pause. */
  resume(): void {
    this.#engine.resume(this.#clock.now())
    this.#driver.drain()
  }

  /** Resolves when nothing waits and nothing is in flight. */
  idle(): Promise<void> {
    if (this.#isIdle) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /** Rejects what waits with a `ClosedError` and takes in nothing more. What is in flight may end. */
  close(reason?: unknown): void {
    this.#closed ??= new ClosedError(reason)
    this.#driver.failAll(this.#closed)
  }

  /** Closes, and waits until what is in flight has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
    await this.idle()
  }

  #settle(ticket: Ticket, sentAt: number, outcome: PermitOutcome): void {
    const { latency, ...rest } = outcome
    const isAnswered = outcome.status !== undefined
    const latencyMs = latency ?? (isAnswered ? this.#clock.now() - sentAt : undefined)
    this.#driver.settle(ticket, latencyMs === undefined ? rest : { ...rest, latencyMs })
  }

  get #isIdle(): boolean {
    return this.#engine.waiting === 0 && this.#engine.inFlight === 0
  }

  #rest(): void {
    for (const { scope, path, why } of this.#engine.takeFindings()) {
      this.dispatchEvent(new WarningEvent('no-effect', `${path} has no effect in ${scope}: ${why}`, scope))
    }
    if (this.#idle.length > 0 && this.#isIdle) for (const resolve of this.#idle.splice(0)) resolve()
  }

  #warn(): void {
    const { waiting } = this.#engine
    if (this.#isWarned || waiting < this.#warnThreshold) return
    this.#isWarned = true
    this.dispatchEvent(
      new WarningEvent('many-waiting', `${waiting} requests wait, each with its promise in memory`),
    )
  }

  #handle(name: string): ScopeHandle {
    const known = this.#handles.get(name)
    if (known !== undefined && this.#engine.touch(known)) return known
    // The engine forgets idle scopes; this map must not remember a million names in its place.
    if (this.#handles.size > 1000 + 2 * this.#engine.scopes) this.#handles.clear()
    const handle = this.#engine.intern(String(name))
    this.#handles.set(name, handle)
    return handle
  }
}

/** One scope of a throttle. */
export class ScopeControl {
  /** The scope's name. */
  readonly name: string
  readonly #driver: Driver
  readonly #handle: () => ScopeHandle

  /** @internal */
  constructor(driver: Driver, handle: () => ScopeHandle, name: string) {
    this.#driver = driver
    this.#handle = handle
    this.name = name
  }

  /** What it is doing. */
  get stats(): ScopeStats {
    return this.#driver.engine.stats(this.#handle(), this.#driver.clock.now())
  }

  /**
   * Changes settings and keeps what was learned. Waiting requests feel it at once.
   *
   * @throws {ConfigError} listing every problem; nothing is changed then.
   */
  configure(partial: ScopeOptions): void {
    this.#change((now, handle) => this.#driver.engine.configure(now, handle, partial))
  }

  /** Sends nothing for `ms` milliseconds. A hold that is longer already stays. */
  hold(ms: number): void {
    if (!(ms >= 0)) throw new TypeError(`hold: want milliseconds from 0; got ${String(ms)}`)
    this.#change((now, handle) => this.#driver.engine.hold(now, handle, ms))
  }

  /** Sends nothing until `resume`. */
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
    change(this.#driver.clock.now(), this.#handle())
    this.#driver.drain()
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
  fetch?: typeof globalThis.fetch,
): Throttle['fetch'] {
  if (throttleOrOptions instanceof Throttle) {
    if (fetch !== undefined)
      throw new TypeError('a throttle has its own fetch: give it as an option of the throttle')
    return throttleOrOptions.fetch
  }
  return createThrottle(fetch ? { ...throttleOrOptions, fetch } : throttleOrOptions).fetch
}

const REQUEST_KEYS = new Set(['signal', 'priority', 'cost', 'timeout', 'delay'])
const FETCH_KEYS = new Set(['priority', 'cost', 'timeout', 'delay', 'scopes', 'adjustDelay'])

/** A misspelt option that is quietly ignored is found out in production. */
function checkKeys(options: object, known: ReadonlySet<string>, path: string): void {
  const problems: Problem[] = []
  for (const key in options) {
    if (known.has(key)) continue
    const want = `one of ${[...known].join(', ')}`
    problems.push({ path: path ? `${path}.${key}` : key, want, got: kindOf(options[key as keyof object]) })
  }
  if (problems.length > 0) throw new ConfigError(problems)
}

/** Whether the caller gave up: that says nothing about the server. */
function isAbort(error: unknown, signal: AbortSignal | null | undefined): boolean {
  return signal?.aborted === true || (error as { name?: unknown } | null)?.name === 'AbortError'
}

/** Parts what this layer reads from what the engine reads, and reports the problems of both together. */
function parted(options: ThrottleOptions) {
  const problems: Problem[] = []
  const isObject = typeof options === 'object' && options !== null && !Array.isArray(options)
  const { clock, snapshot, fetch, unref, ...engineOptions } = isObject ? options : ({} as ThrottleOptions)
  if (!isObject) problems.push({ path: '', want: 'an object', got: kindOf(options) })
  if (clock !== undefined && !isClock(clock)) {
    const want = 'an object with now, wallNow, setTimeout and clearTimeout'
    problems.push({ path: 'clock', want, got: kindOf(clock) })
  }
  if (fetch !== undefined && typeof fetch !== 'function') {
    problems.push({ path: 'fetch', want: 'a function', got: kindOf(fetch) })
  }
  if (unref !== undefined && typeof unref !== 'boolean') {
    problems.push({ path: 'unref', want: 'true or false', got: kindOf(unref) })
  }
  if (problems.length > 0) throw new ConfigError([...problems, ...problemsOf(engineOptions)])
  return { engineOptions, clock, snapshot, fetch, unref }
}

function problemsOf(options: EngineOptions): readonly Problem[] {
  try {
    new Engine(options)[Symbol.dispose]()
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

function isClock(clock: unknown): clock is Clock {
  const methods = ['now', 'wallNow', 'setTimeout', 'clearTimeout'] as const
  return methods.every((method) => typeof (clock as Clock | null)?.[method] === 'function')
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'object') return 'an object'
  return typeof value === 'function' ? 'a function' : String(JSON.stringify(value))
}
