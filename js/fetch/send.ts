/**
 * One request as it leaves: given up after `requestTimeout`, whether or not what sends hears of it.
 *
 * The trap is an answer that comes after all: no caller wants it, and its body is let go of.
 */
import { TimeoutError } from '../base/errors.js'
import { joined } from '../base/joined.js'
import type { Desk } from '../core/desk.js'
import { discard } from './body.js'

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
