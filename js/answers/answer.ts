/**
 * Reads a response out of results and errors of any client. The one place that knows their shapes:
 *
 * | client | a result (or its `response`) has | an error (or its `cause`) has |
 * |---|---|---|
 * | fetch, ky, node-fetch | `status`, `headers` | ky: `response` |
 * | axios, Octokit | `status`, `headers` | `response.status`, `response.headers` |
 * | got, `node:http` | `statusCode`, `headers` | got: `response.statusCode`, `response.headers` |
 * | undici | `statusCode`, `headers` | `statusCode`, `headers` |
 * | openai, Anthropic | – | `status`, `headers` |
 *
 * A row of a database has a `status`, too. A status therefore counts only in the range of HTTP, and headers
 * only beside a status.
 */

import { isObject, wrong } from '../base/checks.js'
import { failureOf } from './failures.js'
import type { HeadersLike } from './headers.js'

/** The end of a request: a response's status and header fields, or the error in its place. */
export interface Answer {
  readonly status?: number | undefined
  readonly headers?: HeadersLike | undefined
  readonly error?: unknown
}

/** The answer that a result is, or an object beside an error; `undefined` if it is none. */
export function answerIn(value: unknown): Answer | undefined {
  if (!isObject(value)) return undefined
  let known: number | undefined
  try {
    const { status, statusCode } = value as { [key in 'status' | 'statusCode']?: unknown }
    known = isStatus(status) ? status : isStatus(statusCode) ? statusCode : undefined
    if (known === undefined) return undefined
    const { headers } = value as { headers?: unknown }
    return { status: known, headers: isObject(headers) ? fieldsOf(headers) : undefined }
  } catch {
    // A getter throws: it is the work of the caller, and a `Response` behind a `Proxy` does it on Node 24.
    return known === undefined ? undefined : { status: known, headers: undefined }
  }
}

/** The answer that a client threw as an error, or that is the error's `cause`. */
export function answerInError(error: unknown): Answer | undefined {
  for (let depth = 0; depth < 5 && isObject(error); depth++) {
    const answer = answerIn(responseOf(error)) ?? answerIn(error)
    if (answer !== undefined) return answer
    error = read(error, 'cause')
  }
  return undefined
}

/** The `response` of an error, if it has one that can be read. */
export function responseOf(error: unknown): unknown {
  return read(error, 'response')
}

function read(value: unknown, key: 'response' | 'cause'): unknown {
  try {
    return (value as { [name in typeof key]?: unknown } | null | undefined)?.[key]
  } catch {
    return undefined
  }
}

/** The answer in a function's result, or in its `response`. */
export function answerOfResult(result: unknown): Answer | undefined {
  return answerIn(result) ?? answerIn(responseOf(result))
}

/** The answer in a function's error. A bug of the function's, and an abort, say no word about the server. */
export function answerOfError(error: unknown, signal: AbortSignal | null | undefined): Answer | undefined {
  const answer = answerInError(error)
  if (answer !== undefined) return answer
  const isAborted = signal?.aborted === true && error === signal.reason
  return isAborted || Number.isNaN(failureOf(error)) ? undefined : { error }
}

/**
 * The answer in an outcome that a caller hands in, in any of these shapes.
 *
 * @throws {TypeError} for what cannot be a status or header fields.
 */
export function answerOf(outcome: {
  readonly status?: unknown
  readonly statusCode?: unknown
  readonly headers?: unknown
  readonly error?: unknown
}): Answer {
  let { status = outcome.statusCode, headers, error } = outcome
  const answer = status === undefined && error !== undefined ? answerInError(error) : undefined
  if (answer) [status, headers, error] = [answer.status, headers ?? answer.headers, undefined]
  if (status !== undefined && !isStatus(status)) throw wrong('status', 'a status of HTTP', status)
  return { status, headers: headers === undefined ? undefined : checkedHeaders(headers), error }
}

/** The one usable field of an outcome that makes no sense: its status. */
export function statusIn(outcome: { status?: unknown; statusCode?: unknown } | null): { status?: number } {
  try {
    const status = outcome?.status ?? outcome?.statusCode
    return isStatus(status) ? { status } : {}
  } catch {
    return {} // A getter throws.
  }
}

/**
 * Header fields in any form as the engine wants them.
 *
 * @throws {TypeError} if they are none.
 */
export function checkedHeaders(headers: unknown): HeadersLike {
  const fields = isObject(headers) ? fieldsOf(headers) : undefined
  if (fields !== undefined) return fields
  throw wrong('headers', 'Headers, an object or a list of names and values', headers)
}

/** A status of HTTP. Some servers invent some above 599. */
export function isStatus(status: unknown): status is number {
  return Number.isInteger(status) && (status as number) >= 100 && (status as number) <= 999
}

/** `undefined` if they are none. */
function fieldsOf(headers: object): HeadersLike | undefined {
  // In this order: Node loads its fetch with the first look at `Headers`, which takes ten milliseconds.
  if (!(Symbol.iterator in headers)) return headers as HeadersLike
  if (typeof Headers !== 'undefined' && headers instanceof Headers) return headers
  const list = [...(headers as Iterable<unknown>)]
  const isFlat = list.length % 2 === 0 && list.every((each) => typeof each === 'string')
  if (isFlat) return pairs(list as string[])
  const fields: [string, string][] = []
  for (const field of list) {
    if (!Array.isArray(field) || typeof field[0] !== 'string') return undefined
    const [name, value] = field as [string, unknown]
    for (const each of Array.isArray(value) ? value : [value])
      if (each !== undefined && each !== null) fields.push([name, String(each)])
  }
  return fields
}

/** Node's `rawHeaders`: name, value, name, value. */
function pairs(list: readonly string[]): [string, string][] {
  const fields: [string, string][] = []
  for (let index = 0; index < list.length; index += 2) fields.push([list[index]!, list[index + 1]!])
  return fields
}
