/**
 * Which requests may be sent again, and how often. Whether one is, and not before when, the engine decides
 * (`src/policy/retry.rs`), for it has read the headers.
 *
 * An attempt that failed goes back into the throttle with its place by age, and holds no slot while it waits.
 * A POST is not sent twice, nor a body that is a stream, which would be empty the second time.
 */

import { RETRY_METHODS } from '../options/generated.js'
import type { RetryOptions } from '../options/options.js'
import { isRequest } from '../scopes/names.js'

/** One request's retries. */
export class Retry {
  readonly #input: RequestInfo | URL
  readonly #init: RequestInit
  #left: number

  /** `isAny`: whatever its method, since the options of this very request say so. */
  constructor(options: RetryOptions, input: RequestInfo | URL, init: RequestInit, isAny = false) {
    this.#input = input
    this.#init = init
    const method = (init.method ?? (isRequest(input) ? input.method : 'GET')).toUpperCase()
    const methods = (options.methods ?? RETRY_METHODS).map((each) => each.toUpperCase())
    this.#left = isAny || methods.includes(method) ? options.limit : 0
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
