/**
 * `autothrottle/llm`: limits of language models, in requests *and* tokens, for the `openai` and
 * `@anthropic-ai/sdk` clients as they are.
 *
 * ```ts
 * const llm = llmFetch(createThrottle({ maxInFlight: 64 }))
 * const client = new OpenAI({ apiKey, ...llm.client })
 * ```
 *
 * One call's way: its model and key → their budgets → a permit of all of them → the request → limits in its
 * headers → usage in its body, read in passing.
 *
 * The SDKs send again by themselves whatever this throws, so what is refused goes out as an answer with
 * `x-should-retry: false`. Their `timeout` counts the wait. A stream that is cloned is kept in memory whole,
 * and never ends for its server. The tokens of an answer that is not read to its end stay unknown.
 */
import { failureOfRequest } from './answers/failures.js'
import { checkThrottle, isMillis, isObject, kindOf, unknownKeys } from './base/checks.js'
import { ConfigError, type Problem, RetryAfterTooLongError, ThrottleError } from './base/errors.js'
import type { Permit, PermitOutcome } from './core/permit.js'
import { checkOptions, REQUEST_KEYS, type RequestOptions } from './core/requests.js'
import { watched, withMetadata } from './fetch/body.js'
import { isHttp } from './fetch/redirects.js'
import { isStream, sent } from './fetch/send.js'
import { Body, limitsOf, refusalOf } from './llm/answer.js'
import { Budgets, type Call, type LlmLimit, OwnScope } from './llm/budgets.js'
import { type Asked, askedOf, VENDORS, type Vendor } from './llm/request.js'
import { RETRY_MAX_RETRY_AFTER } from './options/generated.js'
import { isRequest, methodOf, urlOf } from './scopes/names.js'
import type { Throttle } from './throttle/throttle.js'

export type { LlmLimit, Vendor }

/** How calls of language models are throttled. */
export interface LlmOptions {
  /** The vendor whose rules hold. Default: by host and path; else OpenAI's. */
  vendor?: Vendor
  /**
   * Limits by model, or by a pattern such as `'claude-opus-4*'` or `'*'`; the first that fits counts. The
   * headers may tell lower ones. Default none: all limits are learned from the headers.
   */
  limits?: Readonly<Record<string, LlmLimit>>
  /**
   * The account whose limits hold: a name, or a function of the request's headers. Default: a hash of the
   * key, the organisation and the project.
   */
  account?: string | ((headers: Headers) => string)
  /** Which models share their limits: gives the name of the family. Default: dates and minor versions off. */
  family?: (model: string, vendor: Vendor) => string
  /** Counts the tokens of a text. Default: UTF-8 bytes ÷ 4, by what usage taught for calls of that size. */
  countTokens?: (text: string, model: string) => number
  /**
   * The number of tokens to reserve for the answer: what answers of the model took so far, or `max_tokens`.
   * Default: `'max'` for OpenAI and Azure, which charge that; `'learned'` for the others.
   */
  output?: 'learned' | 'max'
  /** The share of each limit that is used, above 0 to 1. Default 0.98. */
  headroom?: number
  /**
   * How often a call that is refused with 429, 503 or 529 is sent again. Default `{ limit: 5 }`. If the
   * server asks for a wait of more than `maxRetryAfter` milliseconds, the call fails with a
   * `RetryAfterTooLongError`. Default: the throttle's `retry.maxRetryAfter`, else 300,000.
   */
  retry?: false | { limit: number; maxRetryAfter?: number }
  /** Milliseconds from the send to the headers of the answer. Default 600,000. */
  requestTimeout?: number
}

/** Sums of the calls so far. */
export interface LlmStats {
  /** Calls that were sent, each attempt. */
  sent: number
  /** Those that the server refused: 429, 503, 529. */
  refused: number
  /** Answers that reported no usage although it counts: what they took is an estimate. */
  estimated: number
  /** Answers that were broken off: what was read of them is charged. */
  cut: number
  /** Calls with files or sound, each counted as 1,600 tokens. */
  uncounted: number
}

/** A `fetch`, what an SDK's client takes, and what became of its calls. */
export type LlmFetch = typeof fetch & {
  /** Options of a client: this `fetch`, no retries and no timeout of its own, for ours hold. */
  client: { fetch: typeof fetch; maxRetries: 0; timeout: number }
  stats(): LlmStats
}

