/**
 * Which requests may be sent again, and how often. Whether one is, and not before when, the engine decides
 * (`src/policy/retry.rs`), for it has read the headers.
 *
 * The traps: a retry that sleeps beside the throttle and then goes past it; a POST that is sent twice; a body
 * that is a stream and is empty the second time. Here an attempt that failed goes back into the throttle with
 * its place by age, and holds no slot while it waits.
 */

import type { Problem } from '../core/errors.js'
import { kindOf, shown, unknownKeys } from '../options/checks.js'
import { isRequest } from '../scopes/names.js'

/** Retries of `throttle.fetch`. Scrapy: RETRY_ENABLED and its kin. */
export interface RetryOptions {
  /** Attempts after the first. A whole number from 1. Scrapy: RETRY_TIMES. */
  limit: number
  /**
   * Statuses to try again. Default 408, 413 (with `Retry-After` only), 429, 500, 502, 503, 504, 520 to 524.
   * Scrapy: RETRY_HTTP_CODES.
   */
  statusCodes?: readonly number[]
  /** Methods to try again. Default: the idempotent ones, GET, HEAD, PUT, DELETE, OPTIONS, TRACE. */
  methods?: readonly string[]
  /** The longest `Retry-After` to wait for, in milliseconds. Default 300000. */
  maxRetryAfter?: number
  /**
   * What to do beyond it: `fail` with a `RetryAfterTooLongError`, `wait` all the same, or `cap` the wait at
   * `maxRetryAfter`, which is earlier than the server asked. Default `fail`.
   */
  longRetryAfter?: 'fail' | 'wait' | 'cap'
}

const METHODS = ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'TRACE']
const KEYS = ['limit', 'statusCodes', 'methods', 'maxRetryAfter', 'longRetryAfter']

/** What the engine reads and checks: it decides after what, and for how long a wait. */
export function retryForEngine(retry: RetryOptions | undefined): { retry?: object } {
  if (typeof retry !== 'object' || retry === null) return {}
  const { statusCodes, maxRetryAfter, longRetryAfter } = retry
  return { retry: { statusCodes, maxRetryAfter, longRetryAfter } }
}

/** Problems of the rest of the `retry` option. */
export function retryProblems(retry: unknown): Problem[] {
  if (retry === undefined) return []
  if (typeof retry !== 'object' || retry === null) {
    return [{ path: 'retry', want: 'an object with limit', got: kindOf(retry) }]
  }
  const options = retry as Record<string, unknown>
  const problems = unknownKeys(options, KEYS, 'retry')
  const add = (key: string, want: string) =>
    problems.push({ path: `retry.${key}`, want, got: shown(options[key]) })
  const check = (key: string, isRight: (value: never) => boolean, want: string) => {
    if (options[key] !== undefined && !isRight(options[key] as never)) add(key, want)
  }
  const wantLimit = 'a whole number from 1'
  if (options.limit === undefined) add('limit', wantLimit)
  check('limit', (limit: number) => Number.isInteger(limit) && limit >= 1, wantLimit)
  const isWord = (word: unknown) => typeof word === 'string' && word !== ''
  check('methods', (list: unknown) => Array.isArray(list) && list.every(isWord), 'a list of methods')
  return problems
}

/** One request's retries. */
export class Retry {
  readonly #input: RequestInfo | URL
  readonly #init: RequestInit
  #left: number

  constructor(options: RetryOptions, input: RequestInfo | URL, init: RequestInit) {
    this.#input = input
    this.#init = init
    const method = (init.method ?? (isRequest(input) ? input.method : 'GET')).toUpperCase()
    const methods = (options.methods ?? METHODS).map((each) => each.toUpperCase())
    this.#left = methods.includes(method) ? options.limit : 0
  }

  /** What to send: a body that may be needed again is copied. */
  get input(): RequestInfo | URL {
    return this.#left > 0 && isRequest(this.#input) && this.#input.body ? this.#input.clone() : this.#input
  }

  /** Whether there are attempts left. Whether one is worth while is the engine's to say. */
  get isLeft(): boolean {
    return this.#left > 0
  }

  /** Whether the body can be sent twice. */
  get isRepeatable(): boolean {
    return !isStream(this.#init.body)
  }

  /** The request is sent once more. */
  take(): void {
    this.#left--
  }
}

/** Whether a body can be read only once. */
export function isStream(body: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false
  return body instanceof ReadableStream || Symbol.asyncIterator in body
}
