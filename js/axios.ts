/**
 * `autothrottle/axios`: an adapter for axios. Each attempt and each hop waits for its turn.
 *
 * ```ts
 * import { throttleAdapter } from 'autothrottle/axios'
 *
 * const client = axios.create({ adapter: throttleAdapter(createThrottle({ rate: 5 }), axios) })
 * await client.get('https://api.example/items', { throttle: { priority: 1 } })
 * ```
 *
 * An adapter is what sends in axios: whatever sends again (axios-retry, an interceptor that refreshes a
 * token) comes by it once more. axios' own `timeout` counts from the send.
 *
 * axios follows redirects inside its adapter, unseen, so here they are followed hop by hop. An error's
 * `config` may be that of the last hop, which a retry would then send. With `beforeRedirect`, a body that is
 * a stream, or in a browser, redirects are axios' own, and only the first hop waits. Wanted is axios 1.7 or
 * newer.
 */
import { answerOfError, answerOfResult } from './answers/answer.js'
import { checkSpelling, checkThrottle, notA } from './base/checks.js'
import { type ClientRequestOptions, enter, outcomeWith } from './clients/enter.js'
import { asUtf8, toUrl } from './scopes/names.js'
import type { Throttle } from './throttle/throttle.js'

export type { ClientRequestOptions }

// biome-ignore lint/suspicious/noTsIgnore: axios is there where it is used, and no error elsewhere.
// @ts-ignore
declare module 'axios' {
  interface AxiosRequestConfig {
    /** The throttle's options in the configuration of one request. */
    throttle?: ClientRequestOptions
  }
}

/** Of axios' request config, what matters here. */
interface Config {
  url?: string
  baseURL?: string | undefined
  params?: unknown
  auth?: unknown
  method?: string
  data?: unknown
  headers: Fields
  signal?: Pick<AbortSignal, 'aborted' | 'addEventListener' | 'removeEventListener'>
  cancelToken?: Record<'subscribe' | 'unsubscribe', (listener: () => void) => void>
  maxRedirects?: number
  beforeRedirect?: unknown
  sensitiveHeaders?: string[]
  throttle?: ClientRequestOptions
}

/** axios' own class of headers. */
interface Fields {
  readonly constructor: unknown
  get(name: string): unknown
  delete(names: string[]): void
}

interface AxiosResponse {
  readonly status: number
  readonly headers: Fields
  data: unknown
  config: Config
  request?: { res?: { responseUrl?: string } }
}

/**
 * The parameters of axios' `adapter`.
 *
 * Its `any` are the parameters that differ between versions.
 */
// biome-ignore lint/suspicious/noExplicitAny: see above.
export type AxiosAdapter = (config: any) => Promise<any>

/** The part of axios (its default export) that is needed. */
export interface AxiosLike {
  // biome-ignore lint/suspicious/noExplicitAny: differs between versions.
  readonly defaults: { adapter?: any }
  // biome-ignore lint/suspicious/noExplicitAny: the same.
  getAdapter(adapters: any, config?: any): AxiosAdapter
  // biome-ignore lint/suspicious/noExplicitAny: the same.
  getUri(config?: any): string
  readonly CanceledError: new (message: string | undefined, config: never) => Error
}

/** axios' own limit, which is that of follow-redirects. */
const MOST_HOPS = 21
const REDIRECTS = [301, 302, 303, 307, 308]
const OF_THE_BODY = ['content-encoding', 'content-language', 'content-type', 'content-length']
const OF_THE_ORIGIN = ['authorization', 'proxy-authorization', 'cookie', 'host']

/**
 * An adapter that makes every request wait for `throttle`, and tells it every answer.
 *
 * A single request says more in `throttle`, beside axios' own options: priority, cost, scopes, `maxWait`.
 *
 * @param axios axios' default export: its adapter sends.
 */
export function throttleAdapter(throttle: Throttle, axios: AxiosLike): AxiosAdapter {
  checkThrottle(throttle, 'throttleAdapter')
  if (typeof axios?.getAdapter !== 'function')
    throw notA('throttleAdapter', 'axios after the throttle, as `import axios` gives it', axios)
  throttle.scheduler.nesting.followClients()
  if (throttle.options.retry) {
    const how = 'axios-retry repeats requests, or run(url, fn, { retry: true })'
    throttle.scheduler.warnings.once('no-effect', `retry has no effect on axios: ${how}`, undefined, 'axios')
  }
  const usual = axios.defaults.adapter
  const send = (hop: Config) => sendThrottled(throttle, axios, hop, axios.getAdapter(usual, hop))
  return async (config: Config) => {
    checkSpelling(config, 'axios')
    try {
      const response = await follow(config, axios.getUri(config), send)
      response.config = config
      return response
    } catch (error) {
      // A client that sends it again sends what was asked for, not the last hop.
      if (typeof error === 'object' && error !== null && 'config' in error) error.config = config
      throw error
    }
  }
}

