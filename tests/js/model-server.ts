/**
 * A server of language models in virtual time: buckets per key and model, by the rules of each vendor.
 *
 * Its buckets are floats from 0 to the limit that refill evenly, or sliding windows (Azure). It estimates
 * input by itself, up to 20 % beside the truth, and writes answers token by token. Facts that its clients
 * must not know (levels, true lengths) stay in here; `figures` says how much of what it bears was used.
 */

import { createThrottle } from 'autothrottle'
import { type LlmOptions, llmFetch } from 'autothrottle/llm'
import { FakeClock } from 'autothrottle/testing'

export type Style = 'openai' | 'anthropic' | 'azure' | 'mistral' | 'groq' | 'gemini'

export interface ModelServerOptions {
  style: Style
  rpm?: number
  rpd?: number
  tpm?: number
  itpm?: number
  otpm?: number
  seed?: number
  /** Of the day's bucket at the beginning. */
  dayLeft?: number
  /** The share of input that comes from the cache. */
  cached?: number
  /** Share of calls that are answered with 529, in bursts. */
  overloaded?: number
  /** Share of streams that end half-way, and of those that say an error after 200. */
  cut?: number
  errorEvents?: number
  /** Share of the tokens that another client of the same key takes. */
  other?: number
  /** Answers tell no usage, or no limits. */
  isMute?: boolean
  isHeaderless?: boolean
  /** Requests of a minute are counted by the second. */
  isBySecond?: boolean
  /** Refuses what is more than twice the minute before, from this many input tokens on. */
  accelerates?: number
  /** Tokens a second; the true median of answers. */
  speed?: [number, number]
  median?: number
}

type Kind = 'requests' | 'day' | 'tokens' | 'input' | 'output'

class Bucket {
  level: number
  used = 0
  borne: number
  limit: number
  readonly per: number
  readonly #clock: FakeClock
  #at: number

  constructor(clock: FakeClock, limit: number, per: number, level = limit) {
    this.#clock = clock
    this.limit = limit
    this.per = per
    this.level = level
    this.borne = level
    this.#at = clock.now()
  }

