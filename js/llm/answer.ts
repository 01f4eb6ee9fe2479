/**
 * Reads an answer: limits in its headers, usage in its body, and whether a refusal will ever end. Bodies and
 * refusals are read in Rust (`crates/llm`), for every host alike.
 *
 * `reset` is the time until a bucket is *full*, not until something is left. `-requests` may be a bucket of a
 * day.
 */
import { parseHints } from '../wasm/functions.js'
import { loadLlm, type WasmBody } from '../wasm/load/llm.js'
import type { Kind, Rules } from './request.js'

/** A budget as the headers tell it: what is left of it, and its length in milliseconds. */
export interface ReportedLimit {
  readonly kind: Kind
  readonly limit: number
  readonly left: number | undefined
  readonly per: number
}

const MINUTE = 60_000
const DAY = 86_400_000
const WINDOWS = [1000, 10_000, MINUTE, 3_600_000, DAY]

/**
 * The budgets that the headers tell. The window follows from what is missing and the time until it is back;
 * where too little is missing to tell, it is the usual one: a minute, and Groq's requests a day.
 */
export function limitsOf(headers: Headers, rules: Rules): ReportedLimit[] {
  const limits: ReportedLimit[] = []
  // Azure says −1 for what it does not tell.
  for (const quota of parseHints([...headers].filter(([, value]) => value !== '-1')).quotas) {
    const { policy = '', limit = 0, remaining = Number.NaN, resetMs: reset = 0 } = quota
    const [, what = '', window] = /^(.*?)(?:-tokens)?(?:-(minute|day))?$/.exec(policy)!
    const kind = (what === 'req' ? 'requests' : what) as Kind
    if (!(limit > 0 && rules.kinds.includes(kind))) continue
    const left = remaining >= 0 ? Math.min(remaining, limit) : undefined
    const isRequests = kind === 'requests'
    const guess = (reset * limit) / (limit - (left ?? limit))
    const off = (per: number) => Math.abs(Math.log(per / guess))
    const isClear = !rules.isSpread && !window && guess > 0 && guess < 1e15
    const usual = window === 'day' || (rules.isDaily && isRequests) ? DAY : MINUTE
    const per = isClear ? WINDOWS.reduce((best, each) => (off(each) < off(best) ? each : best)) : usual
    const isDay = isRequests && per > MINUTE && rules.kinds.includes('day')
    limits.push({ kind: isDay ? 'day' : kind, limit, left, per })
  }
  return limits
}

/** The tokens of a call, in the vendor's own count; `undefined` where it does not say. */
export interface Usage {
  /** The charged tokens of the input, and the free ones, which came from the vendor's cache. */
  readonly input: number | undefined
  readonly free: number
  readonly output: number | undefined
}

/** A number that is known. */
const known = (value: number) => (Number.isNaN(value) ? undefined : value)

/** Hears a body in passing. */
export class Body {
  usage: Usage = { input: undefined, free: 0, output: undefined }
  /** Tokens that were seen to be written: characters of a stream ÷ 4, or what the vendor counts so far. */
  written = 0
  /** The stream carried an error. */
  isBroken = false
  /** A stream was read to the event that ends it. */
  isWhole = false
  #reader: WasmBody | undefined

  constructor(isStream: boolean, isCachedFree: boolean) {
    this.#reader = new (loadLlm().WasmBody)(isStream, isCachedFree)
  }

  hear(bytes: Uint8Array): void {
    this.#reader?.hear(bytes)
    this.#look()
  }

  /** The body is over. */
  end(): void {
    this.#reader?.end()
    this.#look()
    this.#reader?.free()
    this.#reader = undefined
  }

  #look(): void {
    const reader = this.#reader
    if (!reader) return
    this.usage = { input: known(reader.input()), free: reader.cached(), output: known(reader.output()) }
    this.written = reader.written()
    this.isBroken = reader.is_broken()
    this.isWhole = reader.is_whole()
  }
}

/** A refusal, as read. */
export interface Refusal {
  /** Milliseconds to wait; `undefined` where it does not say. */
  readonly wait: number | undefined
  /** No wait helps. */
  readonly isFinal: boolean
  /** Which budget has no room, in the words of the refusal. */
  readonly kind: Kind | undefined
}

/** By their places in the module's answer. */
const KINDS = ['requests', 'tokens', 'input', 'output'] as const

/** Reads a refusal: headers first, then what its body says. */
export function refusalOf({ status, headers }: Response, text: string, isAnthropic: boolean): Refusal {
  const { delayMs, source } = parseHints(headers)
  const wait = (source?.includes('after') && delayMs) || 0
  const isFinal = headers.get('x-should-retry') === 'false'
  const hasAfter = headers.has('retry-after')
  const read = loadLlm().refusal(status, wait, hasAfter, isFinal, isAnthropic, text)
  return { wait: known(read[0]!), isFinal: read[1] === 1, kind: KINDS[read[2]!] }
}
