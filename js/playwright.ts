/**
 * `autothrottle/playwright`: requests of a page wait for their turn; with Playwright and with
 * Puppeteer.
 *
 * ```ts
 * import { throttlePage } from 'autothrottle/playwright'
 *
 * await throttlePage(page, createThrottle({ rate: 1 }))       // or a context: all of its pages
 * await page.goto('https://a.example/', { timeout: 0 })        // the wait is part of it
 * ```
 *
 * Documents and XHR wait by default; images, styles and scripts come along with their document, as they do
 * for a person. The request is held in the browser until the throttle lets it go: by `route` in
 * Playwright, by request interception in Puppeteer. Both switch the HTTP cache off.
 *
 * No request is sent again: `retry` is for `throttle.fetch`. A page that got a 429 shows it; the next request
 * waits as the answer says. Look at the status of `goto`, and call it again.
 *
 * A page may be closed, or go elsewhere, while its request waits, and a request may fail without an answer.
 * Playwright does not show redirects before they are sent: there a chain is one request, of its first host.
 * Puppeteer shows each hop.
 */
import { type ClientRequestOptions, enter, outcomeOfText, outcomeWith } from './clients/enter.js'
import type { Permit, PermitOutcome } from './core/permit.js'
import type { Throttle } from './throttle/throttle.js'

export type { ClientRequestOptions }

/** The kind of resource that a request is for, in the words of both libraries. */
export type ResourceType =
  | 'document'
  | 'stylesheet'
  | 'image'
  | 'media'
  | 'font'
  | 'script'
  | 'texttrack'
  | 'xhr'
  | 'fetch'
  | 'eventsource'
  | 'websocket'
  | 'manifest'
  | 'ping'
  | 'other'

/** A request of a page, as both libraries tell of it. */
export interface PageRequest {
  url(): string
  method(): string
  resourceType(): string
  headers(): Record<string, string>
}

/** How {@link throttlePage} works. */
export interface PageOptions {
  /** The kinds of requests that wait. Default: `document`, `xhr` and `fetch`. */
  resourceTypes?: readonly ResourceType[]
  /** The options of a single request: priority, cost, scopes, `maxWait`; `false`: it does not wait. */
  request?: (request: PageRequest) => ClientRequestOptions | false | undefined
}

/**
 * A page or a context of Playwright's, or a page of Puppeteer's.
 *
 * Its `any` are the parameters that differ between versions.
 */
export type PageLike = PlaywrightLike | PuppeteerLike

interface PlaywrightLike extends Emitting {
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  route(url: any, handler: (route: any) => any): Promise<any>
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  unroute(url: any, handler?: (route: any) => any): Promise<any>
}

interface PuppeteerLike extends Emitting {
  setRequestInterception(value: boolean): Promise<void>
}

interface Emitting {
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  on(event: any, listener: (about: any) => void): unknown
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  off(event: any, listener: (about: any) => void): unknown
}

/** An answer, as both libraries tell of it. */
interface PageResponse {
  status(): number
  headers(): Record<string, string>
  finished?(): Promise<unknown>
}

interface Routed extends PageRequest {
  response(): Promise<PageResponse | null>
  failure(): { errorText: string } | null
  redirectedFrom(): Routed | null
}

interface Route {
  request(): Routed
  fallback(): Promise<void>
  abort(why?: string): Promise<void>
}

interface Intercepted extends PageRequest {
  failure(): { errorText: string } | null
  isInterceptResolutionHandled(): boolean
  continue(overrides?: object, priority?: number): Promise<void>
  abort(why?: string, priority?: number): Promise<void>
}

/**
 * Makes what a page (or, with Playwright, a context) asks for wait for `throttle`, and tells it the answers.
 *
 * @returns a function that ends it.
 */
export async function throttlePage(
  page: PageLike,
  throttle: Throttle,
  options: PageOptions = {},
): Promise<() => Promise<void>> {
  const kinds: readonly string[] = options.resourceTypes ?? ['document', 'xhr', 'fetch']
  const optionsOf = (request: PageRequest) =>
    kinds.includes(request.resourceType()) && /^https?:/.test(request.url())
      ? (options.request?.(request) ?? {})
      : false
  return 'route' in page ? routed(page, throttle, optionsOf) : intercepted(page, throttle, optionsOf)
}

type OptionsOf = (request: PageRequest) => ClientRequestOptions | false

