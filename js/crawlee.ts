/**
 * `autothrottle/crawlee`: hooks for Crawlee's crawlers (Cheerio, JSDOM, Http, Playwright, Puppeteer), so that
 * each navigation waits for its turn.
 *
 * ```ts
 * import { throttleHooks } from 'autothrottle/crawlee'
 *
 * new CheerioCrawler({ ...throttleHooks(throttle, { errorHandler }), requestHandler })
 * ```
 *
 * | Crawlee's | here |
 * |---|---|
 * | retries | each comes back by the hooks; a refusal has slowed its host down by then |
 * | timeouts | one counts the wait: after `maxWait` a request goes back to the queue, uncounted, unblamed |
 * | sessions, proxies | one pace for a host; `scopes` makes it one per session or proxy |
 * | `maxRequestsPerMinute`, `sameDomainDelaySecs` | leave them out |
 *
 * A request that fails before its answer skips the hooks after it, so the handlers of errors settle, too. A
 * place of Crawlee's own concurrency that waits for a slow host keeps a fast one out: let `maxConcurrency` be
 * larger than what waits at one host, or `maxWait` short.
 */

import { answerOfError } from './answers/answer.js'
import { checkSpelling, checkThrottle } from './base/checks.js'
import { type ClientRequestOptions, enter, outcomeOfText, outcomeWith } from './clients/enter.js'
import type { Permit, PermitOutcome } from './core/permit.js'
import type { Scopes } from './scopes/names.js'
import type { Throttle } from './throttle/throttle.js'

export type { ClientRequestOptions }

/** Of Crawlee's crawling context, what matters here. */
export interface CrawlContext {
  readonly request: {
    readonly url: string
    readonly method?: string
    readonly headers?: Record<string, string>
    retryCount: number
    readonly userData: Record<string, unknown>
  }
  readonly session?: { readonly id: string } | undefined
  readonly proxyInfo?: { readonly url: string } | undefined
  /** @internal */
  readonly response?: CrawlResponse | undefined
}

/**
 * Crawlee's hooks and handlers.
 *
 * Its `any` are the parameters that differ between crawlers.
 */
// biome-ignore lint/suspicious/noExplicitAny: see above.
export type CrawlHook = (context: any, options: any) => any
// biome-ignore lint/suspicious/noExplicitAny: see above.
export type CrawlErrorHandler = (context: any, error: Error) => any

/** Hooks and handlers of yours, which are called beside ours, and settings. */
export interface CrawlHookOptions {
  /** Called before the wait: no slot is held meanwhile. */
  preNavigationHooks?: CrawlHook[]
  /** Called after the slot came back. */
  postNavigationHooks?: CrawlHook[]
  /** Not called for a request that only waited too long. */
  errorHandler?: CrawlErrorHandler
  failedRequestHandler?: CrawlErrorHandler
  /**
   * Milliseconds that a request may wait; then it goes back to the queue. From 0; default 30,000. Crawlee
   * ends a request after `navigationTimeoutSecs` + `requestHandlerTimeoutSecs` + 10 s in all: 100 s for
   * Cheerio, 130 s for a browser, unless you say otherwise.
   */
  maxWait?: number
  /** Other scopes than the host's: `({ request, session }) => …`. */
  scopes?: (context: CrawlContext) => Scopes
}

/** The options of a crawler that this fills in. */
export interface CrawlHooks {
  preNavigationHooks: CrawlHook[]
  postNavigationHooks: CrawlHook[]
  errorHandler: CrawlErrorHandler
  failedRequestHandler: CrawlErrorHandler
}

/** An answer: got's have fields, those of browsers have methods. */
interface CrawlResponse {
  readonly statusCode?: number
  // biome-ignore lint/suspicious/noExplicitAny: a field or a method, which is seen when it is read.
  readonly headers?: any
  // biome-ignore lint/suspicious/noExplicitAny: the same.
  readonly status?: any
}

/**
 * A request that waited as long as it may: it is not over, and it has not failed. Crawlee counts a retry for
 * each error, gives a request up whose retries are used, and blames the session: none of it has been earned.
 */
class WaitedTooLong extends Error {
  override readonly name = 'WaitedTooLong'
  readonly #retries: number

