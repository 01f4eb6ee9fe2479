/**
 * `fetch` with permission: hops of redirects, attempts of retries, hooks, and the one place where an exchange
 * ends.
 *
 * One request's way: scopes → robots.txt → a permit → the real fetch → hooks → retry, redirect, or the
 * answer. A hook, an unwanted body or an abort between two awaits may fail or never answer. An exchange
 * therefore always ends in `#exchange`: it settles first and cleans up after, and no caller waits for the
 * cleaning.
 */
import { type Answer, answerIn, responseOf } from '../answers/answer.js'
import { failureOf, failureOfRequest } from '../answers/failures.js'
import { isMillis, isObject, shown } from '../base/checks.js'
import { BodyNotReplayableError, ManagerError, NestedError, RetryAfterTooLongError } from '../base/errors.js'
import { both } from '../base/joined.js'
import { FRAME } from '../core/nesting.js'
import { type Inside, NOTHING, type Permit, type PermitOutcome, type Wait } from '../core/permit.js'
import { checkSignal, type FetchOptions, NO_OPTIONS } from '../core/requests.js'
import type { Scheduler } from '../core/scheduler.js'
import { REDIRECT_MAX_DELAY, RETRY_MAX_RETRY_AFTER } from '../options/generated.js'
import type { ThrottleOptions } from '../options/options.js'
import {
  addScope,
  askScopes,
  checkedBackoffs,
  copyOf,
  type GetErrorBackoff,
  type Nothing,
  scopeRequest,
} from '../scopes/hooks.js'
import {
  hostOf,
  isHostless,
  isRequest,
  methodOf,
  namedScopes,
  type Scopes,
  urlOf,
  urlTextOf,
} from '../scopes/names.js'
import { discard, watched } from './body.js'
import { follows, type Hop, placeOf, Redirects } from './redirects.js'
import type { Robots } from './robots.js'
import { copied, isRefused, isStream, sent } from './send.js'

/** The options of a throttle that its `fetch` reads. */
export type FetchSettings = Pick<
  ThrottleOptions,
  | 'fetch'
  | 'retry'
  | 'getHints'
  | 'getScopes'
  | 'getResponseBackoff'
  | 'getErrorBackoff'
  | 'getResponseDelay'
  | 'redirects'
  | 'redirectMaxDelay'
  | 'release'
  | 'requestTimeout'
>

/** Of a request for robots.txt, which is not asked about itself. */
const FOR_ROBOTS: FetchOptions = { priority: 1e9 }

/** One call of `fetch`, all of its hops and attempts. */
interface Call {
  readonly options: FetchOptions
  readonly signal: AbortSignal | null
  /** When it came in, where a `maxWait` asks for it. */
  readonly start: number
  /** The function that it was called in, where a hook has to be asked before it waits. */
  readonly inside: Inside
  /** The permit of its first hop, if it has one. */
  permit: Permit | undefined
  /** Whether it was taken in: then its hops and attempts are, too. */
  isTaken: boolean
}

/** One attempt: what is known of it so far. */
interface Attempt {
  readonly permit: Permit
  outcome: PermitOutcome
  response: Response | undefined
}

/** The next attempt's wait. */
interface Again {
  readonly permit: Promise<Permit>
}

/** An attempt that is the last word, its permit not yet settled. */
interface Exchange extends Attempt {
  readonly response: Response
}

export class Fetcher {
  readonly #scheduler: Scheduler
  readonly #settings: FetchSettings
  readonly #robots: Robots | undefined
  /** Whether the host is the scope of every request that names none, and no hook has to be asked. */
  readonly #isPlain: boolean
  /** Whether a good answer is given as it came, and its slot comes back at its headers. */
  readonly #isGiven: boolean
  /** The global `fetch` as it was when this was made: the throttle may be put in its place. */
  readonly platform = globalThis.fetch
  #sending: RequestInfo | URL | undefined