async function routed(
  page: PlaywrightLike,
  throttle: Throttle,
  optionsOf: OptionsOf,
): Promise<() => Promise<void>> {
  const flights = new WeakMap<Routed, Flight>()
  const open = new Set<Flight>()
  /** The last of a chain of redirects is the answer. */
  const listen = async (request: Routed, flight: Flight) => {
    flights.set(request, flight)
    // Null when it failed: also while it still waits here.
    const response = await request.response().catch(() => null)
    if (response === null) flight.giveUp()
    else if (isRedirect(response)) return
    else flight.hear(response)
    if (response && throttle.isHeldByBodies) await response.finished?.()
    flight.end(request.failure())
    open.delete(flight)
  }
  const onRoute = async (route: Route) => {
    const request = route.request()
    const own = optionsOf(request)
    if (own === false) return route.fallback()
    const flight = new Flight(throttle, own)
    open.add(flight)
    void listen(request, flight)
    if (!(await flight.enter(request, () => route.abort('blockedbyclient')))) return
    await route.fallback().catch(() => flight.end(null))
  }
  const onRequest = (request: Routed) => {
    const from = request.redirectedFrom()
    const flight = from ? flights.get(from) : undefined
    if (flight) void listen(request, flight)
  }
  const onClose = () => {
    for (const flight of open) {
      flight.giveUp()
      flight.end(null)
    }
    open.clear()
  }
  const everything = '**/*'
  page.on('request', onRequest)
  page.on('close', onClose)
  await page.route(everything, onRoute)
  return async () => {
    page.off('request', onRequest)
    page.off('close', onClose)
    await page.unroute(everything, onRoute)
  }
}

/** Whether a response is a redirect. */
function isRedirect(response: PageResponse): boolean {
  return response.status() >= 300 && response.status() < 400 && 'location' in response.headers()
}

async function intercepted(
  page: PuppeteerLike,
  throttle: Throttle,
  optionsOf: OptionsOf,
): Promise<() => Promise<void>> {
  const flights = new WeakMap<Intercepted, Flight>()
  const onRequest = async (request: Intercepted) => {
    if (request.isInterceptResolutionHandled()) return
    const own = optionsOf(request)
    if (own === false) return request.continue({}, 0)
    const flight = new Flight(throttle, own)
    flights.set(request, flight)
    if (!(await flight.enter(request, () => request.abort('blockedbyclient', 0)))) return
    await request.continue({}, 0).catch(() => flight.end(null))
  }
  const onResponse = (response: PageResponse & { request(): Intercepted }) => {
    flights.get(response.request())?.hear(response)
  }
  const onEnd = (request: Intercepted) => {
    const flight = flights.get(request)
    flight?.giveUp()
    flight?.end(request.failure())
  }
  const listeners = { request: onRequest, response: onResponse, requestfinished: onEnd, requestfailed: onEnd }
  await page.setRequestInterception(true)
  for (const [event, listener] of Object.entries(listeners)) page.on(event, listener)
  return async () => {
    for (const [event, listener] of Object.entries(listeners)) page.off(event, listener)
    await page.setRequestInterception(false)
  }
}

/** One request: waits, goes on, and settles once. */
class Flight {
  readonly #throttle: Throttle
  readonly #own: ClientRequestOptions
  readonly #gone = new AbortController()
  #permit: Permit | undefined
  #outcome: PermitOutcome | undefined

  constructor(throttle: Throttle, own: ClientRequestOptions) {
    this.#throttle = throttle
    this.#own = own
  }

  /** Waits. False if it may not go on: the page gave it up, or `abort` was called. */
  async enter(request: PageRequest, abort: () => Promise<void>): Promise<boolean> {
    const seen = { url: request.url(), method: request.method(), headers: request.headers() }
    try {
      this.#permit = await enter(this.#throttle, seen, this.#own, this.#gone.signal)
      return true
    } catch (error) {
      if (this.#gone.signal.aborted) return false
      await abort().catch(() => {})
      // A wait that the throttle ended is seen as a request that failed; a misspelt option is loud.
      const code = (error as { code?: unknown } | null)?.code
      if (typeof code === 'string' && code !== 'ERR_CONFIG') return false
      throw error
    }
  }

  /** The page gave it up; without a wait this has no effect. */
  giveUp(): void {
    this.#gone.abort()
  }

  /** Its headers came. */
  hear(response: PageResponse): void {
    if (!this.#permit) return
    const latency = this.#throttle.now() - this.#permit.sentAt
    this.#outcome = { status: response.status(), headers: response.headers(), latency }
    if (!this.#throttle.isHeldByBodies) this.end(null)
  }

  /** It is over, with an answer or without. */
  end(failure: { errorText: string } | null | undefined): void {
    this.#permit?.settle(outcomeWith(this.#outcome ?? outcomeOfText(failure?.errorText ?? ''), this.#own))
  }
}