  constructor(maxWait: number, context: CrawlContext, cause: unknown) {
    super(`waited ${maxWait} ms for its turn: back to the queue`, { cause })
    this.#retries = context.request.retryCount
    context.request.retryCount = -1
    Object.assign(context, { session: undefined })
  }

  /** Crawlee adds one after this. */
  forgive({ request }: CrawlContext): void {
    request.retryCount = this.#retries - 1
  }
}

/**
 * Hooks that make every navigation of a crawler wait for `throttle`, and tell it every answer.
 *
 * A single request says more in `userData.throttle`: priority, cost, scopes.
 *
 * @throws {TypeError} for a `maxWait` that is none.
 */
export function throttleHooks(throttle: Throttle, options: CrawlHookOptions = {}): CrawlHooks {
  checkThrottle(throttle, 'throttleHooks')
  const { preNavigationHooks = [], postNavigationHooks = [], maxWait = 30_000 } = options
  if (!(maxWait >= 0)) throw new TypeError(`maxWait: want milliseconds from 0; got ${String(maxWait)}`)
  const navigations = new WeakMap<CrawlContext, Navigation>()
  const onAnswer = (context: CrawlContext) => {
    if (context.response) navigations.get(context)?.end(outcomeOfAnswer(context.response, context))
  }
  const onError = (handler: CrawlErrorHandler | undefined) => async (context: CrawlContext, error: Error) => {
    if (error instanceof WaitedTooLong) return error.forgive(context)
    onAnswer(context)
    navigations.get(context)?.end(outcomeOfNavigation(error, context))
    await handler?.(context, error)
  }
  const wait = async (context: CrawlContext) => {
    const navigation = new Navigation()
    navigations.set(context, navigation)
    checkSpelling(context.request.userData, 'userData')
    const own = context.request.userData.throttle as ClientRequestOptions | undefined
    const scopes = own?.scopes ?? options.scopes?.(context)
    await navigation.wait(throttle, context, scopes === undefined ? own : { ...own, scopes }, maxWait)
  }
  return {
    preNavigationHooks: [...preNavigationHooks, wait],
    postNavigationHooks: [onAnswer, ...postNavigationHooks],
    errorHandler: onError(options.errorHandler),
    failedRequestHandler: onError(options.failedRequestHandler),
  }
}

/** One attempt at one request. */
class Navigation {
  readonly #over = new AbortController()
  #own: ClientRequestOptions | undefined
  #permit: Permit | undefined

  async wait(
    throttle: Throttle,
    context: CrawlContext,
    own: ClientRequestOptions | undefined,
    maxWait: number,
  ): Promise<void> {
    this.#own = own
    try {
      this.#permit = await enter(throttle, context.request, { maxWait, ...own }, this.#over.signal)
    } catch (error) {
      if ((error as { code?: unknown } | null)?.code !== 'ERR_TIMEOUT') throw error
      throw new WaitedTooLong(maxWait, context, error)
    }
  }

  /** It is over: what waits leaves, what was sent settles. */
  end(outcome: PermitOutcome | undefined): void {
    this.#permit?.settle(outcomeWith(outcome, this.#own))
    this.#over.abort()
  }
}

/** In browsers, Crawlee's own proxy stands between, and says 590 to 599 where no server answered. */
function outcomeOfAnswer(answer: CrawlResponse, { proxyInfo }: CrawlContext): PermitOutcome | undefined {
  const { statusCode, status, headers } = answer
  if (statusCode !== undefined) return { status: statusCode, headers: headers ?? {} }
  const code: number = typeof status === 'function' ? answer.status() : status
  const isNobody = code >= 590 && code <= 599
  if (isNobody)
    return proxyInfo === undefined ? { error: new Error(`no server answered: ${code}`) } : undefined
  return { status: code, headers: typeof headers === 'function' ? answer.headers() : (headers ?? {}) }
}

/**
 * Why a navigation ended without an answer: ours is the last hook before it, so no other hook can have. With
 * a proxy, what Crawlee blames on the session is the proxy's doing.
 */
function outcomeOfNavigation(error: Error, { proxyInfo }: CrawlContext): PermitOutcome | undefined {
  if (proxyInfo !== undefined && error.constructor.name === 'SessionError') return undefined
  return answerOfError(error, undefined) ?? outcomeOfText(error.message)
}