/** A request and, where they can be seen, its redirects: by the rules of fetch (`fetch/redirects.ts`). */
async function follow(
  config: Config,
  url: string,
  send: (hop: Config) => Promise<AxiosResponse>,
): Promise<AxiosResponse> {
  const most = config.maxRedirects ?? MOST_HOPS
  if (most === 0 || config.beforeRedirect !== undefined || isStream(config.data)) return send(config)
  let hop: Config = { ...config, maxRedirects: 0 }
  let at = url
  for (let count = 0; ; count++) {
    let failure: { error: unknown } | undefined
    const response = await send(hop).catch((error) => {
      failure = { error }
      return (error as { response?: AxiosResponse } | null)?.response
    })
    const place =
      response && REDIRECTS.includes(response.status) ? response.headers.get('location') : undefined
    const to = typeof place === 'string' ? toUrl(asUtf8(place), at) : undefined
    if (to === undefined) {
      if (failure) throw failure.error
      // Users of axios read these to find the final URL.
      const sent = response!.request?.res
      if (count > 0 && sent) sent.responseUrl ??= at
      return response!
    }
    ;(response!.data as { destroy?(): void } | null)?.destroy?.()
    if (count >= most) throw tooMany(config, failure?.error)
    hop = hopTo(to, response!.status, hop, new URL(at).origin !== to.origin)
    at = to.href
  }
}

/** The next hop: what of the request goes on to another place. */
function hopTo(to: URL, status: number, hop: Config, isElsewhere: boolean): Config {
  const method = (hop.method ?? 'get').toUpperCase()
  const isTurned = (status <= 302 && method === 'POST') || (status === 303 && !/^(?:GET|HEAD)$/.test(method))
  const headers = new (hop.headers.constructor as new (from: Fields) => Fields)(hop.headers)
  const next: Config = { ...hop, url: to.href, baseURL: undefined, params: undefined, headers }
  if (isTurned) {
    next.method = 'get'
    delete next.data
    headers.delete(OF_THE_BODY)
  }
  if (isElsewhere) {
    delete next.auth
    headers.delete([...OF_THE_ORIGIN, ...(hop.sensitiveHeaders ?? [])])
  }
  return next
}

async function sendThrottled(
  throttle: Throttle,
  axios: AxiosLike,
  config: Config,
  send: AxiosAdapter,
): Promise<AxiosResponse> {
  const { method, headers, throttle: own } = config
  const request = { url: axios.getUri(config), method, headers }
  // No server is asked.
  if (/^(?:data|blob):/.test(request.url)) return send(config)
  const abort = listenForAbort(config)
  const permit = await enter(throttle, request, own, abort.signal)
    .catch((error) => {
      throw abort.signal.aborted ? new axios.CanceledError(undefined, config as never) : error
    })
    .finally(abort.end)
  try {
    const response: AxiosResponse = await send(config)
    const outcome = outcomeWith(answerOfResult(response), own)
    const latency = throttle.now() - permit.sentAt
    if (throttle.isHeldByBodies && isStream(response.data))
      response.data.once('close', () => permit.settle(outcome && { ...outcome, latency }))
    else permit.settle(outcome)
    return response
  } catch (error) {
    const isCancelled = error instanceof axios.CanceledError
    permit.settle(isCancelled ? undefined : outcomeWith(answerOfError(error, undefined), own))
    throw error
  }
}

/** axios' two ways of aborting as one signal, for the wait. */
function listenForAbort({ signal, cancelToken }: Config): { signal: AbortSignal; end: () => void } {
  const controller = new AbortController()
  const abort = () => controller.abort()
  if (signal?.aborted) abort()
  signal?.addEventListener('abort', abort)
  cancelToken?.subscribe(abort)
  const end = () => {
    signal?.removeEventListener('abort', abort)
    cancelToken?.unsubscribe(abort)
  }
  return { signal: controller.signal, end }
}

function tooMany(config: Config, cause: unknown): Error {
  const error = new Error('Maximum number of redirects exceeded', { cause })
  return Object.assign(error, { code: 'ERR_FR_TOO_MANY_REDIRECTS', config })
}

/** A body that can be read once only. */
function isStream(body: unknown): body is { once(event: 'close', listener: () => void): void } {
  return typeof body === 'object' && body !== null && ('pipe' in body || 'getReader' in body)
}
