/**
 * Header fields on their way to the engine, which reads them; and how to read those of servers with a dialect
 * of their own.
 *
 * Most headers have no word about limits, and are left here after one look at their names: twenty strings
 * across the boundary for each response would cost too much.
 */

import { isObject, shown, wrong } from '../base/checks.js'
import { SAYS_SOMETHING } from './generated.js'

/** Header fields in any of their forms. */
export type HeadersLike =
  | Iterable<readonly [string, string]>
  | Readonly<Record<string, string | readonly string[] | undefined>>

/** One quota of a server's. */
export interface QuotaHint {
  /** Its name. */
  policy?: string
  /** Units per window. */
  limit?: number
  /** Units left; missing is unknown, not 0. */
  remaining?: number
  /** Units used. */
  used?: number
  /** Milliseconds until more is there. */
  resetMs?: number
  /** The window in milliseconds. */
  windowMs?: number
  /** The unit that is counted, if not requests. */
  unit?: string
  /** The partition of the quota that we are in. */
  partitionKey?: string
  /** The budget that it is of, where that is not the host's: a resource, a bucket, a policy. */
  budget?: string
}

/** The limits in a response: the governing quota's fields stand at the top. */
export interface Hints extends QuotaHint {
  /** How long not to send, in milliseconds, exactly as the server says it; `null` if it does not say. */
  delayMs: number | null
  /** Which field said so. */
  source: string | null
  /** Every quota: exhausted ones first, then the next to reset. */
  quotas: QuotaHint[]
  /** Whether the delay is in whole seconds, of which many servers cut the rest off. */
  isWhole?: boolean
  /**
   * The target of the delay, if not the whole host: the next hop of a redirect, or this request alone (413).
   */
  appliesTo?: 'redirect' | 'request'
  /** On a 202: when to ask again for what is being made. */
  pollAfterMs?: number
  /** A steady rate in requests per second. */
  ratePerS?: number
  /** The scope that shares the limit, in Discord's words. */
  scope?: string
  /** The bucket of the route, in Discord's words. */
  bucket?: string
  /** Rate limit fields were there, but the response came from a cache. */
  ignored?: boolean
  /** The response came from a cache (`Age` above 0): its latency is not the server's. */
  cached?: boolean
}

/** The result of a `getHints` hook: as much of {@link Hints} as it knows. */
export type SomeHints = Partial<Pick<Hints, 'delayMs' | 'limit' | 'remaining' | 'resetMs' | 'windowMs'>>

const TELLS_TIME = /^(?:date|age)$/i
const IS_AGED = /^\s*0*[1-9]/

/** A server's own names and units of fields: `HeaderMap` of the options. */
type Dialect = {
  readonly [key in 'limit' | 'remaining' | 'reset' | 'resetUnit' | 'retryAfter' | 'retryAfterUnit']?: string
}

const NO_MAP: Dialect = {}

/** The kinds of a field's name. */
const NOTHING = 0
const TIME = 1
const AGE = 2
const LIMITS = 3
/**
 * Names that were seen before: a server says the same twenty in each answer. Bounded, for names are a
 * stranger's.
 */
const kinds = new Map<string, number>()
const MOST_KINDS = 1000

/** The fields that matter as `name: value` lines; empty if none tells of limits or of a cache. */
export function hintLines(headers: HeadersLike, map: Dialect = NO_MAP): string {
  let lines = ''
  let says = false
  const isPlain = map === NO_MAP || Object.keys(map).length === 0
  const hear = (name: unknown, value: unknown) => {
    if (value === undefined || value === null) return // `headers.get(…)` of a field that is not there.
    if (typeof name !== 'string') throw wrong('headers', 'names in text', name)
    const known = isPlain ? undefined : renamed(name, map)
    const kind = known === undefined ? kindOfField(name) : LIMITS
    if (kind === NOTHING) return
    if (typeof value !== 'string' && typeof value !== 'number')
      throw new TypeError(`headers: want text in ${known ?? name}; got ${shown(value)}`)
    const text = String(value)
    says ||= saysSomething(kind, text)
    lines += line(known ?? name, text)
  }
  if (!isObject(headers)) throw wrong('headers', 'Headers, an object or pairs', headers)
  if (Symbol.iterator in headers) {
    for (const field of headers as Iterable<unknown>) {
      if (!Array.isArray(field)) throw wrong('headers', '[name, value]', field)
      // Most fields end here, after one look.
      if (isPlain && kinds.get(field[0]) === NOTHING) continue
      hearEach(hear, field[0], field[1])
    }
  } else {
    for (const [name, value] of Object.entries(headers)) hearEach(hear, name, value)
  }
  return says ? lines : ''
}

/** The same of a response of `fetch`: each name is there once, and few values are read. */
export function fetchedLines(headers: Headers): string {
  let lines = ''
  let says = false
  for (const name of headers.keys()) {
    const kind = kindOfField(name)
    if (kind === NOTHING) continue
    const text = headers.get(name) ?? ''
    says ||= saysSomething(kind, text)
    lines += line(name, text)
  }
  return says ? lines : ''
}

/** Whether a field of this kind tells of limits, or of a cache. */
function saysSomething(kind: number, text: string): boolean {
  return kind === LIMITS || (kind === AGE && IS_AGED.test(text))
}

/** A break in a value is no other field. No response of `fetch` has one, so most need one look only. */
function line(name: string, text: string): string {
  const hasBreak = text.includes('\n') || text.includes('\r')
  return `${name}: ${hasBreak ? text.replace(/[\r\n]+/g, ' ') : text}\n`
}

function hearEach(hear: (name: unknown, value: unknown) => void, name: unknown, value: unknown): void {
  if (Array.isArray(value)) for (const each of value) hear(name, each)
  else hear(name, value)
}

function kindOfField(name: string): number {
  const known = kinds.get(name)
  if (known !== undefined) return known
  const isTime = TELLS_TIME.test(name)
  const kind = SAYS_SOMETHING.test(name) ? LIMITS : !isTime ? NOTHING : name.length === 3 ? AGE : TIME
  if (kinds.size >= MOST_KINDS) kinds.clear()
  kinds.set(name, kind)
  return kind
}

/** The units of a header map as bits of the boundary's: see `flags` in `src/boundary/outcome.rs`. */
export function unitsOf(map: Dialect = {}): number {
  return (map.resetUnit === 'ms' ? 32 : 0) | (map.retryAfterUnit === 'ms' ? 64 : 0)
}

function renamed(name: string, map: Dialect): string | undefined {
  const lower = name.toLowerCase()
  if (lower === map.retryAfter?.toLowerCase()) return 'retry-after'
  for (const part of ['limit', 'remaining', 'reset'] as const) {
    if (lower === map[part]?.toLowerCase()) return `x-ratelimit-${part}`
  }
  return undefined
}
