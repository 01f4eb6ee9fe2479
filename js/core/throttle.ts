/**
 * The public face: fetch, run, acquire, and the control of scopes.
 *
 * One request's way: target → scope names → handles → `driver.submit` → permit → the real fetch → `settle`.
 */

import { discard, watched } from '../fetch/body.js'
import { failureOf, failureOfRequest } from '../fetch/failures.js'
import { follows, type Hop, Redirects } from '../fetch/redirects.js'
import { Retry } from '../fetch/retry.js'
import { Robots } from '../fetch/robots.js'
import { isMillis, shown, unknownKeys } from '../options/checks.js'
import type { Clock, ScopeOptions, ThrottleOptions } from '../options/options.js'
import { parted } from '../options/split.js'
import { ScopeControl } from '../scopes/control.js'
import {
  askScopes,
  type Backoffs,
  backoffMap,
  checkedBackoffs,
  type Nothing,
  type ScopeRequest,
  scopeRequest,
} from '../scopes/hooks.js'
import { hostOf, type NamedScopes, namedScopes, type Scopes, type Target, urlOf } from '../scopes/names.js'
import { ManagedScopes } from '../scopes/strategy.js'
import {
  Engine,
  type Outcome,
  type Peek,
  parseRobots,
  type ScopeHandle,
  type ScopeOutcome,
  type ScopeStats,
  type Snapshot,
  type Stats,
  type Ticket,
} from '../wasm/engine.js'
import type { HeaderMap, HeadersLike } from '../wasm/headers.js'
import { systemClock } from './clock.js'
import { Driver, type Waiter } from './driver.js'
import { ClosedError, ConfigError, ManagerError } from './errors.js'
import {
  ScopeEvent,
  SendEvent,
  SettleEvent,
  StallEvent,
  ThrottleEventTarget,
  WarningEvent,
} from './events.js'
import { type MapOptions, mapItems } from './map.js'
import { type Again, Permit, type PermitOutcome } from './permit.js'

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

/** What of the options is read for each request. */
type RequestSettings = Pick<
  ThrottleOptions,
  | 'retry'
  | 'hints'
  | 'getHints'
  | 'getScopes'
  | 'getResponseBackoff'
  | 'getErrorBackoff'
  | 'getResponseDelay'
  | 'redirects'
  | 'redirectMaxDelay'
  | 'release'
>

/** One call of `fetch`, all of its hops and attempts. */
interface Call {
  readonly options: FetchOptions
  readonly signal: AbortSignal | null
  /** Milliseconds that are left to wait for permission. */
  readonly timeLeft: () => number | undefined
}

/** Decides when requests leave. Made by {@link createThrottle}. */
export class Throttle extends ThrottleEventTarget {
  readonly #engine: Engine
  readonly #driver: Driver
  readonly #clock: Clock
  readonly #fetch: typeof fetch | undefined
  readonly #options: RequestSettings
  readonly #managed: ManagedScopes | undefined
  readonly #robots: Robots | undefined
  readonly #robotsMaxDelay: number
  readonly #overruled = new Set<string>()
  readonly #handles = new Map<string, ScopeHandle>()
  readonly #told = new Map<string, ScopeStats>()
  readonly #isDebug: boolean
  readonly #idle: (() => void)[] = []
  readonly #warnThreshold: number
  #isWarned = false
  #entering = 0
  #closed: ClosedError | undefined

  /**
   * @throws {ConfigError} listing every problem of the options.
   * @throws {SnapshotError} listing every problem of the snapshot.
   */
  constructor(options: ThrottleOptions = {}) {
    super()
    const { engineOptions, driverOptions } = parted(options)
    const { clock, snapshot, fetch, unref, robots, debug, ...rest } = driverOptions
    this.#isDebug = debug ?? false
    const { scopes, defaults, backoff } = options
    if (ManagedScopes.areIn(scopes, defaults)) this.#managed = new ManagedScopes(scopes, defaults, backoff)
    this.#engine = new Engine(engineOptions)
    this.#clock = clock ?? systemClock(unref ?? false)
    if (snapshot !== undefined) this.#engine.restore(snapshot, this.#clock.now(), this.#clock.wallNow())
    this.#fetch = fetch
    this.#options = rest
    this.#robotsMaxDelay = robots?.maxDelay ?? 60_000
    if (robots && robots.obey !== false) {
      const ask = (url: string, headers: Record<string, string>) =>
        this.#send(url, () => (this.#fetch ?? globalThis.fetch)(url, { headers }), { priority: 1e9 })
      const tell = (host: string, bytes: Uint8Array) => void this.robots(host, bytes, robots)
      this.#robots = new Robots(robots, this.#clock, ask, tell)
    }
    this.#driver = new Driver(this.#engine, this.#clock, () => this.#rest())
    this.#warnThreshold = this.#engine.warnThreshold
  }

