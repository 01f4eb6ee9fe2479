/**
 * One request as it leaves: given up after `requestTimeout`, whether or not what sends hears of it.
 *
 * An answer that comes after all finds no caller, and its body is let go of.
 */
import { isObject } from '../base/checks.js'
import { joined } from '../base/joined.js'
import type { Scheduler } from '../core/scheduler.js'
import { isRequest } from '../scopes/names.js'
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

/** The argument to send where it may be sent once more: a body that is needed again is copied. */
export function copied(input: RequestInfo | URL): RequestInfo | URL {
  return isRequest(input) && input.body ? input.clone() : input
}

/** Whether a body can be read only once. */
export function isStream(body: unknown): boolean {
  if (!isObject(body)) return false
  return body instanceof ReadableStream || Symbol.asyncIterator in body
}
