/**
 * `autothrottle/got`: a handler for got. Each attempt and each hop waits for its turn.
 *
 * ```ts
 * import { throttleHandler } from 'autothrottle/got'
 *
 * const client = got.extend({ handlers: [throttleHandler(createThrottle({ rate: 5 }))] })
 * await client('https://api.example/items', { context: { throttle: { priority: 1 } } })
 * ```
 *
 * got asks for a function that sends (its option `request`) before each attempt and each hop, and waits for
 * it: that is where the throttle stands. Promises, streams, pagination, the
 * cache (what it answers is not sent, and not throttled) and a `request` of your own go on as they did.
 *
 * got's `timeout.request` counts the wait, so that a long queue looks like a slow server: use
 * `timeout.response`, which counts from the send. A request may be destroyed without a word. Wanted is got 12
 * or newer.
 */

import { answerOfError, answerOfResult } from './answers/answer.js'
import { checkSpelling, checkThrottle } from './base/checks.js'
import { type ClientRequestOptions, enter, outcomeWith } from './clients/enter.js'
import type { Permit, PermitOutcome } from './core/permit.js'
import type { Throttle } from './throttle/throttle.js'

export type { ClientRequestOptions }

/**
 * The function that sends: `http.request`, or another. It may give a response, as got's cache and mocks do.
 */
// biome-ignore lint/suspicious/noExplicitAny: its parameters are got's affair.
type Send = (url: URL, native: any, callback?: any) => unknown

/** Of got's `Options`, what matters here. */
interface GotOptions {
  url?: string | URL | undefined
  method: string
  headers: object
  signal?: AbortSignal | undefined
  context: Record<string, unknown>
  hooks: { beforeRequest: readonly unknown[] }
  request?: Send | undefined
  getRequestFunction(): Send
}

/** A request that was sent, or its answer: emitters both. */
interface Emitter {
  readonly statusCode?: number
  once(event: string, listener: (about: unknown) => void): unknown
  destroy(error?: Error): unknown
}

/**
 * The parameter of `got.extend({ handlers: […] })`.
 *
 * Its `any` are the parameters that differ between versions.
 */
// biome-ignore lint/suspicious/noExplicitAny: see above.
export type GotHandler = (options: any, next: (options: any) => any) => any

/**
 * A handler that makes every request of a got instance wait for `throttle`, and tells it every answer.
 *
 * A single request says more in `context.throttle`: priority, cost, scopes, `maxWait`.
 */
export function throttleHandler(throttle: Throttle): GotHandler {
  checkThrottle(throttle, 'throttleHandler')
  throttle.scheduler.nesting.followClients()
  return (options: GotOptions, next) => {
    const { request } = options
    const beforeRequest = (at: GotOptions) => {
      // The function that got would have taken for this hop: http or https, with or without HTTP/2.
      at.request = request
      const send = at.getRequestFunction()
      at.request = (url, native, callback) =>
        sendThrottled(throttle, at, url, () => send(url, native, callback))
    }
    const { hooks } = options
    options.hooks = { ...hooks, beforeRequest: [...hooks.beforeRequest, beforeRequest] }
    return next(options)
  }
}

async function sendThrottled(throttle: Throttle, options: GotOptions, url: URL, send: () => unknown) {
  const { method, headers, signal, context } = options
  checkSpelling(context, 'got context')
  const own = context.throttle as ClientRequestOptions | undefined
  const permit = await enter(throttle, { url: url.href, method, headers }, own, signal)
  try {
    const sent = (await send()) as Emitter
    listen(throttle, permit, own, sent)
    return sent
  } catch (error) {
    permit.settle(answerOfError(error, signal))
    throw error
  }
}

/** Settles by the first that comes: a response (or its end), an error, or the end without either. */
function listen(
  throttle: Throttle,
  permit: Permit,
  own: ClientRequestOptions | undefined,
  sent: Emitter,
): void {
  const settle = (outcome?: PermitOutcome) => permit.settle(outcomeWith(outcome, own))
  const hear = (response: Emitter) => {
    const outcome = answerOfResult(response)
    if (!throttle.isHeldByBodies) return settle(outcome)
    const latency = throttle.now() - permit.sentAt
    response.once('close', () => settle(outcome && { ...outcome, latency }))
  }
  if (sent.statusCode !== undefined) {
    hear(sent)
    return
  }
  let response: Emitter | undefined
  // An end by got looks like "socket hang up" by the server: it says here why.
  const { destroy } = sent
  sent.destroy = (error) => {
    if (response === undefined) settle(error && answerOfError(error, undefined))
    return destroy.call(sent, error)
  }
  sent.once('response', (received) => {
    response = received as Emitter
    hear(response)
  })
  sent.once('error', (error) => settle(answerOfError(error, undefined)))
  sent.once('close', () => {
    if (response === undefined || !throttle.isHeldByBodies) settle()
  })
}
