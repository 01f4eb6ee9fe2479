/**
 * What an answer says: limits in its headers, usage in its body or in the events of its stream, and whether a
 * refusal will ever end.
 *
 * `reset` is the time until a bucket is *full*, not until something is left. `-requests` may be a bucket of a
 * day. A streamed usage comes last, or never. And a refusal may say how long to wait although no wait will
 * help: a quota is used up, or the request is above the whole limit.
 */
import type { Hints } from '../answers/headers.js'
import { isObject } from '../base/checks.js'
import { parseHints } from '../wasm/functions.js'
import type { Kind, Rules } from './request.js'

/** A budget as the headers tell it: what is left of it, and its length in milliseconds. */
export interface ToldLimit {
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
export function toldBy(headers: Headers, rules: Rules): ToldLimit[] {
  const told: ToldLimit[] = []
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
    told.push({ kind: isDay ? 'day' : kind, limit, left, per })
  }
  return told
}

/** What a call took, in the vendor's own count; `undefined` where it does not say. */
export interface Usage {
  /** What is charged of the input, and how much of it was free: it came from the vendor's cache. */
  input: number | undefined
  free: number
  output: number | undefined
}

type Json = { readonly [key: string]: Json } & { readonly [key: number]: Json }
const number = (...values: unknown[]) => values.find((value): value is number => typeof value === 'number')

/** Reads `usage` wherever vendors put it, over what was known before. */
function readUsage(json: Json, usage: Usage, isCachedFree: boolean): void {
  const told = json.usage ?? json.response?.usage ?? json.message?.usage ?? json.usageMetadata
  if (!isObject(told)) return
  const input = number(told.prompt_tokens, told.input_tokens, told.promptTokenCount)
  // Anthropic counts cached input beside; the others count it as a part.
  const beside = number(told.cache_read_input_tokens)
  const within = number(
    told.prompt_tokens_details?.cached_tokens,
    told.input_tokens_details?.cached_tokens,
    told.cachedContentTokenCount,
  )
  const made = number(told.cache_creation_input_tokens) ?? 0
  if (input !== undefined) usage.free = isCachedFree ? (within ?? beside ?? 0) : 0
  if (input !== undefined) usage.input = input + made + (isCachedFree ? -(within ?? 0) : (beside ?? 0))
  const output = number(told.completion_tokens, told.output_tokens, told.candidatesTokenCount)
  if (output !== undefined) usage.output = output + (number(told.thoughtsTokenCount) ?? 0)
}

/** Texts of an event that add to the answer. */
const TEXTS = /"(?:delta|text|content|\w*thinking|reasoning\w*|arguments|\w+_json)":\s*"((?:[^"\\]|\\.)*)"/g

/** Beyond it a body is not kept: its usage is estimated. */
const MOST = 4_000_000

/** Hears a body in passing. */
export class Body {
  readonly usage: Usage = { input: undefined, free: 0, output: undefined }
  /** Tokens that were seen to be written: characters of a stream ÷ 4, or what the vendor counts so far. */
  written = 0
  /** The stream told an error. */
  isBroken = false
  /** A stream was read to the event that ends it. */
  isWhole = false
  readonly #isStream: boolean
  readonly #isCachedFree: boolean
  readonly #decoder = new TextDecoder()
  #text = ''
  #characters = 0
  #isSkipping = false

  constructor(isStream: boolean, isCachedFree: boolean) {
    this.#isStream = isStream
    this.#isCachedFree = isCachedFree
  }

  hear(bytes: Uint8Array): void {
    const text = this.#decoder.decode(bytes, { stream: true })
    if (!this.#isStream) {
      if (this.#text.length + text.length <= MOST) this.#text += text
      else this.#isSkipping = true
      return
    }
    const lines = (this.#text + text).split(/\r\n|[\r\n]/)
    this.#text = lines.pop()!
    for (const line of lines) {
      if (!this.#isSkipping && line.startsWith('data:')) this.#event(line.slice(5))
      this.#isSkipping = false
    }
    if (this.#text.length > MOST) {
      this.#text = ''
      this.#isSkipping = true
    }
  }

  /** The body is over. */
  end(): void {
    if (this.#isStream && this.#text.startsWith('data:')) this.#event(this.#text.slice(5))
    if (this.#isStream || this.#isSkipping) return
    try {
      readUsage(JSON.parse(this.#text) as Json, this.usage, this.#isCachedFree)
    } catch {
      // No JSON, so no usage.
    }
  }

  #event(data: string): void {
    if (data.trim() === '[DONE]') {
      this.isWhole = true
      return
    }
    let json: Json
    try {
      json = JSON.parse(data) as Json
    } catch {
      return
    }
    if (!isObject(json)) return
    const type = String(json.type)
    if (json.error || type === 'error') this.isBroken = true
    // Anthropic's first event counts one token of output, its `message_delta` all of them.
    const before = this.usage.output
    readUsage(json, this.usage, this.#isCachedFree)
    if (type === 'message_start') this.usage.output = before
    if (/^(?:message_stop|response\.(?:completed|incomplete|failed))$/.test(type)) this.isWhole = true
    else if (!/_start|done$/.test(type))
      for (const [, text] of data.matchAll(TEXTS)) this.#characters += text!.length
    this.written = Math.max(this.#characters / 4, this.usage.output ?? 0)
  }
}

/** What a refusal says. */
export interface Refusal {
  /** Milliseconds to wait; `undefined` where it does not say. */
  readonly wait: number | undefined
  /** No wait helps. */
  readonly isFinal: boolean
  /** Which budget has no room, in the words of the refusal. */
  readonly kind: Kind | undefined
}

/** The most that a timer takes. */
const LONGEST = 2 ** 31

/** Reads a refusal: headers first, then what its body says. */
export function refusalOf({ status, headers }: Response, text: string, isAnthropic: boolean): Refusal {
  const waitOf = ({ delayMs, source }: Hints) => (source?.includes('after') && delayMs) || 0
  const [, said = ''] = /(?:try again in |"retryDelay":\s*")([\dhm.]*\d[\d.]*m?s)\b/.exec(text) ?? []
  const wait = waitOf(parseHints(headers)) || waitOf(parseHints({ 'retry-after': said }))
  const isOver =
    /insufficient_quota|Request too large|"limit":\s*"?0\b|limit: 0\b/.test(text) ||
    (isAnthropic && status === 429 && !headers.has('retry-after'))
  // "This request would exceed … 10,000 input tokens": the first word is not the budget. A rise that is too
  // steep ("usage increase rate for input tokens") says no word of a level.
  const [word = ''] = /increase rate/.test(text)
    ? []
    : (/(?:out|in)put(?=.token)|token|request(?!.would|_id)/i.exec(text) ?? [])
  const kind = word.toLowerCase()
  return {
    wait: wait ? Math.min(wait, LONGEST) : undefined,
    isFinal: headers.get('x-should-retry') === 'false' || (status < 500 && isOver),
    kind: kind ? ((/put/.test(kind) ? kind : `${kind}s`) as Kind) : undefined,
  }
}
