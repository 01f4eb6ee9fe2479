/**
 * robots.txt for `throttle.fetch`: once per host, through the throttle, by the rules of RFC 9309 §2.3.1.
 *
 * | answer | what it means |
 * |---|---|
 * | 2xx | what it says; kept for a day |
 * | 4xx | no rules |
 * | 429, 5xx, no answer | the file before counts, else no URL is allowed; asked again after a minute |
 *
 * Redirects are followed where `fetch` gives them (with `redirects: 'throttle'` it does): five, to whatever
 * host, as the RFC says. Each hop is a request of its own, so a hook that looks at URLs before they are sent
 * sees all of them.
 *
 * A hundred first requests to a host share one promise. All of them wait for its body, which may take as long
 * as headers may, `requestTimeout`.
 */
import { DisallowedError } from '../base/errors.js'
import { MOST_ROBOTS_BYTES } from '../options/generated.js'
import type { Clock, RobotsOptions } from '../options/options.js'
import { toUrl } from '../scopes/names.js'
import { discard } from './body.js'
import { isHttp, placeOf } from './redirects.js'

/** Reads a robots.txt and says which URLs may be fetched. */
export type RobotsRules = (robotsUrl: string, text: string, userAgent: string) => (url: string) => boolean

const DAY = 86_400_000
const MINUTE = 60_000
const MOST_HOSTS = 10_000
/** RFC 9309 §2.3.1.2. A host that redirects more often has no rules. */
const MOST_REDIRECTS = 5

/** The parts of a throttle that robots.txt needs. */
interface Asking {
  readonly clock: Clock
  /** Sends a request that waits for its turn. */
  fetch(url: string, init: RequestInit): Promise<Response>
  /** How often a body that breaks off is asked for again. */
  readonly retries: number
  /** The result of `call`, unless it takes too long. */
  within<T>(call: () => Promise<T>): T | PromiseLike<T>
  /** Reads what a host says of its pace. */
  report(host: string, bytes: Uint8Array): void
}

type IsAllowed = (url: string) => boolean

interface Known {
  until: number
  isAllowed: Promise<IsAllowed>
  /** The rules of the last file. */
  before?: IsAllowed | undefined
}

/** Whether a URL needs no robots.txt. */
const isFree = (url: URL) => !isHttp(url) || url.pathname === '/robots.txt'

/** Asks each host once. */
export class Robots {
  readonly #options: RobotsOptions
  readonly #asking: Asking
  readonly #known = new Map<string, Known>()
  readonly #asked = new Set<AbortController>()

  constructor(options: RobotsOptions, asking: Asking) {
    this.#options = options
    this.#asking = asking
  }

  /** Whether a URL can be judged without asking its host. */
  knows(url: URL): boolean {
    const until = this.#known.get(url.origin)?.until ?? 0
    const isKnown = until > this.#asking.clock.now() && until < Number.POSITIVE_INFINITY
    return isKnown || isFree(url)
  }

  /**
   * Resolves when the host's robots.txt is known and allows the URL.
   *
   * @throws {DisallowedError} if it does not, or could not be had.
   */
  async admit(url: URL): Promise<void> {
    if (isFree(url)) return
    const now = this.#asking.clock.now()
    let known = this.#known.get(url.origin)
    if (!known || known.until <= now) {
      const { before } = known ?? {}
      known = { until: Number.POSITIVE_INFINITY, isAllowed: this.#ask(url, before), before }
      this.#known.delete(url.origin)
      this.#known.set(url.origin, known)
      const oldest = this.#known.keys().next()
      if (this.#known.size > MOST_HOSTS && !oldest.done) this.#known.delete(oldest.value)
    }
    const isAllowed = await known.isAllowed
    if (!isAllowed(url.href))
      throw new DisallowedError(`robots.txt of ${url.host} does not allow ${url.href}`)
  }

  /** The throttle is closed: the files that are on their way are not needed. */
  close(reason: unknown): void {
    for (const controller of this.#asked) controller.abort(reason)
  }

  async #ask(url: URL, before: IsAllowed | undefined): Promise<IsAllowed> {
    const expireIn = (ms: number, says?: IsAllowed) => {
      const known = this.#known.get(url.origin)
      if (!known) return
      known.until = this.#asking.clock.now() + ms
      if (says) known.before = says
    }
    const { userAgent, rules } = this.#options
    const robotsUrl = `${url.origin}/robots.txt`
    const controller = new AbortController()
    this.#asked.add(controller)
    let bytes: Uint8Array
    try {
      const headers = { 'user-agent': userAgent }
      bytes = await this.#read(robotsUrl, { headers, signal: controller.signal })
    } catch (cause) {
      expireIn(MINUTE)
      controller.abort(cause)
      if (before) return before
      if (cause instanceof DisallowedError) throw cause
      throw new DisallowedError(`robots.txt of ${url.host} could not be had`, true, { cause })
    } finally {
      this.#asked.delete(controller)
    }
    const isAllowed = rules ? rules(robotsUrl, new TextDecoder().decode(bytes), userAgent) : () => true
    expireIn(DAY, isAllowed)
    this.#asking.report(url.host, bytes)
    return isAllowed
  }

  /** The content of the file. A body that breaks off is asked for again, as a request that fails is. */
  async #read(robotsUrl: string, init: RequestInit): Promise<Uint8Array> {
    for (let left = this.#asking.retries; ; left--) {
      const response = await this.#follow(robotsUrl, init)
      if (!response.ok) discard(response)
      if (response.status >= 500 || response.status === 429)
        throw new DisallowedError(`robots.txt of ${new URL(robotsUrl).host}: status ${response.status}`, true)
      if (!response.ok) return new Uint8Array()
      try {
        return await this.#asking.within(() => beginning(response))
      } catch (error) {
        if (left <= 0 || init.signal?.aborted) throw error
      }
    }
  }

  /** The file, wherever redirects lead; the last of too many redirects as it is. */
  async #follow(robotsUrl: string, init: RequestInit): Promise<Response> {
    let from = robotsUrl
    for (let hops = 0; ; hops++) {
      const response = await this.#asking.fetch(from, init)
      const place = placeOf(response)
      const to = place === null ? undefined : toUrl(place, from)
      if (to === undefined || !isHttp(to) || hops === MOST_REDIRECTS) return response
      discard(response)
      from = to.href
    }
  }
}

/** As much of a body as RFC 9309 §2.5 wants read: a file without end is not worth the memory. */
async function beginning(response: Response): Promise<Uint8Array> {
  const bytes = new Uint8Array(MOST_ROBOTS_BYTES)
  let length = 0
  if (!response.body) return bytes.subarray(0, 0)
  const reader = response.body.getReader()
  while (length < MOST_ROBOTS_BYTES) {
    const { done, value } = await reader.read()
    if (done) return bytes.subarray(0, length)
    const part = value.subarray(0, MOST_ROBOTS_BYTES - length)
    bytes.set(part, length)
    length += part.length
  }
  await reader.cancel()
  return bytes
}
