/** The options of a single request, and their checks. Every key is known, or an error. */
import {
  checkSpelling,
  isMillis,
  isObject,
  isPlain,
  isThenable,
  kindOf,
  misfit,
  notA,
  unknownKeys,
} from '../base/checks.js'
import { ConfigError } from '../base/errors.js'
import type { RetryOptions } from '../options/options.js'
import type { Scopes } from '../scopes/names.js'

/** The options of a single request. */
export interface RequestOptions {
  /** Aborts the wait: rejects with `signal.reason` and frees the place at once. */
  signal?: AbortSignal | null
  /** Higher is first, as in p-queue. Any finite number, default 0. */
  priority?: number
  /** Expected cost in units of the scopes' quotas, default 1. A map target names its own. */
  cost?: number
  /**
   * Milliseconds that it may wait for permission; then it rejects with a `TimeoutError`. Default none.
   *
   * A client's own timeout counts the wait, too, where the client calls a throttled `fetch` (ky: 10 s, then
   * it gives up): switch it off (`timeout: false` in ky) and use `requestTimeout`, which counts from the
   * send.
   */
  maxWait?: number
  /** The request's own delay in milliseconds, default 0. Scrapy's draft: `throttling_delay`. */
  delay?: number
}

/** The options of a single call of `run`, `wrap` and `map`. */
export interface RunOptions extends RequestOptions {
  /**
   * Milliseconds from send until `fn` is done; then it rejects with a `TimeoutError`, the slots come back,
   * and backoff hears of a timeout. The function goes on unless it listens to a signal of yours. Default: the
   * throttle's.
   */
  requestTimeout?: number
  /**
   * Whether `fn` is called again after a failure or a status of `retry.statusCodes`: as often as the
   * throttle's own `retry` says (`true`), or `{ limit }` times. Default false: the throttle's `retry` is for
   * `fetch`.
   */
  retry?: boolean | { limit: number }
}

/** The options in `init.throttle` of `throttle.fetch`. */
export interface FetchOptions extends Omit<RunOptions, 'signal' | 'retry'> {
  /**
   * Milliseconds from send to response headers, then it fails with a `TimeoutError`. Default: the throttle's.
   */
  requestTimeout?: number
  /** Other scopes than the host's. Scrapy's draft: `throttling_scopes`. */
  scopes?: Scopes
  /** False keeps AutoThrottle's delay as it is. */
  adjustDelay?: boolean
}

/** `RequestInit` with a word for the throttle. */
export interface ThrottledRequestInit extends RequestInit {
  throttle?: FetchOptions
}

// biome-ignore lint/suspicious/noTsIgnore: ky is there where it is used, and no error elsewhere.
// @ts-ignore
declare module 'ky' {
  interface Options {
    /** The options of a single request, for the throttle whose `fetch` the client has. */
    throttle?: FetchOptions
  }
}

/** Of a request without options. */
export const NO_OPTIONS: RunOptions & FetchOptions = {}
export const REQUEST_KEYS = ['signal', 'priority', 'cost', 'maxWait', 'delay']
export const RUN_KEYS = [...REQUEST_KEYS, 'requestTimeout', 'retry']
export const MAP_KEYS = ['ordered', 'buffer', 'errors', 'signal', 'retry', 'target']
export const FETCH_KEYS = ['priority', 'cost', 'maxWait', 'requestTimeout', 'delay', 'scopes', 'adjustDelay']

const OF_THE_THROTTLE = 'it as an option of the throttle'
/** Words that are options, of something else than a single request. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  concurrency: OF_THE_THROTTLE,
  rate: OF_THE_THROTTLE,
  timeout: 'maxWait, its name now: of the wait alone; requestTimeout is that of the answer',
}
/** The same for `init.throttle`. */
const BESIDE_FETCH: typeof ELSEWHERE = {
  ...ELSEWHERE,
  retry: 'it as an option of the throttle, or of throttle.run(url, ({ fetch }) => fetch(url), { retry })',
  signal: 'it beside throttle, as in fetch: { signal, throttle: … }',
}

/** @throws {ConfigError} for keys that are unknown. */
export function checkKeys(options: object, known: readonly string[], path: string): void {
  if (!isPlain(options)) throw misfit(path || 'options', 'an object', options)
  const problems = unknownKeys(options, known, path)
  if (problems.length === 0) return
  const elsewhere = path === 'throttle' ? BESIDE_FETCH : ELSEWHERE
  throw new ConfigError(
    problems.map((problem) => {
      const want = elsewhere[problem.path.slice(path === '' ? 0 : path.length + 1)]
      return want === undefined ? problem : { ...problem, want }
    }),
  )
}

const isSpan = (value: unknown) => typeof value === 'number' && value >= 0
const isCost = (value: unknown) => Number.isFinite(value) && (value as number) >= 0