/** As much of Anthropic's `APIRequest` as matters here. */
type MiddlewareRequest = RequestInit & { url: string }
/** The type that `new Anthropic({ middleware: [ … ] })` takes. */
export type LlmMiddleware = (<R extends MiddlewareRequest>(
  request: R,
  next: (request: R) => Promise<Response>,
) => Promise<Response>) & { stats(): LlmStats }

/**
 * A `fetch` for the clients of language models. `init.throttle` may have a `priority`, and a `maxWait`.
 *
 * @throws {ConfigError} listing every problem of the options.
 */
export function llmFetch(throttle: Throttle, options: LlmOptions = {}): LlmFetch {
  checkThrottle(throttle, 'llmFetch')
  const llm = new Llm(throttle, options)
  const send = throttle.options.fetch ?? ((input, init) => globalThis.fetch(input, init))
  const fetch: typeof globalThis.fetch = async (input, init = {}) => {
    const url = urlOf(input)
    // The SDKs ask so whether a `fetch` takes forms.
    if (!isHttp(url)) return send(input, init)
    let asked: Asked | undefined
    try {
      const request = isRequest(input) ? input : undefined
      const headers = new Headers(init.headers ?? request?.headers)
      const body = init.body ?? (request?.body ? await request.clone().text() : undefined)
      asked = llm.asks(url, methodOf(input, init), body)
      const fresh = () => (request?.body && !init.body ? request.clone() : input)
      return await llm.call(url, asked, headers, init, (own) => send(fresh(), own), request?.signal)
    } catch (error) {
      if (!(error instanceof ThrottleError)) throw error
      return asAnswer(error, asked?.vendor === 'anthropic')
    }
  }
  const client = { fetch, maxRetries: 0 as const, timeout: 86_400_000 }
  return Object.assign(fetch, { client, stats: () => ({ ...llm.stats }) })
}

/**
 * The same for `new Anthropic({ middleware: [llmMiddleware(throttle)] })`, where no timeout of the SDK's
 * counts the wait, and errors come as they are. It sees Anthropic's own form of each call, also to Bedrock
 * and Vertex.
 *
 * @throws {ConfigError} listing every problem of the options.
 */
export function llmMiddleware(throttle: Throttle, options: LlmOptions = {}): LlmMiddleware {
  checkThrottle(throttle, 'llmMiddleware')
  const llm = new Llm(throttle, { vendor: 'anthropic', ...options })
  const middleware = <R extends MiddlewareRequest>(request: R, next: (request: R) => Promise<Response>) => {
    const { url, method = 'GET', headers, body } = request
    const place = urlOf(url)
    const asked = llm.asks(place, method, body)
    return llm.call(place, asked, new Headers(headers), request, (own) => next({ ...request, ...own }))
  }
  return Object.assign(middleware, { stats: () => ({ ...llm.stats }) })
}

/** Refused before it was run, so it may be sent again whatever it was. */
const REFUSALS = [429, 503, 529]
/** The longest hold that is kept by default: a longer one would be a warning. */
const DAY = 86_400_000
/** Families that are known at a time. */
const MOST = 10_000

type Want = readonly [string, (value: never) => boolean]
const isPositive = (value: unknown) => typeof value === 'number' && value > 0 && value <= 1e9
const one = (...words: unknown[]): Want => [`one of ${words.join(', ')}`, (value) => words.includes(value)]
const FUNCTION: Want = ['a function', (value) => typeof value === 'function']
const POSITIVE: Want = ['a number above 0', isPositive]
/** The valid values of each option. */
const WANTS: Readonly<Record<keyof LlmOptions, Want>> = {
  vendor: one(...VENDORS),
  limits: ['a map of model to limits', isObject],
  account: ['a text or a function', (value) => /^[sf]/.test(typeof value)],
  family: FUNCTION,
  countTokens: FUNCTION,
  output: one('learned', 'max'),
  headroom: ['above 0 to 1', (value: number) => isPositive(value) && value <= 1],
  retry: [
    'false or { limit, maxRetryAfter }',
    (value: unknown) => value === false || (isObject(value) && 'limit' in value),
  ],
  requestTimeout: POSITIVE,
}
const RETRY_WANTS: Readonly<Record<'limit' | 'maxRetryAfter', Want>> = {
  limit: ['a whole number from 0', (value: number) => Number.isInteger(value) && value >= 0],
  maxRetryAfter: ['milliseconds from 0 to a year', isMillis],
}
const LIMIT_WANTS: Readonly<Record<keyof LlmLimit, Want>> = {
  ...{ rpm: POSITIVE, rpd: POSITIVE, tpm: POSITIVE, itpm: POSITIVE, otpm: POSITIVE },
  sliding: one(true, false),
  cached: one('free', 'counted'),
}

