/**
 * An answer for the engine, as the numbers of the boundary: see `src/boundary/outcome.rs`. NaN is unknown.
 *
 * A string would cross as a number without a word. Each value is therefore checked before its use.
 */

import { failureOfRequest } from '../answers/failures.js'
import { hintLines, type SomeHints, unitsOf } from '../answers/headers.js'
import { isObject, keysOf, notOneOf, shown, wrong } from '../base/checks.js'
import type { Outcome, ScopeOutcome, Ticket } from './types.js'

/** The number for an unknown value. */
export const UNKNOWN = Number.NaN

/** In place of a status: a server was asked, and there is no word about its answer. */
export const UNTOLD = 2

export const NO_OUTCOME: Outcome = {}

/** Bits of an outcome, beside those of `unitsOf`: see `flags` in `src/boundary/outcome.rs`. */
const KEEP_DELAY = 1
const MAY_RETRY = 2
const GOOD = 4
const BAD = 8
const HINTED = 16
const NAMED_ONLY = 128
const NOT_REPLAYABLE = 8192

/** An outcome as the boundary takes it. `encoded` is for `Outcome::decode`, if the others are not all. */
interface Numbers {
  readonly answer: number
  readonly latencyMs: number
  readonly cost: number
  readonly flags: number
  readonly lines: string
  readonly wall: number
  readonly encoded: Float64Array | undefined
}

/** @throws {TypeError} for what is no number, no headers or no hints. */
export function numbersOf(nowMs: number, ticket: Ticket, outcome: Outcome): Numbers {
  const { status, error, headers, headerMap, hints, scopes, wallNowMs = UNKNOWN, retryDelay } = outcome
  const { latencyMs = UNKNOWN, cost = UNKNOWN, adjustDelay = true, backoff } = outcome
  const { retry = false, replayable = true } = outcome
  const answer = status ?? (error === undefined ? UNKNOWN : failureOfRequest(error))
  if (
    typeof nowMs !== 'number' ||
    typeof ticket !== 'number' ||
    typeof answer !== 'number' ||
    typeof latencyMs !== 'number' ||
    typeof cost !== 'number'
  ) {
    throw new TypeError('nowMs, ticket, status, latencyMs and cost must be numbers')
  }
  const lines = headers === undefined ? '' : hintLines(headers, headerMap)
  const verdict = backoff === undefined ? 0 : backoff ? BAD : GOOD
  const again = (retry ? MAY_RETRY : 0) | (replayable ? 0 : NOT_REPLAYABLE)
  let flags = (adjustDelay ? 0 : KEEP_DELAY) | again | verdict
  let wall = UNKNOWN
  let encoded: Float64Array | undefined
  if (hints !== undefined || scopes !== undefined || retryDelay !== undefined || lines !== '') {
    const named = outcome.namedOnly ? NAMED_ONLY : 0
    flags |= (hints === undefined ? 0 : HINTED) | unitsOf(headerMap) | named
    wall = typeof wallNowMs === 'function' ? wallNowMs() : wallNowMs
    if (typeof wall !== 'number') throw wrong('wallNowMs', 'a number', wall)
    if (hints === undefined && scopes === undefined && retryDelay === undefined) {
      encoded = plainNumbers(answer, latencyMs, cost, flags)
    } else {
      const first = [answer, latencyMs, cost, flags, retryDelay ?? UNKNOWN]
      const own = scopes?.flatMap(scopeNumbers) ?? []
      encoded = numbers('the outcome', [...first, ...hintNumbers(hints), ...own])
    }
  }
  return { answer, latencyMs, cost, flags, lines, wall, encoded }
}

/** The numbers of most outcomes with lines: filled anew for each, and copied as it crosses. */
const plain = new Float64Array(4)

/** The numbers of an outcome that has lines and no more: good until the next. */
export function plainNumbers(answer: number, latencyMs: number, cost = UNKNOWN, flags = 0): Float64Array {
  plain[0] = answer
  plain[1] = latencyMs
  plain[2] = cost
  plain[3] = flags
  return plain
}

/** One cost for all scopes, or one for each. */
export function costsOf(cost: number | readonly number[]): Float64Array {
  return numbers('cost', typeof cost === 'object' ? cost : [cost])
}

/** Checked, and ready to cross. */
export function numbers(what: string, list: readonly number[]): Float64Array {
  for (const number of list)
    if (typeof number !== 'number' && number !== undefined)
      throw new TypeError(`${what}: want numbers; got ${shown(number)}`)
  return new Float64Array(list)
}

const HINTS = ['delayMs', 'remaining', 'resetMs', 'limit', 'windowMs'] as const

/** Hints that were not in headers, in the order of `Outcome::hint`. */
function hintNumbers(hints: SomeHints = {}): readonly number[] {
  if (!isObject(hints)) throw wrong('hints', 'an object', hints)
  if (Object.keys(hints).length > 0 && !HINTS.some((key) => key in hints))
    throw notOneOf('hints', HINTS, keysOf(hints), 'retryAfterMs' in hints ? 'delayMs' : undefined)
  return HINTS.map((key) => {
    const hint = hints[key] ?? UNKNOWN
    if (typeof hint !== 'number') throw wrong(`hints.${key}`, 'a number', hint)
    return hint
  })
}

/** The numbers of an outcome for one scope: see `Outcome::scopes`. */
function scopeNumbers(own: ScopeOutcome): number[] {
  const { scope, ignored = false, backoff, delay = UNKNOWN, remaining = UNKNOWN } = own
  const { resetMs = UNKNOWN, cost = UNKNOWN } = own
  const bad = backoff === undefined ? UNKNOWN : Number(backoff)
  return [scope, Number(ignored), bad, delay, remaining, resetMs, cost]
}