/** The types of a request's values; a text from the environment is the usual mistake. */
const VALUES: readonly [keyof RunOptions, string, (value: unknown) => boolean][] = [
  ['maxWait', 'milliseconds from 0', isSpan],
  ['requestTimeout', 'milliseconds from 0', isSpan],
  ['delay', 'milliseconds from 0 to a year', isMillis],
  ['priority', 'a finite number', Number.isFinite],
  ['cost', 'a number from 0', isCost],
]

/**
 * @throws {ConfigError} for keys that are unknown.
 * @throws {TypeError} for values that are none.
 */
export function checkOptions(options: RunOptions & FetchOptions, known: readonly string[], path = ''): void {
  if (options === NO_OPTIONS) return
  checkKeys(options, known, path)
  for (const [key, want, isRight] of VALUES) {
    const value = options[key]
    if (value !== undefined && !isRight(value)) throw notA(path ? `${path}.${key}` : key, want, value)
  }
  checkSignal(options.signal)
}

/** @throws {TypeError} for what only looks like a signal: its request would wait for good. */
export function checkSignal(signal: unknown): void {
  if (signal === undefined || signal === null) return
  const { aborted, addEventListener } = signal as Partial<AbortSignal>
  if (typeof aborted !== 'boolean' || typeof addEventListener !== 'function')
    throw notA('signal', 'an AbortSignal', signal)
}

/** Ours, which no `fetch` knows: beside `init.throttle` they would be ignored without a word. */
const MISPLACED = ['cost', 'delay', 'scopes', 'maxWait', 'requestTimeout', 'adjustDelay'] as const

/** @throws {TypeError} for what belongs into `init.throttle`. A priority of the platform's own is a word. */
export function checkInit(init: object): void {
  if (typeof init !== 'object') throw notA('fetch', 'options as an object', init)
  if (init === null) return
  checkSpelling(init, 'fetch')
  const { priority } = init as { priority?: unknown }
  const misplaced = typeof priority === 'number' ? 'priority' : MISPLACED.find((key) => key in init)
  if (misplaced === undefined) return
  const value = kindOf(init[misplaced as keyof object])
  throw new TypeError(`${misplaced}: type { throttle: { ${misplaced}: ${value} } }`)
}

/** Words that other clients have beside these, and what to type for them. */
const UNKNOWN_WORDS: readonly [key: string, how: string][] = [
  ['timeout', 'throttle: { requestTimeout } counts from the send, throttle: { maxWait } is that of the wait'],
  ['retry', 'createThrottle({ retry: { limit } }) repeats what fetch sends'],
]
/**
 * The first word in the options of `fetch` that `fetch` does not know, with its warning: ours is elsewhere. A
 * client that hands on its own options heeds them: it has made `Headers` of what was typed, or has a signal.
 */
export function unknownWordIn(init: RequestInit): readonly [key: string, message: string] | undefined {
  const found = UNKNOWN_WORDS.find(([key]) => key in init)
  if (found === undefined || init.signal || 'get' in (init.headers ?? {})) return undefined
  const [key, how] = found
  return [key, `${key} has no effect among the options of fetch: ${how}`]
}

/** @throws {TypeError} for what gives no items, or gives letters. */
export function checkItems(items: unknown): void {
  const isGiving = isObject(items)
  if (isGiving && (Symbol.iterator in items || Symbol.asyncIterator in items)) return
  const got = isThenable(items) ? 'a Promise: await it' : `${kindOf(items)}${HINTS[typeof items] ?? ''}`
  throw new TypeError(`map: want a list of items, or what gives them one by one; got ${got}`)
}

const HINTS: Partial<Record<string, string>> = {
  string: ': for one item put it in a list',
  function: ': the items come before it; what a generator gives is generator()',
}

/** The error about a value in place of a function. */
export function notWork(method: string, target: unknown, work: unknown): TypeError {
  if (typeof target === 'function') return new TypeError(`${method}: want a URL before the function`)
  const got = isThenable(work) ? 'a Promise, which has started already: put () => before it' : kindOf(work)
  return new TypeError(`${method}: want a function; got ${got}`)
}

/** The advice for words that the `retry` of a function does not take. */
const HOW_TO_RETRY =
  "{ limit } alone; the rest is in the throttle's own retry: an error with one of its statusCodes, such as" +
  ' 503, calls a function again, whatever method it uses'

/**
 * How often a function is called again, by its own `retry` and the throttle's; `undefined` without one.
 *
 * @throws {ConfigError} for what makes no sense.
 */
export function retriesOf(own: RunOptions['retry'], root: RetryOptions | undefined): number | undefined {
  if (own === undefined || own === false) return undefined
  if (own === true && root) return root.limit
  if (own === true) throw misfit('retry', 'retry of the throttle, which true means, or { limit }', own)
  if (!isObject(own)) throw misfit('retry', 'true or { limit: 3 }', own)
  const { limit, ...others } = own
  const [other] = Object.entries(others)
  if (other) throw misfit(`retry.${other[0]}`, HOW_TO_RETRY, other[1])
  if (!Number.isInteger(limit) || limit < 0) throw misfit('retry.limit', 'a whole number from 0', limit)
  return limit
}