function problemsOf(options: object, wants: Readonly<Record<string, Want>>, path: string): Problem[] {
  if (!isObject(options)) return [{ path, want: 'an object', got: kindOf(options) }]
  const problems = unknownKeys(options, Object.keys(wants), path)
  for (const [key, value] of Object.entries(options)) {
    const [want, isRight] = wants[key] ?? []
    if (want && value !== undefined && !isRight!(value as never))
      problems.push({ path: `${path}.${key}`, want, got: kindOf(value) })
  }
  return problems
}

/** @throws {ConfigError} */
function check(options: LlmOptions): void {
  const problems = problemsOf(options, WANTS, 'llm')
  const { retry = false } = options
  if (isObject(retry)) problems.push(...problemsOf(retry, RETRY_WANTS, 'llm.retry'))
  for (const [model, limit] of Object.entries(options.limits ?? {}))
    problems.push(...problemsOf(limit, LIMIT_WANTS, `llm.limits.${JSON.stringify(model)}`))
  if (problems.length > 0) throw new ConfigError(problems)
}

class Llm {
  readonly stats: LlmStats = { sent: 0, refused: 0, estimated: 0, cut: 0, uncounted: 0 }
  readonly #throttle: Throttle
  readonly #options: LlmOptions
  readonly #limits: readonly [RegExp, LlmLimit][]
  readonly #concurrency: number
  readonly #hosts = new Map<string, OwnScope>()
  readonly #known = new Map<string, Budgets>()

