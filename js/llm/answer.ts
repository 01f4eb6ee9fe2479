/**
 * What an answer says: limits in its headers, usage in its body or in the events of its stream, and whether a
 * refusal will ever end.
 *
 * The traps: `reset` is the time until a bucket is *full*, not until something is left. `-requests` may be a
 * bucket of a day. A streamed usage comes last, or never. And a refusal may say how long to wait although no
 * wait will help: a quota is used up, or the request is above the whole limit.
 */
import type { Kind, Rules } from './request.js'

/** A budget as the headers tell it: what is left of it, and its length in milliseconds. */
export interface Told {
  readonly kind: Kind
  readonly limit: number
  readonly left: number | undefined
  readonly per: number
}

const MINUTE = 60_000
const DAY = 86_400_000
const WINDOWS = [1000, 10_000, MINUTE, 3_600_000, DAY]
const PART = '(limit|remaining|reset)'
const FIELD = new RegExp(
  `^(?:x|anthropic)-ratelimit-(?:${PART}-)?(req\\w*|(?:\\w+-)?tokens)(?:-(minute|day))?(?:-${PART})?$`,
)
const KINDS: Readonly<Record<string, Kind>> = { req: 'requests', 'project-tokens': 'project' }
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: MINUTE, h: 3_600_000, d: DAY }

/** `1h2m3.5s`, `120ms`, `7.66` (seconds), or a date. NaN where it is none of them. */
function spanOf(text: string, date: number): number {
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) * 1000
  if (/^\d{4}-/.test(text)) return Date.parse(text) - date
  let sum = 0
  const rest = text.replace(/(\d+(?:\.\d+)?)(ms|[smhd])/g, (_, amount: string, unit: string) => {
    sum += Number(amount) * UNITS[unit]!
    return ''
  })
  return rest === '' && text !== '' ? sum : Number.NaN
}

/**
 * The budgets that the headers tell. The window follows from what is missing and the time until it is back;
 * where too little is missing to tell, it is the usual one: a minute, and Groq's requests a day.
 */
export function toldBy(headers: Headers, rules: Rules, isDaily: boolean): Told[] {
  const found: Record<string, Record<string, string>> = {}
  const spans: Record<string, number> = {}
  headers.forEach((value, name) => {
    const [, before, what, window, after] = FIELD.exec(name) ?? []
    const part = before ?? after
    if (what === undefined || part === undefined) return
    const key = `${what} ${window ?? ''}`
    found[key] = { ...found[key], [part]: value }
    if (window) spans[key] = window === 'day' ? DAY : MINUTE
  })
  const date = Date.parse(headers.get('date') ?? '')
  const told: Told[] = []
  for (const [key, fields] of Object.entries(found)) {
    const what = key.split(' ')[0]!
    const limit = Number(fields.limit)
    const isToken = what.endsWith('tokens')
    const kind = KINDS[what] ?? (what.replace('-tokens', '') as Kind)
    if (!(limit > 0 && rules.kinds.includes(kind))) continue
    const remaining = Number(fields.remaining ?? Number.NaN)
    const left = remaining >= 0 ? Math.min(remaining, limit) : undefined
    const rounding = isToken ? (rules.rounding ?? 0) : 0
    const missing = limit - (left ?? limit)
    const reset = spanOf(fields.reset ?? '', date)
    const isClear = missing > 2 * rounding && reset >= (rules.rounding ? 2000 : 1)
    const guess = (reset * limit) / missing
    const nearest = (best: number, each: number) =>
      Math.abs(Math.log(each / guess)) < Math.abs(Math.log(best / guess)) ? each : best
    const usual = isDaily && !isToken ? DAY : MINUTE
    const isFixed = rules.isSpread === true || !isClear
    const per = spans[key] ?? (isFixed ? usual : WINDOWS.reduce(nearest))
    const isDay = kind === 'requests' && per > MINUTE && rules.kinds.includes('day')
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
  if (!told || typeof told !== 'object') return
  const input = number(told.prompt_tokens, told.input_tokens, told.promptTokenCount)
  // Anthropic counts cached input beside; the others count it as a part.
  const beside = number(told.cache_read_input_tokens)
  const within = number(
    told.prompt_tokens_details?.cached_tokens,
    told.input_tokens_details?.cached_tokens,
    told.cachedContentTokenCount,
  )
  const made = number(told.cache_creation_input_tokens) ?? 0
  if (input !== undefined) usage.input = input + made + (isCachedFree ? -(within ?? 0) : (beside ?? 0))
  const output = number(told.completion_tokens, told.output_tokens, told.candidatesTokenCount)
  if (output !== undefined) usage.output = output + (number(told.thoughtsTokenCount) ?? 0)
}

/** The characters that an event of a stream adds to the answer. */
function written(value: Json | undefined): number {
  if (typeof value === 'string') return (value as string).length
  if (!value || typeof value !== 'object') return 0
  let sum = 0
  for (const [key, each] of Object.entries(value))
    if (!/^(?:id|type|role|name|index|finish_reason|stop_reason|signature|object|model)$/.test(key))
      sum += written(each)
  return sum
}

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
    if (typeof json !== 'object' || json === null) return
    const type = String(json.type)
    if (json.error || type === 'error') this.isBroken = true
    if (/^(?:message_stop|response\.(?:completed|incomplete|failed))$/.test(type)) this.isWhole = true
    // Anthropic's first event counts one token of output, its `message_delta` all of them.
    const before = this.usage.output
    readUsage(json, this.usage, this.#isCachedFree)
    if (type === 'message_start') this.usage.output = before
    this.#characters += written(json.delta)
    const parts = json.choices ?? json.candidates
    if (Array.isArray(parts))
      for (const { delta, content } of parts) this.#characters += written(delta ?? content)
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

const KIND_WORDS: Readonly<Record<string, Kind>> = {
  input: 'input',
  output: 'output',
  token: 'tokens',
  request: 'requests',
}
/** The most that a timer takes. */
const LONGEST = 2 ** 31

/** Reads a refusal: headers first, then what its body says. */
export function refusalOf(response: Response, text: string, isAnthropic: boolean): Refusal {
  const { status, headers } = response
  const ms = Number.parseFloat(headers.get('retry-after-ms') ?? '')
  const after = headers.get('retry-after') ?? ''
  const date = Date.parse(headers.get('date') ?? '')
  const header = ms >= 0 ? ms : /^[\d.]+$/.test(after) ? Number(after) * 1000 : Date.parse(after) - date
  const [, amount = '', unit = ''] =
    /(?:try again in |"retryDelay":\s*")([\dhm.]*?[\d.]+)(ms|s)\b/.exec(text) ?? []
  const body = spanOf(`${amount}${unit}`, date)
  const told = header > 0 ? header : body
  const isOver =
    /insufficient_quota|Request too large|"limit":\s*"?0\b|limit: 0\b/.test(text) ||
    (isAnthropic && status === 429 && !after)
  const isFinal = headers.get('x-should-retry') === 'false' || (status < 500 && isOver)
  // "This request would exceed … 10,000 input tokens": the first word is not the budget.
  const [kind = ''] = /(?:out|in)put(?=.token)|token|request(?!.would|_id)/i.exec(text) ?? []
  return {
    wait: told > 0 ? Math.min(told, LONGEST) : undefined,
    isFinal,
    kind: KIND_WORDS[kind.toLowerCase()],
  }
}
