/**
 * What a single request may say, and what is wrong with it.
 *
 * The trap is a misspelt option that is quietly ignored: every key is known, or an error.
 */
import { unknownKeys } from '../options/checks.js'
import type { Scopes } from '../scopes/names.js'
import { ConfigError } from './errors.js'

/** What a single request may say. */
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
  timeout?: number
  /** The request's own delay in milliseconds, default 0. Scrapy's draft: `throttling_delay`. */
  delay?: number
}

/** What a single call of `run`, `wrap` and `map` may say. */
export interface RunOptions extends RequestOptions {
  /**
   * Milliseconds from send until `fn` is done; then it rejects with a `TimeoutError`, the slots come back,
   * and backoff hears of a timeout. What `fn` does goes on unless it listens to a signal of yours. Default:
   * the throttle's.
   */
  requestTimeout?: number
}

/** What `init.throttle` of `throttle.fetch` may say. */
export interface FetchOptions extends Omit<RunOptions, 'signal'> {
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

/** Of a request that says nothing. */
export const NO_OPTIONS: RunOptions & FetchOptions = {}
export const REQUEST_KEYS = ['signal', 'priority', 'cost', 'timeout', 'delay']
export const RUN_KEYS = [...REQUEST_KEYS, 'requestTimeout']
export const MAP_KEYS = ['ordered', 'buffer', 'errors', 'signal']
export const FETCH_KEYS = ['priority', 'cost', 'timeout', 'requestTimeout', 'delay', 'scopes', 'adjustDelay']

/** @throws {ConfigError} for keys that are unknown. */
export function checkKeys(options: object, known: readonly string[], path: string): void {
  const problems = unknownKeys(options, known, path)
  if (problems.length > 0) throw new ConfigError(problems)
}

/** @throws {TypeError} for timeouts that are none. */
export function checkMillis(options: { timeout?: number; requestTimeout?: number }, path: string): void {
  for (const key of ['timeout', 'requestTimeout'] as const) {
    const value = options[key]
    if (value !== undefined && !(value >= 0))
      throw new TypeError(`${path}${key}: want milliseconds from 0; got ${String(value)}`)
  }
}
