/**
 * `autothrottle/undici`: a throttle as an interceptor, for programs that speak undici, and for the `fetch`
 * that Node builds on it.
 *
 * ```ts
 * import { Agent, interceptors, setGlobalDispatcher } from 'undici'
 * import { throttle } from 'autothrottle/undici'
 *
 * setGlobalDispatcher(new Agent().compose(throttle({ defaults: { rampup: true } }), interceptors.retry(),
 * interceptors.redirect()))
 * ```
 *
 * It goes first in `compose`, which makes it the innermost: each attempt of `retry` and each hop of
 * `redirect` comes by. The latency is undici's own, from the moment a connection takes the request. Wanted is
 * undici 7 or newer.
 *
 * A handler that hears of its request only when it leaves could not abort the wait, so it is given a
 * controller at once. A request may end without an answer, and its slot comes back. Handlers of undici 6 do
 * not know the calls of undici 7 and would wait for ever. No type comes from undici itself: a program
 * compiles beside any version of it.
 */
import type { HeadersLike } from './answers/headers.js'
import { checkSpelling, isThrottle } from './base/checks.js'
import { systemClock } from './base/clock.js'
import type { Permit, PermitOutcome } from './core/permit.js'
import type { FetchOptions } from './core/requests.js'
import type { Clock, ThrottleOptions } from './options/options.js'
import type { Target } from './scopes/names.js'
import { createThrottle, type Throttle } from './throttle/throttle.js'

/**
 * The callbacks that undici calls while a request is on its way: those of its `DispatchHandler` that matter
 * here.
 */
interface Handler {
  onRequestStart?(controller: Controller, context: unknown): void
  onRequestUpgrade?(controller: Controller, status: number, headers: Fields, socket: unknown): void
  onResponseStart?(controller: Controller, status: number, headers: Fields, text?: string): void
  onResponseData?(controller: Controller, chunk: unknown): void
  onResponseEnd?(controller: Controller, trailers: Fields): void
  onResponseError?(controller: Controller, error: Error): void
  onResponseStarted?(): void
  onBodySent?(chunk: unknown): void
  onRequestSent?(): void
}

/** undici's `DispatchController`. */
interface Controller {
  readonly aborted: boolean
  readonly paused: boolean
  readonly reason: Error | null
  rawHeaders?: unknown
  rawTrailers?: unknown
  abort(reason: Error): void
  pause(): void
  resume(): void
}

type Fields = Record<string, string | string[] | undefined>

/** Of undici's `DispatchOptions`, what names the request. */
interface DispatchOptions {
  origin?: string | { readonly href: string }
  path: string
  method: string
  headers?: unknown
}

type Dispatch = (options: DispatchOptions, handler: Handler) => boolean

/**
 * The type of `dispatcher.compose(…)`'s parameter, whatever the version's name for it.
 *
 * Its `any` are the parameters that differ between versions.
 */
// biome-ignore lint/suspicious/noExplicitAny: see above.
export type Interceptor = (dispatch: (options: any, handler: any) => boolean) => (
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  options: any,
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  handler: any,
) => boolean

/** The options of a single `request`, `stream` or `pipeline`, as `throttle` beside undici's own options. */
export type UndiciRequestOptions = FetchOptions

/**
 * An interceptor for `dispatcher.compose(…)`.
 *
 * @param throttleOrOptions a throttle, to share it, or the options of one of its own. `retry`, `redirects`
 * and
 *   `robots` are for `throttle.fetch`; here undici's own interceptors do that.
 * @throws {ConfigError} listing every problem of the options. The interceptor throws a `TypeError` for a
 * request of undici 6.
 */
export function throttle(throttleOrOptions: Throttle | ThrottleOptions = {}): Interceptor {
  const shared = isThrottle(throttleOrOptions)
    ? (throttleOrOptions as Throttle)
    : createThrottle(throttleOrOptions as ThrottleOptions)
  shared.scheduler.nesting.followClients()
  const clock = systemClock(false)
  return (dispatch: Dispatch) => (options: DispatchOptions, handler: Handler) => {
    wantModern(handler)
    checkSpelling(options, 'undici')
    const { throttle: own, ...rest } = options as DispatchOptions & { throttle?: UndiciRequestOptions }
    new Exchange(handler, clock, shared.isHeldByBodies).start(shared, rest, own, dispatch)
    return true
  }
}

/** Handlers of undici 6 have other calls: what we call would never reach them. */
function wantModern(handler: Handler & { onConnect?: unknown; onHeaders?: unknown }): void {
  if (handler.onRequestStart || !(handler.onConnect || handler.onHeaders)) return
  throw new TypeError(
    'autothrottle/undici needs undici 7 or newer; the request comes from undici 6 or older.' +
      ' Install undici@7, or use `throttle.fetch` in place of the interceptor',
  )
}

/** One request on its way: waits, is dispatched, and settles whatever happens. */
class Exchange {
  readonly #handler: Handler
  readonly #clock: Clock
  readonly #isHeld: boolean
  readonly #abort = new AbortController()
  readonly #controller: WaitingController
  #permit: Permit | undefined
  #startedAt: number | undefined
  #outcome: PermitOutcome = {}

