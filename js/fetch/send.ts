/**
 * One request as it leaves: given up after `requestTimeout`, whether or not what sends hears of it.
 *
 * An answer that comes after all finds no caller, and its body is let go of.
 */
import { isObject } from '../base/checks.js'
import { joined } from '../base/joined.js'
import type { Scheduler } from '../core/scheduler.js'
import { RETRY_METHODS } from '../options/generated.js'
import type { RetryOptions } from '../options/options.js'
import { isRequest, methodOf } from '../scopes/names.js'
import { discard } from './body.js'

export function sent(
  scheduler: Scheduler,
  fetch: typeof globalThis.fetch,
  input: RequestInfo | URL,
  init: RequestInit,
  signal: AbortSignal | null,
  timeout: number | undefined,
): Promise<Response> {
  if (timeout === undefined) return fetch(input, init)
  const controller = new AbortController()
  const own = joined(signal, controller)
  const sent = Promise.resolve(fetch(input, { ...init, signal: own })).then((response) => {
    if (controller.signal.aborted) discard(response)
    return response
  })
  return scheduler.driver.within(sent, timeout, (error) => controller.abort(error))
}

/** Node's words for what it does not send or follow. They are a cause's, which has no code. */
const REFUSED =
  /^(?:unknown scheme|bad port|about scheme|not implemented|URL scheme|redirect count|unexpected redirect)/

/**
 * Whether `fetch` failed for what the caller typed, which no server saw: no request can be made of it. With a
 * body that can be read once it cannot be tried.
 */
export function isRefused(error: unknown, input: RequestInfo | URL, init: RequestInit): boolean {
  if (!(error instanceof TypeError)) return false
  const cause = error.cause as { message?: unknown } | undefined
  if (cause) return REFUSED.test(String(cause.message))
  if (isStream(init.body)) return false
  try {
    void new Request(isRequest(input) ? input.url : input, init)
    return false
  } catch {
    return true
  }
}

// Which requests may be sent again, and how often. Whether one is, and not before when, the engine decides
// (`src/policy/retry.rs`), for it has read the headers.
//
// An attempt that failed goes back into the throttle with its place by age, and holds no slot while it waits.
// A POST is not sent twice, nor a body that is a stream, which would be empty the second time.

/** One request's retries. */
export class Retry {
  readonly #input: RequestInfo | URL
  readonly #init: RequestInit
  /** Attempts that are left. Whether one is worth while is the engine's to say. */
  left: number

  /** `isAny`: whatever its method, since the options of this very request say so. */
  constructor(options: RetryOptions, input: RequestInfo | URL, init: RequestInit, isAny = false) {
    this.#input = input
    this.#init = init
    const methods = (options.methods ?? RETRY_METHODS).map((each) => each.toUpperCase())
    this.left = isAny || methods.includes(methodOf(input, init)) ? options.limit : 0
  }

  /** The argument to send: a body that may be needed again is copied. */
  get input(): RequestInfo | URL {
    return this.left > 0 && isRequest(this.#input) && this.#input.body ? this.#input.clone() : this.#input
  }

  /** Whether the body can be sent twice. */
  get isReplayable(): boolean {
    return !isStream(this.#init.body)
  }
}

/** Whether a body can be read only once. */
export function isStream(body: unknown): boolean {
  if (!isObject(body)) return false
  return body instanceof ReadableStream || Symbol.asyncIterator in body
}