  constructor(throttle: Throttle, options: LlmOptions) {
    check(options)
    this.#throttle = throttle
    this.#options = options
    const { maxInFlight, concurrency, defaults } = throttle.options
    this.#concurrency = maxInFlight ?? Math.max(16, concurrency ?? defaults?.concurrency ?? 0)
    this.#limits = Object.entries(options.limits ?? {}).map(([pattern, limit]) => {
      const text = pattern.replace(/[^\w*?]/g, '\\$&').replace(/[*?]/g, (sign) => (sign === '*' ? '.*' : '.'))
      return [new RegExp(`^${text}$`), limit]
    })
  }

  asks(url: URL, method: string, body: unknown): Asked {
    return askedOf(url, method, body, this.#options.vendor, this.#options.countTokens)
  }

  async call(...call: Parameters<Llm['attempts']>): Promise<Response> {
    const { draining } = this.#throttle.scheduler
    draining.began()
    try {
      return await this.attempts(...call)
    } finally {
      draining.done()
    }
  }

  /** Those of one call. */
  async attempts(
    url: URL,
    asked: Asked,
    headers: Headers,
    init: RequestInit,
    send: (init: RequestInit) => Promise<Response>,
    signal: AbortSignal | null = null,
  ): Promise<Response> {
    const { throttle: own = {}, ...rest } = init as RequestInit & { throttle?: RequestOptions }
    const throttle = this.#throttle
    const { scheduler, options } = throttle
    const { host, vendor } = asked
    const wanted = rest.signal ?? signal
    const budgets = this.#budgetsOf(asked, headers)
    if (asked.isUncounted) this.stats.uncounted++
    if (Number(headers.get('x-stainless-retry-count')) > 0)
      scheduler.warnings.once('nested', `the SDK sends calls to ${host} again by itself: set maxRetries: 0`)
    const { retry = { limit: 5 }, requestTimeout = options.requestTimeout ?? 600_000 } = this.#options
    const { maxRetryAfter = options.retry?.maxRetryAfter ?? RETRY_MAX_RETRY_AFTER } = retry || {}
    const most = retry && !isStream(rest.body) ? retry.limit : 0
    for (let tries = 0, delay = 0; ; tries++) {
      const plan = budgets.plan(asked)
      // A refused call is older than the calls that wait.
      const waits = tries > 0 ? { ...own, priority: (own.priority ?? 0) + 1, delay } : own
      const all = { [host]: 1, ...plan.scopes }
      const permit = await this.#permit(url, all, { ...waits, signal: wanted }, tries > 0)
      const call = budgets.begin(asked, permit, plan)
      this.stats.sent++
      let response: Response
      try {
        const sending = sent(scheduler, (_, own) => send(own ?? {}), '', rest, wanted, requestTimeout)
        scheduler.driver.reportLateStart(permit)
        response = await sending
      } catch (error) {
        // A call that you break off is no fault of the server.
        const isTheirs = !Number.isNaN(failureOfRequest(error, wanted))
        permit.settle(isTheirs ? { error, scopes: host } : {})
        const { code } = ((error as Error | null)?.cause ?? {}) as { code?: unknown }
        budgets.gone(
          call,
          !/^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT)$/.test(String(code)),
        )
        throw error
      }
      const { status } = response
      const isRefused = REFUSALS.includes(status)
      const limits = limitsOf(response.headers, vendor)
      const outcome = { status, latency: throttle.now() - call.sentAt, hints: {} }
      if (!isRefused && response.headers.get('x-should-retry') !== 'true') {
        budgets.report(call, limits)
        return this.#answered(response, outcome, call, budgets, wanted)
      }
      if (isRefused) this.stats.refused++
      const text = await response.text().catch(() => '')
      const { wait, isFinal, kind } = refusalOf(response, text, vendor === 'anthropic')
      const isLimit = status === 429
      budgets.report(call, limits, isLimit && !isFinal ? (wait ?? 0) : undefined)
      budgets.refused(call, isLimit && !isFinal ? kind : undefined, wait)
      // The model's scopes know of it, or the host's where the whole server is overloaded. A bucket that is
      // known refills as we know: no pace has to be found.
      const whose = isLimit ? budgets.scope() : host
      const backoff = !(isLimit && (isFinal || budgets.isKnown))
      permit.settle({
        ...outcome,
        scopes: { [whose]: { backoff, ...(!isFinal && wait && { delay: Math.min(wait, DAY) }) } },
      })
      if (tries >= most || isFinal || wanted?.aborted) return final(response, text)
      if (wait !== undefined && wait > maxRetryAfter)
        throw new RetryAfterTooLongError(wait, maxRetryAfter, final(response, text))
      delay = wait ?? Math.min(8000, 500 * 2 ** tries)
    }
  }

  /** Permission of all scopes at once, for a URL that listeners see. */
  async #permit(
    url: URL,
    scopes: Record<string, number>,
    wait: RequestOptions,
    isTaken: boolean,
  ): Promise<Permit> {
    checkOptions(wait, REQUEST_KEYS)
    const { scheduler } = this.#throttle
    const entered = scheduler.request(scopes, url.href, { ...wait, isTaken })
    if (!(entered instanceof Promise)) return entered
    const permit = await entered
    scheduler.driver.started(permit)
    return permit
  }

  /** A good answer, or one that says what is wrong with the request. */
  #answered(
    response: Response,
    outcome: PermitOutcome,
    call: Call,
    budgets: Budgets,
    wanted: AbortSignal | null,
  ): Response {
    const { status, headers } = response
    const { asked, permit } = call
    const { host, model, vendor } = asked
    const settle = () => permit.settle(status >= 500 ? { ...outcome, scopes: host } : outcome)
    if (!this.#throttle.isHeldByBodies) settle()
    if (status >= 400 || model === undefined) {
      budgets.refused(call)
      return watched(response, settle)
    }
    const isStream = /event-stream/.test(headers.get('content-type') ?? '')
    budgets.answered(call, isStream)
    const say = (code: 'stream-cut' | 'usage-estimated', what: string) =>
      this.#throttle.scheduler.warnings.once(code, `an answer of ${model} at ${host} ${what}`)
    const body = new Body(isStream, budgets.isCachedFree)
    return watched(
      response,
      (error, isRead = false) => {
        settle()
        body.end()
        const isOver = isRead && (!isStream || vendor === 'gemini')
        const isWhole = error === undefined && !body.isBroken && (body.isWhole || isOver)
        // A reader that stops, or aborts, knows it.
        const isLeft = error === undefined ? !isRead : Number.isNaN(failureOfRequest(error, wanted))
        if (!isWhole) {
          this.stats.cut++
          if (body.isBroken || !isLeft) say('stream-cut', 'broke off, and what was read of it is charged')
        }
        if (budgets.ended(call, body, isWhole) && isWhole && budgets.needsUsage) {
          this.stats.estimated++
          const remedy = 'stream_options: { include_usage: true } asks for it'
          say('usage-estimated', `reported no usage, so it is estimated (${remedy})`)
        }
      },
      (bytes) => {
        body.hear(bytes)
        if (isStream) budgets.wrote(call, body.usage.input, body.written)
      },
    )
  }

  #budgetsOf({ model, vendor, host }: Asked, headers: Headers): Budgets {
    const { account, family = familyOf, headroom = 0.98, output, countTokens } = this.#options
    const throttle = this.#throttle
    const concurrency = this.#concurrency
    // An overloaded server wants a pause, not a pace of a request a second.
    const pausing = { delay: 0, concurrency, backoff: { minDelay: 100, window: 10_000 } }
    // The host keeps what you typed for it. Else its models pace, and it bears as many calls as all scopes.
    if (!Object.hasOwn(throttle.options.scopes ?? {}, host)) {
      const known = this.#hosts.get(host)
      const own = known ?? new OwnScope(throttle, host)
      if (known) own.keep()
      else own.configure(pausing)
      remember(this.#hosts, host, own)
    }
    const whose = typeof account === 'function' ? account(headers) : (account ?? hashOf(headers))
    const named = model === undefined ? '' : family(model, vendor)
    const name = `llm:${host}/${whose}${named && `/${named}`}`
    let budgets = this.#known.get(name)
    if (budgets) return remember(this.#known, name, budgets)
    const fits = ([pattern]: [RegExp, unknown]) => pattern.test(model ?? '') || pattern.test(named)
    const limit = (model !== undefined && this.#limits.find(fits)?.[1]) || {}
    budgets = new Budgets({
      ...{ throttle, name, limit, headroom, concurrency },
      vendor: model === undefined ? undefined : vendor,
      isMax: output && output === 'max',
      isCounted: countTokens !== undefined,
    })
    if (model === undefined) budgets.configure(pausing)
    return remember(this.#known, name, budgets)
  }
}

/** Keeps what was used last, `MOST` at a time. */
function remember<T>(known: Map<string, T>, name: string, it: T): T {
  known.delete(name)
  known.set(name, it)
  if (known.size > MOST) known.delete(known.keys().next().value!)
  return it
}

/** Dated names share the limits of the model; Anthropic's minor versions those of their class. */
function familyOf(model: string, vendor: Vendor): string {
  const undated = model.replace(/-?(?:\d{4}-\d\d-\d\d|\d{8})$|-latest$/, '')
  return vendor === 'anthropic' ? undated.replace(/^(claude-[a-z]+-\d+)[-.]\d+$/, '$1') : undated
}

const KEY_FIELDS = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key']
const ACCOUNT_FIELDS = [...KEY_FIELDS, 'openai-organization', 'openai-project']

/** 8 hexadecimal digits (FNV-1a): enough to tell keys apart, and no way back to them. */
function hashOf(headers: Headers): string {
  let hash = 0x811c9dc5
  for (const name of ACCOUNT_FIELDS)
    for (const letter of `${headers.get(name) ?? ''}\n`)
      hash = Math.imul(hash ^ letter.charCodeAt(0), 16_777_619)
  return (hash >>> 0).toString(16).padStart(8, '0')
}

/** The last refusal, as the server said it; a field tells the SDK to leave it at that. */
function final(response: Response, text: string): Response {
  const { status, statusText, url } = response
  const headers = new Headers(response.headers)
  headers.set('x-should-retry', 'false')
  headers.delete('content-length')
  headers.delete('content-encoding')
  return withMetadata(new Response(text, { status, statusText, headers }), { url })
}

/** An error of ours in the vendor's shape: thrown, the SDKs would send the call again. */
function asAnswer(error: ThrottleError, isAnthropic: boolean): Response {
  const { code, message } = error
  const isSent = (error as { isSent?: boolean }).isSent === true
  const type = isAnthropic ? 'rate_limit_error' : 'autothrottle'
  const body = isAnthropic
    ? { type: 'error', error: { type, message } }
    : { error: { type, message, param: null, code } }
  return Response.json(body, {
    status: isSent ? 408 : 429,
    headers: { 'x-should-retry': 'false', 'x-autothrottle-error': code },
  })
}