  /**
   * `fetch` that waits for its turn and learns from the answer. Same arguments, same result.
   * `init.signal` aborts the wait as well as the request.
   *
   * @throws {RetryAfterTooLongError} with `retry`, if the server asks for a longer wait than `maxRetryAfter`.
   * @throws {BodyNotReplayableError} with `retry`, if the body is a stream and would be needed again.
   * @throws {DisallowedError} with `robots`, if robots.txt does not allow the URL or could not be had.
   */
  readonly fetch = async (input: RequestInfo | URL, init: ThrottledRequestInit = {}): Promise<Response> => {
    const { throttle: options = {}, ...rest } = init
    checkKeys(options, FETCH_KEYS, 'throttle')
    const signal =
      (init.signal === undefined && input instanceof Request ? input.signal : init.signal) ?? null
    const start = this.#clock.now()
    const { timeout } = options
    const timeLeft = () =>
      timeout === undefined ? undefined : Math.max(0, timeout - (this.#clock.now() - start))
    const call = { options, signal, timeLeft }
    const { redirects, redirectMaxDelay = 300_000 } = this.#options
    if (redirects !== 'throttle' || !follows(input, rest)) {
      return this.#fetchHop({ input, init: rest, delay: options.delay ?? 0 }, call)
    }
    const way = new Redirects(input, rest, options.delay ?? 0, redirectMaxDelay)
    for (;;) {
      const response = await this.#fetchHop(way.hop, call)
      try {
        if (!way.take(response, this.#clock.wallNow())) return way.dress(response)
      } catch (error) {
        await discard(response)
        throw error
      }
      await discard(response)
    }
  }

  /** One hop, with its retries. Submits synchronously where no hook has to be asked first. */
  async #fetchHop({ input, init, delay }: Hop, { options, signal, timeLeft }: Call): Promise<Response> {
    const { scopes, adjustDelay = true, ...waiting } = options
    if (this.#robots) await this.#enter(abortable(this.#robots.admit(urlOf(input)), signal))
    const named = scopes ?? this.#scopesOf(input, init)
    const target = { scopes: named instanceof Promise ? await this.#enter(named) : named }
    const retry = this.#options.retry ? new Retry(this.#options.retry, input, init) : undefined
    const request = () => scopeRequest(input, init)
    const send = async (permit: Permit): Promise<Response> => {
      const again = (outcome: PermitOutcome, delay: number) =>
        permit.again(outcome, { delay, signal, timeout: timeLeft() }).then(send)
      let response: Response
      try {
        response = await (this.#fetch ?? globalThis.fetch)(retry?.input ?? input, init)
      } catch (error) {
        const isFailure = !Number.isNaN(failureOfRequest(error, signal))
        const outcome = isFailure ? await this.#failureOf(error, request, permit) : {}
        if (isFailure && !signal?.aborted && attempt(permit, outcome, () => retry?.afterFailure()))
          return again(outcome, 0)
        permit.settle(outcome)
        throw error
      }
      const latency = this.#clock.now() - permit.sentAt
      const outcome = { ...(await this.#outcomeOf(response, request, permit)), latency, adjustDelay }
      const ask = () => retry?.afterResponse(response, this.#mapOf(permit.scopes), this.#clock.wallNow())
      const delay = attempt(permit, outcome, ask)
      if (delay === undefined || this.#closed) {
        if (this.isHeldByBodies) return watched(response, settler(permit, outcome))
        permit.settle(outcome)
        return response
      }
      await discard(response)
      return again(outcome, delay)
    }
    const timeout = timeLeft()
    const patience = timeout === undefined ? {} : { timeout }
    return send(await this.acquire(target, { ...waiting, ...patience, delay, signal }))
  }

  /** @internal Whether slots are held until bodies are over, for what sends by other means than `fetch`. */
  get isHeldByBodies(): boolean {
    return this.#options.release === 'body'
  }

  /** Waits, calls `fn`, and settles with the status and headers of what it returns, if it has some, or with what it throws. */
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
  ): Promise<T> {
    const permit = await this.acquire(target, options)
    try {
      const result = await fn(permit)
      const { status, headers } = (result ?? {}) as { status?: unknown; headers?: unknown }
      const isResponse = typeof status === 'number'
      const fields = isResponse && typeof headers === 'object' && headers !== null
      permit.settle(isResponse ? { status, ...(fields ? { headers: headers as HeadersLike } : {}) } : {})
      return result
    } catch (error) {
      const isAborted = options.signal?.aborted === true && error === options.signal.reason
      permit.settle(isAborted || Number.isNaN(failureOf(error)) ? {} : { error })
      throw error
    }
  }

  /** Waits for leave to send one request. */
  async acquire(target: Target, options: RequestOptions = {}): Promise<Permit> {
    checkKeys(options, REQUEST_KEYS, '')
    const { signal, timeout, priority = 0, cost, delay = 0 } = options
    if (timeout !== undefined && !(timeout >= 0)) {
      throw new TypeError(`timeout: want milliseconds from 0; got ${String(timeout)}`)
    }
    const named = this.#namesOf(target)
    const { names, costs } = named instanceof Promise ? await this.#enter(named) : named
    const request = {
      priority,
      cost: costs ?? cost ?? 1,
      delay,
      ...(timeout === undefined ? {} : { timeout }),
    }
    return this.#wait(names, signal, (waiter) => {
      const handles = names.map((name) => this.#handle(name))
      const ticket = this.#driver.submit(handles, request, waiter)
      this.#warn()
      return ticket
    })
  }

  /** The scopes of a request, by `getScopes` where there is one; without it nothing has to be waited for. */
  #scopesOf(input: string | URL | Request, init?: RequestInit): Scopes | Promise<Scopes> {
    const { getScopes } = this.#options
    return getScopes ? askScopes(getScopes, scopeRequest(input, init)) : hostOf(input)
  }

  /** A request that waits for a hook or for robots.txt is on its way in: the throttle is not idle. */
  async #enter<T>(promise: Promise<T>): Promise<T> {
    this.#entering++
    try {
      return await promise
    } finally {
      this.#entering--
      if (this.#entering === 0) queueMicrotask(() => this.#rest())
    }
  }

  /** The same for any target. */
  #namesOf(target: Target): NamedScopes | Promise<NamedScopes> {
    if (typeof target === 'object' && 'scopes' in target) return namedScopes(target.scopes)
    const scopes = this.#scopesOf(target)
    return scopes instanceof Promise ? scopes.then(namedScopes) : namedScopes(scopes)
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
      this.#send(target(item), (permit) => fn(item, permit, signal), { signal })
    return mapItems(items, work, rest)
  }

  /** A permit when the ticket that `enqueue` gives is granted. */
  async #wait(
    names: readonly string[],
    signal: AbortSignal | null | undefined,
    enqueue: (waiter: Waiter) => Ticket,
  ): Promise<Permit> {
    signal?.throwIfAborted()
    if (this.#closed) throw this.#closed
    return new Promise((resolve, reject) => {
      let ticket: Ticket
      const onAbort = () => {
        over()
        this.#driver.cancel(ticket)
        reject(signal!.reason)
      }
      const over = () => signal?.removeEventListener('abort', onAbort)
      signal?.addEventListener('abort', onAbort)
      try {
        ticket = enqueue({
          scopes: names,
          grant: (granted, now) => {
            over()
            try {
              if (this.#managed) for (const name of names) this.#pace(name, this.#managed.onSend(name, now))
            } catch (error) {
              this.#driver.settle(granted, {})
              return reject(error)
            }
            if (this.isHeard('send')) this.tell(new SendEvent(names, now))
            const settle = (outcome: PermitOutcome) => {
              const measured = this.#measured(now, names, outcome)
              this.#watch(names, measured, () => this.#driver.settle(granted, measured))
            }
            const again = (outcome: PermitOutcome, { delay, signal, timeout }: Again) =>
              this.#wait(names, signal, (waiter) => {
                const measured = this.#measured(now, names, outcome)
                const retried = { ...measured, retryDelay: delay }
                this.#watch(names, measured, (isOver) => {
                  if (isOver) this.#driver.settle(granted, measured)
                  else this.#driver.retry(granted, retried, waiter, timeout)
                })
                return granted
              })
            resolve(new Permit(now, names, settle, again))
          },
          fail: (error) => {
            over()
            reject(error)
          },
        })
      } catch (error) {
        over()
        throw error
      }
    })
  }

  /** What the engine is told of a permit's outcome. */
  #measured(sentAt: number, names: readonly string[], outcome: PermitOutcome): Outcome {
    const { latency, scopes, ...rest } = outcome
    const latencyMs = latency ?? (outcome.status === undefined ? undefined : this.#clock.now() - sentAt)
    const headerMap = this.#mapOf(names)
    return {
      ...rest,
      ...(scopes === undefined ? {} : { scopes: this.#own(names, scopes, outcome) }),
      ...(latencyMs === undefined ? {} : { latencyMs }),
      ...(headerMap === undefined ? {} : { headerMap }),
      ...(outcome.headers === undefined ? {} : { wallNowMs: this.#clock.wallNow() }),
    }
  }

  /** What an outcome means for each scope, if it names those that back off: to the others a refusal is no news. */
  #own(names: readonly string[], scopes: Backoffs, outcome: PermitOutcome): readonly ScopeOutcome[] {
    const map = backoffMap(scopes)
    const isRefusal = outcome.error !== undefined || (outcome.status ?? 0) >= 400
    const own: ScopeOutcome[] = []
    for (const name of names) {
      const scope = this.#handle(name)
      const means = Object.hasOwn(map, name) ? map[name] : undefined
      if (means) {
        const isOfQuota = means.cost !== undefined || means.remaining !== undefined
        own.push({ ...(isOfQuota ? {} : { backoff: true }), ...means, scope })
      } else if (isRefusal) {
        own.push({ scope, isNews: false })
      }
    }
    return own
  }

  /** Settles, and tells what that changed if anybody wants to know. `isOver`: a manager threw, and nothing more may come of it. */
  #watch(names: readonly string[], outcome: Outcome, settle: (isOver: boolean) => void): void {
    const isWatched = this.#isDebug || this.isHeard('backoff', 'recover', 'delay', 'hold')
    const look = () => names.map((name) => this.#engine.stats(this.#handle(name), this.#clock.now()))
    const before = isWatched ? (this.#seen(names) ?? look()) : []
    let failure: unknown
    try {
      if (this.#managed) this.#tellManagers(this.#managed, names, outcome)
    } catch (error) {
      failure = error
    }
    settle(failure !== undefined)
    if (failure !== undefined) throw failure
    const { status, error, latencyMs } = outcome
    if (this.isHeard('settle')) this.tell(new SettleEvent(names, status, error, latencyMs))
    if (!isWatched) return
    const after = look()
    for (const [index, name] of names.entries()) {
      const [was, is] = [before[index]!, after[index]!]
      this.#remember(name, is)
      const now = { delayMs: is.delayMs, step: is.backoffStep, holdUntil: is.holdUntil }
      const tell = (type: 'backoff' | 'recover' | 'delay' | 'hold', isSo: boolean) =>
        isSo && this.tell(new ScopeEvent(type, name, now))
      tell('backoff', is.backoffStep > was.backoffStep)
      tell('recover', is.backoffStep < was.backoffStep)
      tell('delay', is.delayMs !== was.delayMs)
      tell('hold', (is.holdUntil ?? 0) > (was.holdUntil ?? 0))
      if (this.#isDebug && latencyMs !== undefined) console.debug(debugLine(name, was, is, latencyMs))
    }
  }

  /** What was last told of these scopes: a step back is taken by time alone, and noticed at the next answer. */
  #seen(names: readonly string[]): ScopeStats[] | undefined {
    const seen = names.map((name) => this.#told.get(name))
    return seen.every((stats) => stats !== undefined) ? (seen as ScopeStats[]) : undefined
  }

  #remember(name: string, stats: ScopeStats): void {
    this.#bound(this.#told)
    this.#told.set(name, stats)
  }

  #mapOf(names: readonly string[]): HeaderMap | undefined {
    const { hints } = this.#options
    const name = hints && names.find((name) => Object.hasOwn(hints, name))
    return name === undefined ? undefined : hints?.[name]
  }

  /** Tells the managers how it ended, each as it concerns its scope, before anybody else can leave at the old pace. */
  #tellManagers(managed: ManagedScopes, names: readonly string[], outcome: Outcome): void {
    for (const name of names) {
      const own = outcome.scopes?.find(({ scope }) => scope === this.#handles.get(name))
      if (own?.isNews === false) continue
      const bad = own?.backoff ?? outcome.backoff
      this.#pace(name, managed.onEnd(name, this.#clock.now(), outcome, bad))
    }
  }

  /** What a scope's manager says. */
  #pace(name: string, pace: ScopeOptions | undefined, handle = pace && this.#handle(name)): void {
    if (pace === undefined || handle === undefined || Object.keys(pace).length === 0) return
    try {
      this.#engine.configure(this.#clock.now(), handle, pace)
    } catch (cause) {
      throw new ManagerError('manager', `of ${name}: ${(cause as Error).message}`, { cause })
    }
  }

  /** Asks a hook; if it throws, the request is over. */
  async #ask<T>(
    hook: string,
    url: string,
    permit: Permit,
    outcome: PermitOutcome,
    call: () => T | PromiseLike<T>,
  ): Promise<T> {
    try {
      return await call()
    } catch (cause) {
      permit.settle(outcome)
      if (cause instanceof ManagerError) throw cause
      throw new ManagerError(hook, `failed for ${url || 'a response'}`, { cause })
    }
  }

  /** Status and headers of a response, and what the hooks know better. */
  async #outcomeOf(response: Response, request: () => ScopeRequest, permit: Permit): Promise<PermitOutcome> {
    const { status, headers, url } = response
    const outcome: PermitOutcome = { status, headers }
    const { getHints, getResponseDelay, getResponseBackoff } = this.#options
    const ask = <T>(hook: string, call: () => T | PromiseLike<T>) =>
      this.#ask(hook, url, permit, outcome, call)
    const hints = getHints && (await ask('getHints', () => getHints(response)))
    const delayMs =
      getResponseDelay && (await ask('getResponseDelay', () => askDelay(getResponseDelay(response))))
    if (hints !== undefined) outcome.hints = hints
    if (typeof delayMs === 'number') outcome.hints = { ...hints, delayMs }
    if (getResponseBackoff) {
      const asked = async () =>
        checkedBackoffs('getResponseBackoff', await getResponseBackoff(response, request()), permit.scopes)
      const scopes = await ask('getResponseBackoff', asked)
      if (scopes !== undefined) outcome.scopes = scopes
    }
    return outcome
  }

  /** The same for a failure. */
  async #failureOf(error: unknown, request: () => ScopeRequest, permit: Permit): Promise<PermitOutcome> {
    const { getErrorBackoff } = this.#options
    if (!getErrorBackoff) return { error }
    const asked = async () =>
      checkedBackoffs('getErrorBackoff', await getErrorBackoff(error, request()), permit.scopes)
    const scopes = await this.#ask('getErrorBackoff', request().url, permit, { error }, asked)
    return scopes === undefined ? { error } : { error, scopes }
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
    const name = host.includes('://') ? hostOf(host) : host
    const delay = asked ? Math.min(asked.crawlDelayMs, maxDelay) : undefined
    const outcome = this.#engine.crawlDelay(this.#clock.now(), this.#handle(name), delay)
    this.#driver.drain()
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
    const named = this.#namesOf(target)
    if (named instanceof Promise) {
      named.catch(() => {})
      throw new TypeError('peek: with getScopes, want { scopes }')
    }
    const { names, costs } = named
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

  get #isIdle(): boolean {
    return this.#entering === 0 && this.#engine.waiting === 0 && this.#engine.inFlight === 0
  }

  #rest(): void {
    for (const notice of this.#engine.takeNotices()) {
      const { scope } = notice
      if (notice.kind === 'stall') {
        const fail = (error: unknown) => this.#driver.failAll(error, scope)
        this.tell(new StallEvent(scope, notice.forMs, fail))
      } else {
        const message = `${notice.path} has no effect in ${scope}: ${notice.why}`
        this.tell(new WarningEvent('no-effect', message, scope))
      }
    }
    if (this.#idle.length > 0 && this.#isIdle) for (const resolve of this.#idle.splice(0)) resolve()
  }

  #warn(): void {
    const { waiting } = this.#engine
    if (this.#isWarned || waiting < this.#warnThreshold) return
    this.#isWarned = true
    this.tell(new WarningEvent('many-waiting', `${waiting} requests wait, each with its promise in memory`))
  }

  #handle(name: string): ScopeHandle {
    const known = this.#handles.get(name)
    if (known !== undefined && this.#engine.touch(known)) return known
    this.#bound(this.#handles)
    const handle = this.#engine.intern(String(name))
    this.#handles.set(name, handle)
    if (this.#managed) {
      if (this.#managed.size > 1000 + 2 * this.#engine.scopes) this.#managed.forget()
      this.#pace(name, this.#managed.begin(name), handle)
    }
    return handle
  }

  /** The engine forgets idle scopes; what is kept beside it by name must not remember a million in its place. */
  #bound(byName: Map<string, unknown>): void {
    if (byName.size > 1000 + 2 * this.#engine.scopes) byName.clear()
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

const REQUEST_KEYS = ['signal', 'priority', 'cost', 'timeout', 'delay']
const MAP_KEYS = ['ordered', 'buffer', 'errors', 'signal']
const FETCH_KEYS = ['priority', 'cost', 'timeout', 'delay', 'scopes', 'adjustDelay']

function checkKeys(options: object, known: readonly string[], path: string): void {
  const problems = unknownKeys(options, known, path)
  if (problems.length > 0) throw new ConfigError(problems)
}

/** Scrapy's line of AUTOTHROTTLE_DEBUG; the size is not known when headers arrive. */
function debugLine(name: string, was: ScopeStats, is: ScopeStats, latencyMs: number): string {
  const whole = (ms: number, width: number) => ms.toFixed(0).padStart(width)
  const change = is.delayMs - was.delayMs
  const difference = `${change < 0 ? '-' : '+'}${Math.abs(change).toFixed(0)}`
  const flying = String(is.inFlight).padStart(2)
  return `slot: ${name} | conc:${flying} | delay:${whole(is.delayMs, 5)} ms (${difference}) | latency:${whole(latencyMs, 5)} ms`
}

/** Settles when a body is over. Knows nothing of the response, which must be free to be collected. */
function settler(permit: Permit, outcome: PermitOutcome): (error?: unknown) => void {
  return (error) => permit.settle(error === undefined || Number.isNaN(failureOf(error)) ? outcome : { error })
}

/** What a `getResponseDelay` hook gave, checked. */
async function askDelay(delay: number | Nothing | Promise<number | Nothing>): Promise<number | Nothing> {
  const ms = await delay
  if (ms === undefined || ms === null || isMillis(ms)) return ms
  throw new ManagerError('getResponseDelay', `gave ${shown(ms)}; want milliseconds from 0 to a year`)
}

/** What `promise` gives, unless the signal is aborted first. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal | null): Promise<T> {
  if (!signal) return promise
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    const over = () => signal.removeEventListener('abort', onAbort)
    promise.then(resolve, reject).then(over)
  })
}

/** Asks for another attempt; if that throws, the one before is over. */
function attempt<T>(permit: Permit, outcome: PermitOutcome, ask: () => T): T {
  try {
    return ask()
  } catch (error) {
    permit.settle(outcome)
    throw error
  }
}
