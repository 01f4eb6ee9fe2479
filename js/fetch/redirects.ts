/**
 * Redirects hop by hop, with fetch's own rules: methods, bodies, credentials, fragments. Source: the Fetch
 * standard, *HTTP-redirect fetch*.
 *
 * A POST becomes a GET after a 303; an `Authorization` stays with its origin; a body that was a stream is
 * empty the second time; a `Retry-After` on a redirect holds no host.
 */
import { asUtf8, isRequest, methodOf, toUrl, urlOf } from '../scopes/names.js'
import { withMetadata } from './body.js'
import { isStream } from './send.js'

/** One request on the way. */
export interface Hop {
  readonly input: RequestInfo | URL
  readonly init: RequestInit
  /** Milliseconds that it must wait at least. */
  readonly delay: number
}

const REDIRECTS = [301, 302, 303, 307, 308]
/** Fetch's own limit. */
const MOST = 20
const OF_THE_BODY = [
  'content-encoding',
  'content-language',
  'content-location',
  'content-type',
  'content-length',
]
const OF_THE_ORIGIN = ['authorization', 'proxy-authorization', 'cookie', 'host']
/**
 * The parts of a `Request` that a hop keeps, where they are not the default (which some runtimes refuse to be
 * told).
 */
const KEPT = {
  credentials: 'same-origin',
  cache: 'default',
  referrerPolicy: '',
  integrity: '',
  keepalive: false,
} as const

/** Whether the throttle follows, or the caller wants to see redirects, or none. */
export function follows(input: RequestInfo | URL, init: RequestInit): boolean {
  return (init.redirect ?? (isRequest(input) ? input.redirect : 'follow')) === 'follow'
}

/**
 * Where a response leads; `null` if nowhere.
 *
 * @throws {TypeError} where the runtime hides it.
 */
export function placeOf(response: Response): string | null {
  if (response.type === 'opaqueredirect') {
    throw new TypeError("redirects: 'throttle' cannot be had here: this runtime hides redirects")
  }
  if (!REDIRECTS.includes(response.status)) return null
  if (typeof response.headers?.get !== 'function')
    throw new TypeError("redirects: 'throttle' wants a fetch that gives a Response; got no Headers in it")
  const place = response.headers.get('location')
  return place === null ? null : asUtf8(place)
}

/** Whether `fetch` asks a server for it. */
export const isHttp = ({ protocol }: URL) => protocol === 'http:' || protocol === 'https:'

/** The redirects of one call of `fetch`. */
export class Redirects {
  readonly #maxDelay: number
  #count = 0
  #hop: Hop
  #spare: Request | undefined

  constructor(input: RequestInfo | URL, init: RequestInit, delay: number, maxDelay: number) {
    this.#maxDelay = maxDelay
    this.#hop = { input, init: { ...init, redirect: 'manual' }, delay }
  }

  /** The request to send now. A `Request` with a body is copied: a 307 wants the body again. */
  get hop(): Hop {
    const { input } = this.#hop
    this.#spare = isRequest(input) && input.body ? input.clone() : undefined
    return this.#hop
  }

  /**
   * Whether the answer to the last hop leads to another one. `askedMs`: how long the server asks to wait
   * before; NaN if it does not say.
   *
   * @throws {TypeError} as fetch does: too many, a place that cannot be gone to, a body that cannot be sent
   *   again.
   */
  follow(response: Response, askedMs: number): boolean {
    const place = placeOf(response)
    if (place === null || askedMs > this.#maxDelay) return false
    if (++this.#count > MOST) throw new TypeError(`fetch failed: more than ${MOST} redirects`)
    const from = urlOf(this.#hop.input)
    const to = toUrl(place, from)
    if (to === undefined) throw new TypeError(`fetch failed: a redirect to ${JSON.stringify(place)}`)
    if (!isHttp(to)) throw new TypeError(`fetch failed: a redirect to ${to.protocol}`)
    if (to.hash === '') to.hash = from.hash
    this.#hop = { input: to.href, init: this.#initFor(response.status, from, to), delay: askedMs || 0 }
    return true
  }

  /** The answer as fetch would give it. */
  mark(response: Response): Response {
    return this.#count > 0 ? withMetadata(response, { redirected: true }) : response
  }

  #initFor(status: number, from: URL, to: URL): RequestInit {
    const { input, init } = this.#hop
    const request: Partial<Request> = isRequest(input) ? input : {}
    const kept = Object.entries(KEPT).filter(([key, usual]) => (request[key as 'cache'] ?? usual) !== usual)
    const headers = new Headers(init.headers ?? request.headers)
    const method = methodOf(input, init)
    const signal = init.signal ?? request.signal
    const next: RequestInit & { duplex?: 'half' } = {
      ...Object.fromEntries(kept.map(([key]) => [key, request[key as 'cache']])),
      ...init,
      ...(signal ? { signal } : {}),
      method,
      headers,
    }
    const body = init.body ?? this.#spare?.body ?? null
    if (body !== null) next.body = body
    if (body instanceof ReadableStream) next.duplex = 'half'
    if ((status <= 302 && method === 'POST') || (status === 303 && !/^(?:GET|HEAD)$/.test(method))) {
      next.method = 'GET'
      delete next.body
      for (const name of OF_THE_BODY) headers.delete(name)
    } else if (isStream(init.body)) {
      throw new TypeError(`fetch failed: a body that is a stream cannot be sent again after a ${status}`)
    }
    if (to.origin !== from.origin) for (const name of OF_THE_ORIGIN) headers.delete(name)
    return next
  }
}