  refill(): number {
    const now = this.#clock.now()
    const more = ((now - this.#at) * this.limit) / this.per
    this.borne += more
    this.level = Math.min(this.limit, this.level + more)
    this.#at = now
    return this.level
  }

  take(cost: number): void {
    this.refill()
    this.level -= cost
    this.used += cost
  }

  /** The amount that another client takes is not there for ours. */
  steal(cost: number): void {
    this.refill()
    const taken = Math.min(cost, Math.max(0, this.level))
    this.level -= taken
    this.borne -= taken
  }

  get resetMs(): number {
    return ((this.limit - this.refill()) * this.per) / this.limit
  }

  waitFor(cost: number): number {
    return Math.max(0, ((cost - this.refill()) * this.per) / this.limit)
  }
}

/** No span of its length may hold more. */
class Sliding {
  readonly #taken: [number, number][] = []
  readonly #clock: FakeClock
  readonly limit: number
  readonly per: number
  used = 0

  constructor(clock: FakeClock, limit: number, per: number) {
    this.#clock = clock
    this.limit = limit
    this.per = per
  }

  room(): number {
    while (this.#taken[0] && this.#taken[0][0] <= this.#clock.now() - this.per) this.#taken.shift()
    return this.limit - this.#taken.reduce((sum, [, cost]) => sum + cost, 0)
  }

  take(cost: number): void {
    this.#taken.push([this.#clock.now(), cost])
    this.used += cost
  }
}

/** Numbers from 0 to 1, the same for a seed (mulberry32). */
export function dice(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export class ModelServer {
  served = 0
  refused = 0
  refusedBy: Record<string, number> = {}
  /** When calls were admitted. */
  readonly admitted: number[] = []
  readonly cancelled: string[] = []
  readonly #clock: FakeClock
  readonly #options: ModelServerOptions
  readonly #buckets = new Map<string, Partial<Record<Kind, Bucket>>>()
  readonly #sliding = new Map<string, [Sliding, Sliding]>()
  readonly #random: () => number
  readonly #since: number
  #burst = 0
  #minutes: number[] = []

  constructor(clock: FakeClock, options: ModelServerOptions) {
    this.#clock = clock
    this.#options = options
    this.#random = dice(options.seed ?? 1)
    this.#since = clock.now()
  }

  /** Share of what its tightest budget bears; per bucket, too. */
  figures(): { share: number; refusedShare: number; shares: Record<string, number>; gap: number } {
    const shares: Record<string, number> = {}
    for (const [key, buckets] of this.#buckets)
      for (const [kind, bucket] of Object.entries(buckets)) {
        bucket.refill()
        shares[`${key}#${kind}`] = bucket.used / bucket.borne
      }
    for (const [key, windows] of this.#sliding)
      for (const [index, each] of windows.entries()) {
        const spans = Math.ceil((this.#clock.now() - this.#since) / each.per)
        shares[`${key}#${index === 0 ? 'requests' : 'tokens'}`] = each.used / (spans * each.limit)
      }
    const gaps = this.admitted.map((at, index) => at - (this.admitted[index - 1] ?? at))
    return {
      share: Math.max(...Object.values(shares)),
      refusedShare: this.refused / Math.max(1, this.served + this.refused),
      shares,
      gap: Math.max(0, ...gaps),
    }
  }

  /** The limits change while it runs. */
  scale(by: number): void {
    for (const buckets of this.#buckets.values())
      for (const bucket of Object.values(buckets)) {
        bucket.refill()
        bucket.limit *= by
        bucket.level = Math.min(bucket.level, bucket.limit)
      }
  }

  readonly fetch = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    await this.#sleep(20 + this.#random() * 10)
    const url = new URL(String(input))
    const headers = new Headers(init.headers)
    const body = JSON.parse(String(init.body)) as Record<string, unknown>
    const key = `${headers.get('authorization') ?? ''} ${String(body.model)}`
    const answer = this.#options.style === 'azure' ? this.#azure(key, body) : this.#admit(key, body)
    if (answer instanceof Response) {
      // A refusal by its own dice is no client's doing: it stands in `refusedBy` alone.
      if (answer.status !== 529) this.refused++
      await this.#sleep(20)
      return answer
    }
    this.served++
    this.admitted.push(this.#clock.now())
    return this.#write(url, key, body, answer, init.signal ?? undefined)
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#clock.setTimeout(resolve, ms))
  }

  #of(key: string): Partial<Record<Kind, Bucket>> {
    const known = this.#buckets.get(key)
    if (known) return known
    const { rpm, rpd, tpm, itpm, otpm, dayLeft } = this.#options
    const minute = (limit: number) => new Bucket(this.#clock, limit, 60_000)
    // 60 a minute are one a second there.
    const second = (limit: number) => new Bucket(this.#clock, limit / 60, 1000)
    const made: Partial<Record<Kind, Bucket>> = {
      ...(rpm ? { requests: this.#options.isBySecond ? second(rpm) : minute(rpm) } : {}),
      ...(rpd ? { day: new Bucket(this.#clock, rpd, 86_400_000, dayLeft) } : {}),
      ...(tpm ? { tokens: minute(tpm) } : {}),
      ...(itpm ? { input: minute(itpm) } : {}),
      ...(otpm ? { output: minute(otpm) } : {}),
    }
    this.#buckets.set(key, made)
    return made
  }

  /** A refusal, or what it takes. */
  #admit(key: string, body: Record<string, unknown>): Response | { input: number; output: number } {
    const buckets = this.#of(key)
    const { style, other = 0, overloaded = 0 } = this.#options
    const characters = String((body.messages as { content: string }[])[0]!.content).length
    const input = Math.ceil((characters / 4) * (0.9 + 0.3 * this.#random()))
    const estimate = style === 'openai' ? characters / 4 : input * (0.95 + 0.1 * this.#random())
    const bound = Number(body.max_tokens ?? 0)
    const { median = 300 } = this.#options
    const normal = Math.sqrt(-2 * Math.log(1 - this.#random())) * Math.cos(2 * Math.PI * this.#random())
    const output = Math.max(1, Math.min(Math.ceil(median * Math.exp(normal)), bound || 4096))
    if (overloaded > 0) {
      if (this.#burst === 0 && this.#random() < overloaded / 3) this.#burst = 3
      if (this.#burst > 0) {
        this.#burst--
        return this.#refuse(529, 'overloaded', 0, key)
      }
    }
    if (other > 0 && this.#random() < other)
      for (const [kind, bucket] of Object.entries(buckets))
        bucket.steal(kind === 'requests' || kind === 'day' ? 1 : kind === 'output' ? output : estimate)
    const costs: Partial<Record<Kind, number>> = {
      requests: 1,
      day: 1,
      tokens: style === 'openai' ? Math.max(bound, estimate) : estimate,
      input: estimate,
      output: 1,
    }
    for (const [kind, bucket] of Object.entries(buckets) as [Kind, Bucket][]) {
      const cost = costs[kind]!
      if (bucket.waitFor(cost) <= 1e-6) continue
      // A cost above the whole limit is admitted where the whole bucket is there.
      if (cost > bucket.limit && style !== 'openai' && bucket.level >= bucket.limit - 1) continue
      if (style === 'openai') buckets.requests?.take(1)
      return this.#refuse(429, kind, bucket.waitFor(cost), key, cost > bucket.limit)
    }
    const { accelerates } = this.#options
    if (accelerates !== undefined) {
      const minute = Math.floor((this.#clock.now() - this.#since) / 60_000)
      const [before = 0, now = 0] = [this.#minutes[minute - 1], this.#minutes[minute]]
      if (now + input > Math.max(accelerates, 2 * before))
        return this.#refuse(429, 'acceleration', 60_000 - ((this.#clock.now() - this.#since) % 60_000), key)
      this.#minutes[minute] = now + input
    }
    buckets.requests?.take(1)
    buckets.day?.take(1)
    if (style === 'openai') buckets.tokens?.take(costs.tokens!)
    else buckets.tokens?.take(input)
    buckets.input?.take(this.#options.cached ? input * (1 - this.#options.cached) : input)
    return { input, output }
  }

  #azure(key: string, body: Record<string, unknown>): Response | { input: number; output: number } {
    const { rpm = 60, tpm = 60_000 } = this.#options
    const windows = this.#sliding.get(key) ?? [
      new Sliding(this.#clock, rpm / 6, 10_000),
      new Sliding(this.#clock, tpm, 60_000),
    ]
    this.#sliding.set(key, windows)
    const characters = String((body.messages as { content: string }[])[0]!.content).length
    const cost = characters / 4 + Number(body.max_tokens ?? 0)
    const [requests, tokens] = windows
    if (requests.room() < 1) return this.#refuse(429, 'requests', 1000, key)
    if (tokens.room() < cost) return this.#refuse(429, 'tokens', 1000, key)
    requests.take(1)
    tokens.take(cost)
    return { input: characters / 4, output: Math.ceil(50 + 200 * this.#random()) }
  }

  #headers(key: string): Record<string, string> {
    const { style, isHeaderless } = this.#options
    const headers: Record<string, string> = { date: new Date(this.#clock.wallNow()).toUTCString() }
    if (isHeaderless || style === 'azure' || style === 'gemini') return headers
    for (const [kind, bucket] of Object.entries(this.#of(key)) as [Kind, Bucket][]) {
      const left = Math.max(0, Math.floor(bucket.refill()))
      const name =
        kind === 'input' || kind === 'output' ? `${kind}-tokens` : kind === 'day' ? 'requests' : kind
      if (style === 'anthropic') {
        const isToken = name.endsWith('tokens')
        headers[`anthropic-ratelimit-${name}-limit`] = String((bucket.limit * 60_000) / bucket.per)
        headers[`anthropic-ratelimit-${name}-remaining`] = String(
          isToken ? Math.round(left / 1000) * 1000 : left,
        )
        const at = Math.ceil((this.#clock.wallNow() + bucket.resetMs) / 1000) * 1000
        headers[`anthropic-ratelimit-${name}-reset`] = new Date(at).toISOString().replace('.000', '')
      } else if (style === 'mistral') {
        headers[`x-ratelimit-limit-${kind === 'requests' ? 'req' : kind}-minute`] = String(bucket.limit)
        headers[`x-ratelimit-remaining-${kind === 'requests' ? 'req' : kind}-minute`] = String(left)
      } else {
        headers[`x-ratelimit-limit-${name}`] = String(bucket.limit)
        headers[`x-ratelimit-remaining-${name}`] = String(left)
        headers[`x-ratelimit-reset-${name}`] = goDuration(bucket.resetMs)
      }
    }
    return headers
  }

  #refuse(status: number, kind: string, wait: number, key: string, isTooLarge = false): Response {
    this.refusedBy[kind] = (this.refusedBy[kind] ?? 0) + 1
    const { style } = this.#options
    const headers = { ...this.#headers(key), 'content-type': 'application/json' } as Record<string, string>
    if (status === 429 && style !== 'gemini') headers['retry-after'] = String(Math.ceil(wait / 1000))
    if (status === 429 && (style === 'openai' || style === 'azure'))
      headers['retry-after-ms'] = String(Math.ceil(wait))
    const what = kind === 'input' || kind === 'output' ? `${kind} tokens per minute` : kind
    const message = isTooLarge
      ? `Request too large for this model on ${kind}`
      : kind === 'acceleration'
        ? this.#tooSteep()
        : `This request would exceed your rate limit of ${what}. Please try again in ${Math.ceil(wait)}ms.`
    const type = status === 529 ? 'overloaded_error' : 'rate_limit_error'
    const error =
      style === 'anthropic'
        ? { type: 'error', error: { type, message }, request_id: 'req_1' }
        : style === 'gemini'
          ? {
              error: {
                code: status,
                status: 'RESOURCE_EXHAUSTED',
                details: [{ retryDelay: `${Math.ceil(wait / 1000)}s` }],
              },
            }
          : { error: { message, type: kind, param: null, code: 'rate_limit_exceeded' } }
    return new Response(JSON.stringify(error), { status, headers })
  }

  /** Anthropic's words, as clients quote them: they tell this minute's limit and the next one's. */
  #tooSteep(): string {
    const minute = Math.floor((this.#clock.now() - this.#since) / 60_000)
    const [now, next] = [minute - 1, minute].map((at) =>
      Math.floor(Math.max(this.#options.accelerates ?? 0, 2 * (this.#minutes[at] ?? 0))).toLocaleString('en'),
    )
    return (
      "This request would exceed your organization's maximum usage increase rate for input tokens per minute. " +
      `Your current limit is ${now} input tokens per minute, and will increase to ${next} at the next minute ` +
      'boundary. Please scale up your input tokens usage more gradually to stay within the acceleration limit.'
    )
  }

  async #write(
    url: URL,
    key: string,
    body: Record<string, unknown>,
    { input, output }: { input: number; output: number },
    signal: AbortSignal | undefined,
  ): Promise<Response> {
    const { style, isMute, cut = 0, errorEvents = 0, cached = 0 } = this.#options
    const [slow, fast] = this.#options.speed ?? [20, 80]
    const speed = slow + (fast - slow) * this.#random()
    const buckets = this.#of(key)
    const charge = (tokens: number) => {
      if (style !== 'openai') buckets.output?.take(tokens)
      if (style === 'groq' || style === 'mistral') buckets.tokens?.take(tokens)
    }
    const isAnthropic = style === 'anthropic'
    const steps = Math.min(output, 12)
    const parts = Array.from(
      { length: steps },
      (_, index) => Math.round(((index + 1) * output) / steps) - Math.round((index * output) / steps),
    )
    const usage = isMute
      ? undefined
      : isAnthropic
        ? {
            input_tokens: Math.round(input * (1 - cached)),
            cache_read_input_tokens: Math.round(input * cached),
            output_tokens: output,
          }
        : { prompt_tokens: input, completion_tokens: output }
    const first = 200 + 300 * this.#random()
    if (!body.stream) {
      await this.#sleep(first)
      for (const part of parts) {
        await this.#sleep((part / speed) * 1000)
        charge(part)
      }
      await this.#sleep(20)
      const json = isAnthropic
        ? { type: 'message', content: [{ type: 'text', text: 'x'.repeat(output * 4) }], usage }
        : { choices: [{ message: { content: 'x'.repeat(output * 4) } }], usage }
      return new Response(JSON.stringify(json), {
        headers: { ...this.#headers(key), 'content-type': 'application/json' },
      })
    }
    await this.#sleep(20)
    const isCut = this.#random() < cut
    const isError = this.#random() < errorEvents
    const encoder = new TextEncoder()
    const says = (value: unknown) =>
      encoder.encode(
        isAnthropic
          ? `event: ${(value as { type: string }).type}\ndata: ${JSON.stringify(value)}\n\n`
          : `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`,
      )
    const events = async function* (this: ModelServer): AsyncGenerator<Uint8Array> {
      await this.#sleep(first)
      if (isAnthropic)
        yield says({ type: 'message_start', message: { usage: { ...usage, output_tokens: 1 } } })
      for (const [index, part] of parts.entries()) {
        await this.#sleep((part / speed) * 1000)
        if (signal?.aborted) return
        charge(part)
        if (isCut && index >= steps / 2) throw new TypeError('terminated')
        if (isError && index >= steps / 2) {
          yield says({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })
          return
        }
        const text = 'x'.repeat(part * 4)
        yield says(
          isAnthropic
            ? { type: 'content_block_delta', delta: { type: 'text_delta', text } }
            : { choices: [{ delta: { content: text } }] },
        )
      }
      if (isAnthropic) {
        yield says({ type: 'message_delta', delta: {}, usage: { output_tokens: output } })
        yield says({ type: 'message_stop' })
      } else {
        if (usage) yield says({ choices: [], usage })
        yield says('[DONE]')
      }
    }.call(this)
    const stream = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const { done, value } = await events.next()
          if (done) controller.close()
          else controller.enqueue(value)
        },
        cancel: () => {
          this.cancelled.push(url.href)
        },
      },
      { highWaterMark: 4 },
    )
    return new Response(stream, {
      headers: { ...this.#headers(key), 'content-type': 'text/event-stream' },
    })
  }
}

/** As Go writes it: `1m3.5s`. */
function goDuration(ms: number): string {
  const seconds = ms / 1000
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  const rest = `${Number((seconds % 60).toFixed(3))}s`
  return `${hours > 0 ? `${hours}h` : ''}${hours > 0 || minutes > 0 ? `${minutes}m` : ''}${rest}`
}

/** Calls of 100 to 20,000 tokens, by as many workers as are wanted. */
export interface Work {
  minutes?: number
  workers?: number
  /** `max_tokens` of each call, and the most input tokens. */
  max?: number
  most?: number
  /** The share of calls that is streamed. */
  stream?: number
  seed?: number
  /** Events at the beginning of a minute. */
  at?: Readonly<Record<number, (server: ModelServer) => void>>
}

type Send = (url: string, init: RequestInit) => Promise<Response>

/** The server's figures of a client that throttles with `llmFetch`. */
export function load(server: ModelServerOptions, options: LlmOptions, work: Work) {
  return drive(server, work, (clock, fetch) => {
    const { seed } = work
    const settings = { clock, maxInFlight: 256, fetch, warnings: false }
    const throttle = createThrottle(seed === undefined ? settings : { ...settings, seed })
    return llmFetch(throttle, { vendor: server.style, ...options })
  })
}

/** The server's figures of any client. */
export async function drive(
  server: ModelServerOptions,
  { minutes = 20, workers = 60, max = 1024, most = 20_000, stream = 0.5, seed = 7, at = {} }: Work,
  client: (clock: FakeClock, fetch: ModelServer['fetch']) => Send,
) {
  const clock = new FakeClock()
  const model = new ModelServer(clock, server)
  const send = client(clock, model.fetch)
  const random = dice(seed)
  const end = clock.now() + minutes * 60_000
  const failed: Record<string, number> = {}
  const worker = async () => {
    while (clock.now() < end) {
      const tokens = 100 * Math.exp(random() * Math.log(most / 100))
      const messages = [{ role: 'user', content: 'a'.repeat(tokens * 4) }]
      const body = JSON.stringify({ model: 'm-1', max_tokens: max, stream: random() < stream, messages })
      let what = ''
      try {
        const url = 'https://models.example/v1/chat/completions'
        const response = await send(url, { method: 'POST', body, headers: { authorization: 'Bearer k' } })
        if (response.status !== 200)
          what = `${response.status} ${response.headers.get('x-autothrottle-error')}`
        await response.text()
      } catch (error) {
        what = String(error)
      }
      if (what) failed[what] = (failed[what] ?? 0) + 1
    }
  }
  const all = Array.from({ length: workers }, worker)
  for (let minute = 0; minute < minutes; minute++) {
    at[minute]?.(model)
    await clock.advance(60_000)
  }
  const seen = { ...model.figures(), failed, served: model.served }
  // Calls under way end: an SDK keeps a real timer of ten minutes for each of its calls.
  let isOver = false
  void Promise.all(all).then(() => {
    isOver = true
  })
  for (let minute = 0; minute < 30 && !isOver; minute++) await clock.advance(60_000)
  return seen
}