  constructor(scheduler: Scheduler, settings: FetchSettings, robots: Robots | undefined) {
    this.#scheduler = scheduler
    this.#settings = settings
    this.#robots = robots
    this.#isPlain = robots === undefined && settings.getScopes === undefined
    this.#isGiven = !this.#isAsked && !this.isHeldByBodies
  }

  /** Whether slots are held until bodies are over. */
  get isHeldByBodies(): boolean {
    return this.#settings.release === 'body'
  }

  fetch(
    input: RequestInfo | URL,
    init: RequestInit,
    options: FetchOptions,
    permit?: Permit,
    isTaken = permit !== undefined || options === FOR_ROBOTS,
  ): Promise<Response> {
    const signal = signalOf(input, init) ?? null
    checkSignal(signal)
    const start = options.maxWait === undefined ? 0 : this.#scheduler.clock.now()
    const inside = this.#isPlain || permit ? undefined : this.#scheduler.nesting.where()
    const call: Call = { options, signal, start, inside, permit, isTaken }
    if (permit === undefined && options.scopes === undefined && isHostless(input))
      return this.#send(input, init, call)
    const { redirects } = this.#settings
    if (redirects === 'throttle' && follows(input, init))
      return this.#scheduler.follow(this.#follow(input, init, call))
    return this.#exchange({ input, init, delay: options.delay ?? 0 }, call, this.#give)
  }

  /** robots.txt is sent as any URL is, with its retries, and before all others of its host. */
  fetchRobots(url: string, init: RequestInit): Promise<Response> {
    const isManual = this.#settings.redirects === 'throttle'
    return this.fetch(url, isManual ? { ...init, redirect: 'manual' } : init, FOR_ROBOTS)
  }

  /** Sends the request of a permit that was handed out. */
  async send(permit: Permit, input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
    if ('throttle' in init)
      throw new TypeError('permit.fetch: say it where the permit is asked for; got throttle')
    const { outer, stop } = permit
    const own = signalOf(input, init)
    const signal = outer || stop ? (own ? both(own, permit.signal) : permit.signal) : own
    const withSignal = signal ? { ...init, signal } : init
    if (this.#robots && !permit.isSettled) {
      const url = urlOf(input)
      if (!this.#robots.knows(url)) {
        // The file itself needs the slot first.
        permit.outer = undefined
        permit.settle(NOTHING)
        return this.fetch(input, withSignal, NO_OPTIONS, undefined, true)
      }
      await this.#robots.admit(url)
    }
    const { target, scopes } = permit
    const isFor = urlTextOf(target) !== undefined && /^https?:/.test(urlTextOf(input) ?? '')
    if (this.#isPlain && isFor && !scopes.includes(hostOf(input))) {
      const problem = `a permit for ${scopes[0]} sent a request to ${hostOf(input)}, whose limits it does not know`
      this.#scheduler.warnings.once('no-effect', `${problem}: throttle.fetch(url) does`, scopes[0])
    }
    const passed = permit.pass(input)
    if (passed === undefined)
      throw new TypeError('permit.fetch: one permit is for one request; for another call throttle.fetch')
    return this.fetch(input, withSignal, NO_OPTIONS, passed)
  }