  constructor(handler: Handler, clock: Clock, isHeld: boolean) {
    this.#handler = handler
    this.#clock = clock
    this.#isHeld = isHeld
    this.#controller = new WaitingController((reason) => this.#abort.abort(reason))
  }

  start(
    throttle: Throttle,
    options: DispatchOptions,
    { adjustDelay, scopes, ...own }: UndiciRequestOptions = {},
    dispatch: Dispatch,
  ): void {
    this.#handler.onRequestStart?.(this.#controller, {})
    if (adjustDelay !== undefined) this.#outcome.adjustDelay = adjustDelay
    const target = scopes === undefined ? targetOf(options) : { scopes }
    const send = (permit: Permit) => {
      this.#permit = permit
      dispatch(options, this.#wrapped())
    }
    throttle
      .acquire(target, { ...own, signal: this.#abort.signal })
      .then(send)
      .catch((error: Error) => this.#end({}, () => this.#handler.onResponseError?.(this.#controller, error)))
  }

  #wrapped(): Handler {
    const [handler, controller] = [this.#handler, this.#controller]
    return {
      onRequestStart: (real) => {
        this.#startedAt = this.#clock.now()
        controller.link(real)
      },
      onRequestUpgrade: (_, status, headers, socket) => {
        this.#end({ status }, () => handler.onRequestUpgrade?.(controller, status, headers, socket))
      },
      onResponseStart: (_, status, headers, text) => {
        if (status >= 200) this.#onHeaders(status, headers as HeadersLike)
        return handler.onResponseStart?.(controller, status, headers, text)
      },
      onResponseStarted: () => handler.onResponseStarted?.(),
      onBodySent: (chunk) => handler.onBodySent?.(chunk),
      onRequestSent: () => handler.onRequestSent?.(),
      onResponseData: (_, chunk) => handler.onResponseData?.(controller, chunk),
      onResponseEnd: (_, trailers) => {
        this.#end(this.#outcome, () => handler.onResponseEnd?.(controller, trailers))
      },
      onResponseError: (_, error) => {
        const isOurs = controller.aborted
        this.#end(isOurs ? this.#outcome : { error }, () => handler.onResponseError?.(controller, error))
      },
    }
  }

  #onHeaders(status: number, headers: HeadersLike): void {
    const latency = this.#startedAt === undefined ? {} : { latency: this.#clock.now() - this.#startedAt }
    this.#outcome = { ...this.#outcome, status, headers, ...latency }
    if (!this.#isHeld) this.#permit?.settle(this.#outcome)
  }

  /** Settles, if that was not done before, and then tells, whatever becomes of either. */
  #end(outcome: PermitOutcome, report: () => void): void {
    try {
      this.#permit?.settle(outcome)
    } finally {
      report()
    }
  }
}

/** Stands for undici's controller until there is one. */
class WaitingController implements Controller {
  readonly #onAbort: (reason: Error) => void
  #real: Controller | undefined
  #reason: Error | null = null
  #isPaused = false

  constructor(onAbort: (reason: Error) => void) {
    this.#onAbort = onAbort
  }

  get aborted(): boolean {
    return this.#reason !== null || (this.#real?.aborted ?? false)
  }

  get paused(): boolean {
    return this.#real?.paused ?? this.#isPaused
  }

  get reason(): Error | null {
    return this.#reason ?? this.#real?.reason ?? null
  }

  get rawHeaders(): unknown {
    return this.#real?.rawHeaders
  }

  get rawTrailers(): unknown {
    return this.#real?.rawTrailers
  }

  abort(reason: Error): void {
    this.#reason ??= reason
    if (this.#real) this.#real.abort(reason)
    else this.#onAbort(reason)
  }

  pause(): void {
    this.#isPaused = true
    this.#real?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#real?.resume()
  }

  /** The request leaves. */
  link(real: Controller): void {
    this.#real = real
    if (this.#reason) real.abort(this.#reason)
    else if (this.#isPaused) real.pause()
  }
}

/** The request, as `getScopes` and the default strategy read it. */
function targetOf({ origin = '', path, method, headers }: DispatchOptions): Target {
  const url = new URL(path, String(origin)).href
  return { url, method, headers: fieldsOf(headers) } as unknown as Request
}

/** undici takes an object, a flat list, or anything iterable. */
function fieldsOf(headers: unknown): Headers {
  const fields = new Headers()
  const add = (name: string, value: unknown) => {
    for (const each of Array.isArray(value) ? value : [value])
      if (each !== undefined && each !== null) fields.append(name, String(each))
  }
  if (typeof headers !== 'object' || headers === null) return fields
  if (Array.isArray(headers) && typeof headers[0] === 'string') {
    for (let index = 0; index + 1 < headers.length; index += 2)
      add(String(headers[index]), headers[index + 1])
  } else if (Symbol.iterator in headers) {
    for (const [name, value] of headers as Iterable<[string, unknown]>) add(name, value)
  } else {
    for (const [name, value] of Object.entries(headers)) add(name, value)
  }
  return fields
}
