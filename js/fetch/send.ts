/**
 * One request as it leaves: given up after `requestTimeout`, whether or not what sends hears of it.
 *
 * An answer that comes after all finds no caller, and its body is let go of.
 */
import { TimeoutError } from '../base/errors.js'
import { joined } from '../base/joined.js'
import type { Desk } from '../core/desk.js'
import { isRequest } from '../scopes/names.js'
import { discard } from './body.js'
import { isStream } from './retry.js'

export function sent(
  desk: Desk,
  fetch: typeof globalThis.fetch,
  input: RequestInfo | URL,
  init: RequestInit,
  signal: AbortSignal | null,
  timeout: number | undefined,
): Promise<Response> {
  if (timeout === undefined) return fetch(input, init)
  const controller = new AbortController()
  const sent = Promise.resolve(fetch(input, { ...init, signal: joined(signal, controller) }))
  let isLate = false
  return new Promise((resolve, reject) => {
    const alarm = desk.driver.alarm(timeout, () => {
      isLate = true
      const error = new TimeoutError(timeout, true)
      controller.abort(error)
      reject(error)
    })
    const over = () => alarm.cancel()
    sent.then(
      (response) => {
        over()
        if (isLate) discard(response)
        resolve(response)
      },
      (error) => {
        over()
        reject(error)
      },
    )
  })
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