  /**
   * One hop with its attempts; gives what `end` makes of the last one, whose permit is not settled yet. If
   * this throws or rejects, everything is settled.
   *
   * The trap is an `async` function that waits for its permit: it keeps room for all that it will ever need,
   * and a hundred thousand may wait. An exchange therefore never begins before the permit is there.
   */
  #exchange<T>(hop: Hop, call: Call, end: (exchange: Exchange) => T): Promise<T> {
    const { permit } = call
    if (permit) {
      permit.method = hop.init.method
      call.permit = undefined
      return this.#attempts(permit, hop, call, end)
    }
    const wait = this.#waitOf(call, hop)
    const scopes = this.#admitted(hop, call)
    const admitted =
      scopes instanceof Promise
        ? this.#scheduler.later(scopes, hop.input, wait)
        : this.#scheduler.request(scopes, hop.input, wait)
    if (!(admitted instanceof Promise)) return this.#attempts(admitted, hop, call, end)
    return admitted.then((permit) => {
      this.#scheduler.driver.started(permit)
      return this.#attempts(permit, hop, call, end)
    })
  }

  async #follow(input: RequestInfo | URL, init: RequestInit, call: Call): Promise<Response> {
    const { redirectMaxDelay = REDIRECT_MAX_DELAY } = this.#settings
    const redirects = new Redirects(input, init, call.options.delay ?? 0, redirectMaxDelay)
    const end = (exchange: Exchange): Response | undefined => {
      const { permit, response, outcome } = exchange
      const isOver = placeOf(response) === null
      if (!isOver) permit.settle(outcome)
      if (isOver || !redirects.follow(response, this.#scheduler.askedMs))
        return redirects.mark(this.#give(exchange))
      discard(response)
      return undefined
    }
    for (;;) {
      const response = await this.#exchange(redirects.hop, call, end)
      if (response) return response
    }
  }

  /** The attempts of a hop that has its permit. */
  async #attempts<T>(permit: Permit, hop: Hop, call: Call, end: (exchange: Exchange) => T): Promise<T> {
    call.isTaken = true
    permit.left ??= this.#settings.retry ? this.#scheduler.retries(methodOf(hop.input, hop.init)) : 0
    const { pause } = permit
    const isLast = (end as unknown) === this.#give
    const isPlain = isLast && this.#isGiven && call.options.adjustDelay === undefined
    for (;;) {
      const attempt: Attempt = { permit, outcome: NOTHING, response: undefined }
      try {
        let response: Response | undefined
        let failure: { error: unknown } | undefined
        try {
          const sent = this.#send(permit.left ? copied(hop.input) : hop.input, hop.init, call, permit)
          this.#scheduler.driver.reportLateStart(permit)
          response = await sent
        } catch (error) {
          failure = { error }
        }
        this.#scheduler.nesting.over(permit)
        if (isPlain && response && this.#scheduler.settleGood(permit, response)) return response as T
        const heard = failure
          ? this.#failed(failure.error, attempt, hop, call)
          : this.#answered(response, attempt, hop, call)
        const again = heard instanceof Promise ? await heard : heard
        if (again === undefined) return end(attempt as Exchange)
        discard(attempt.response)
        pause?.begin(this.#scheduler.clock.now())
        try {
          permit = await again.permit
        } finally {
          pause?.end(this.#scheduler.clock.now())
        }
        this.#scheduler.driver.started(permit)
      } catch (error) {
        this.#drop(attempt, error)
        throw error
      }
    }
  }

  /** There was no response. Gives what the next attempt waits for; then this one is settled. */
  async #failed(error: unknown, attempt: Attempt, hop: Hop, call: Call): Promise<Again> {
    const isOurs = Number.isNaN(failureOfRequest(error, call.signal))
    if (isOurs || error instanceof NestedError || isRefused(error, hop.input, hop.init)) throw error
    attempt.outcome = { error }
    await this.#askBackoff('getErrorBackoff', error, urlTextOf(hop.input) ?? '', attempt, hop, call)
    const again = attempt.permit.left && this.#again(attempt, hop, call)
    if (!again) throw error
    return again
  }

  /** The same for a response, where there is a next attempt. A promise only where hooks are asked. */
  #answered(
    received: unknown,
    attempt: Attempt,
    hop: Hop,
    call: Call,
  ): Again | undefined | Promise<Again | undefined> {
    const latency = this.#scheduler.clock.now() - attempt.permit.sentAt
    const response = checkedResponse(received)
    attempt.response = response
    const { status, headers }: Answer = answerIn(response) ?? {}
    const { adjustDelay } = call.options
    // One shape, with all that may be known later.
    attempt.outcome = { status, headers, latency, adjustDelay, hints: undefined, scopes: undefined }
    // Good answers may keep their slot until their body was read; bad ones are asked about, and are short.
    const next = () => {
      const { backoff, scopes } = attempt.outcome
      const isBad = response.status >= 400 || backoff === true || scopes !== undefined
      return attempt.permit.left && isBad ? this.#again(attempt, hop, call) : undefined
    }
    if (!this.#isAsked) return next()
    return this.#askAbout(response, attempt, hop, call).then(next)
  }

  /**
   * Settles, and asks the engine whether to send it again: a stream is not. It goes back into the throttle
   * with its place by age, and holds no slot while it waits.
   */
  #again({ permit, response, outcome }: Attempt, { init }: Hop, call: Call): Again | undefined {
    const verdict = this.#scheduler.retry(permit, outcome, this.#waitOf(call), !isStream(init.body))
    if (verdict === 'not-replayable') throw new BodyNotReplayableError()
    if (verdict === 'too-long') {
      const { maxRetryAfter = RETRY_MAX_RETRY_AFTER } = this.#settings.retry ?? {}
      throw new RetryAfterTooLongError(this.#scheduler.askedMs, maxRetryAfter, response!)
    }
    if (typeof verdict === 'string') return undefined
    return { permit: verdict }
  }

  /** The scopes of a hop, if robots.txt allows it. A promise only where something is to be asked. */
  #admitted({ input, init }: Hop, { options }: Call): Scopes | Promise<Scopes> {
    const scopes = () => this.scopesOf(input, init, options.scopes)
    return this.#robots && options !== FOR_ROBOTS ? this.#robots.admit(urlOf(input)).then(scopes) : scopes()
  }

  /**
   * The scopes of a request: `own`, else by `getScopes`, else its host. Beside others its host is one where
   * its robots.txt names a pace.
   */
  scopesOf(input: string | URL | Request, init?: RequestInit, own?: Scopes): Scopes | Promise<Scopes> {
    const { getScopes } = this.#settings
    if (own === undefined && getScopes === undefined) return hostOf(input)
    const scopes = own ?? askScopes(getScopes!, input, init)
    const { robotsHosts } = this.#scheduler
    if (robotsHosts.size === 0 || isHostless(input)) return scopes
    const host = hostOf(input)
    const beside = (scopes: Scopes) =>
      robotsHosts.has(host) && !namedScopes(scopes).names.includes(host) ? addScope(scopes, host) : scopes
    return scopes instanceof Promise ? scopes.then(beside) : beside(scopes)
  }

  #send(input: RequestInfo | URL, init: RequestInit, call: Call, permit?: Permit): Promise<Response> {
    const timeout = call.options.requestTimeout ?? this.#settings.requestTimeout
    const { fetch } = this.#settings
    const send = () => sent(this.#scheduler, fetch ?? globalThis.fetch, input, init, call.signal, timeout)
    this.#sending = input
    try {
      // One of the caller's may call the throttle.
      return fetch && permit ? this.#scheduler.nesting.send(permit, send) : send()
    } finally {
      this.#sending = undefined
    }
  }

  /** Whether this comes from what it sends with: the request has its permit, and would wait for itself. */
  isSending(input: RequestInfo | URL): boolean {
    const own = this.#sending
    return own !== undefined && (input === own || urlTextOf(input) === urlTextOf(own))
  }

  /** How it waits. */
  #waitOf({ options, signal, start, inside, isTaken }: Call, hop?: Hop): Wait {
    const { maxWait, priority, cost } = options
    const method = hop && methodOf(hop.input, hop.init)
    return { signal, priority, cost, delay: hop?.delay, maxWait, since: start, inside, method, isTaken }
  }

  /** The answer goes out; its slots come back now, or when its body is over. */
  readonly #give = ({ permit, response, outcome }: Exchange): Response => {
    if (this.isHeldByBodies && permit.method?.toUpperCase() !== 'HEAD') {
      permit.isGood = response.status < 400 && outcome.backoff !== true
      return watched(response, settler(permit, outcome))
    }
    permit.settle(outcome)
    return response
  }

  /** The answer is not wanted, unless the error carries it. Settles first, and cleans up after. */
  #drop({ permit, response, outcome }: Attempt, error?: unknown): void {
    try {
      permit.settle(outcome)
    } finally {
      if (response !== undefined && responseOf(error) !== response) discard(response)
    }
  }

  get #isAsked(): boolean {
    const { getHints, getResponseDelay, getResponseBackoff, retry } = this.#settings
    return (getHints ?? getResponseDelay ?? getResponseBackoff ?? retry?.when) !== undefined
  }

  /** Asks the hooks, which know better than status and headers. */
  async #askAbout(response: Response, attempt: Attempt, hop: Hop, call: Call): Promise<void> {
    const { getHints, getResponseDelay, retry } = this.#settings
    const { permit, outcome } = attempt
    const ask = <T>(hook: string, work: () => T | PromiseLike<T>) =>
      this.#ask(hook, permit, response.url, call.signal, work)
    const hints = (getHints && (await ask('getHints', () => getHints(response)))) ?? undefined
    const delayMs =
      getResponseDelay && (await ask('getResponseDelay', () => askDelay(getResponseDelay(response))))
    if (hints !== undefined) outcome.hints = hints
    if (typeof delayMs === 'number') outcome.hints = { ...hints, delayMs }
    const when = retry?.when
    if (when && (await ask('retry.when', () => when(copyOf(response))))) outcome.backoff = true
    await this.#askBackoff('getResponseBackoff', response, response.url, attempt, hop, call)
  }

  /** Which scopes back off, where a hook says it. */
  async #askBackoff(
    name: 'getResponseBackoff' | 'getErrorBackoff',
    what: unknown,
    url: string,
    { permit, outcome }: Attempt,
    { input, init }: Hop,
    { signal }: Call,
  ): Promise<void> {
    const hook = this.#settings[name] as GetErrorBackoff | undefined
    if (!hook) return
    const scopes = await this.#ask(name, permit, url, signal, async () =>
      checkedBackoffs(name, await hook(what, scopeRequest(input, init)), permit.scopes),
    )
    if (scopes !== undefined) outcome.scopes = scopes
  }

  /** Asks a hook. An abort ends the wait for it. The name of its frame is how calls inside are known. */
  async #ask<T>(
    hook: string,
    permit: Permit,
    url: string,
    signal: AbortSignal | null,
    call: () => T | PromiseLike<T>,
  ): Promise<T> {
    const { nesting, driver } = this.#scheduler
    const asked = {
      [FRAME]: async () => {
        try {
          return await nesting.ask(permit, call)
        } catch (cause) {
          if (cause instanceof ManagerError) throw cause
          throw new ManagerError(hook, `failed for ${url || 'a response'}`, { cause })
        } finally {
          nesting.over(permit)
        }
      },
    }[FRAME]!
    return driver.aborts.race(asked(), signal)
  }
}

const signalOf = (input: RequestInfo | URL, init: RequestInit) =>
  init.signal === undefined && isRequest(input) ? input.signal : init.signal

/** The response of a custom `fetch`, if it can be one. */
function checkedResponse(response: unknown): Response {
  if (isObject(response)) return response as Response
  throw new TypeError(`fetch gave ${shown(response)}; want a Response`)
}

/** Settles when a body is over. Holds no reference to the response, which must be free to be collected. */
function settler(permit: Permit, outcome: PermitOutcome): (error?: unknown) => void {
  return (error) => permit.settle(Number.isNaN(failureOf(error)) ? outcome : { error })
}

/** The result of a `getResponseDelay` hook, checked. */
async function askDelay(delay: number | Nothing | Promise<number | Nothing>): Promise<number | Nothing> {
  const ms = await delay
  if (ms === undefined || ms === null || isMillis(ms)) return ms
  throw new ManagerError('getResponseDelay', `gave ${shown(ms)}; want milliseconds from 0 to a year`)
}
