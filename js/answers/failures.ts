/**
 * Why there was no response: the server's doing, the caller's, or a fault in a program.
 *
 * An abort by the caller or a bug in a callback is no failure of the server. Runtimes name failures
 * differently (`cause.code` in Node, words in browsers), so this is one place for all of their words.
 */
import { isObject } from '../base/checks.js'
import { ThrottleError, TimeoutError } from '../base/errors.js'

/** The boundary's numbers for failures: see `settle`. */
const CONNECTION = 0
const TIMEOUT = 1
const NOT_THE_SERVER = Number.NaN

const TIMEOUTS = /^(?:ETIMEDOUT|ESOCKETTIMEDOUT|ERR_TIMEOUT|UND_ERR_(?:CONNECT|HEADERS|BODY)_TIMEOUT)$/
/** Node's, then Bun's. */
const CONNECTIONS = [
  /^(?:ECONN\w+|EPIPE|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EPROTO)$/,
  /^(?:CERT_\w+|ERR_TLS_\w+|UND_ERR_SOCKET|Connection(?:Refused|Closed|Reset))$/,
]
/** The messages of Node, Chromium, Firefox, Safari, workerd, Deno and Bun, in this order. */
const WORDS = new RegExp(
  [
    'fetch failed|failed to fetch|networkerror|load failed|network connection lost',
    'error sending request|unable to connect|socket',
  ].join('|'),
  'i',
)

/** Timeouts and connection failures by their codes and words; anything else is not the server's doing. */
export function failureOf(error: unknown): number {
  try {
    return failureIn(error)
  } catch {
    return NOT_THE_SERVER // A getter of the error throws.
  }
}

function failureIn(error: unknown): number {
  let cause = error as
    | { name?: unknown; code?: unknown; message?: unknown; cause?: unknown; isSent?: unknown }
    | null
    | undefined
  for (let depth = 0; depth < 5 && isObject(cause); depth++) {
    if (cause.name === 'AbortError' || cause.isSent === false) return NOT_THE_SERVER
    const code = typeof cause.code === 'string' ? cause.code : ''
    if (cause.name === 'TimeoutError' || TIMEOUTS.test(code)) return TIMEOUT
    if (CONNECTIONS.some((codes) => codes.test(code))) return CONNECTION
    // A plain `TypeError: fetch failed` says more in its cause.
    if (!cause.cause && typeof cause.message === 'string' && WORDS.test(cause.message)) return CONNECTION
    cause = cause.cause as typeof cause
  }
  return error instanceof TypeError && WORDS.test(error.message) ? CONNECTION : NOT_THE_SERVER
}

/**
 * For what `fetch` rejects with, and for errors that a caller reports: the server's doing unless
 * aborted.
 */
export function failureOfRequest(error: unknown, signal?: AbortSignal | null): number {
  // Also `AbortSignal.timeout`: who sets it gives up. A `requestTimeout` is known by its class.
  if (signal?.aborted && error === signal.reason && !(error instanceof TimeoutError)) return NOT_THE_SERVER
  // A throttle's own word: a wait that was given up, a queue that is full.
  if (error instanceof ThrottleError && !(error as { isSent?: boolean }).isSent) return NOT_THE_SERVER
  if (isAbort(error)) return NOT_THE_SERVER
  return failureOf(error) === TIMEOUT ? TIMEOUT : CONNECTION
}

function isAbort(error: unknown): boolean {
  try {
    return (error as { name?: unknown } | null)?.name === 'AbortError'
  } catch {
    return false // A getter of the error throws.
  }
}
