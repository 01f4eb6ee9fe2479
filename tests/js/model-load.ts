/** Calls of 100 to 20,000 tokens for a server of language models, by as many workers as are wanted. */
import { createThrottle } from 'autothrottle'
import { type LlmOptions, llmFetch } from 'autothrottle/llm'
import { FakeClock } from 'autothrottle/testing'
import { dice, ModelServer, type ModelServerOptions } from './model-server.js'

export interface Work {
  minutes?: number
  workers?: number
  /** `max_tokens` of each call, and the most input tokens. */
  max?: number
  most?: number
  /** The share of calls that is streamed. */
  stream?: number
  seed?: number
  /** What happens at the beginning of a minute. */
  at?: Readonly<Record<number, (server: ModelServer) => void>>
}

type Send = (url: string, init: RequestInit) => Promise<Response>

/** What the server saw of a client that throttles with `llmFetch`. */
export function load(server: ModelServerOptions, options: LlmOptions, work: Work) {
  return drive(server, work, (clock, fetch) => {
    const { seed } = work
    const settings = { clock, concurrency: 256, fetch, warnings: false }
    const throttle = createThrottle(seed === undefined ? settings : { ...settings, seed })
    return llmFetch(throttle, { vendor: server.style, ...options })
  })
}

/** What the server saw of any client. */
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
  // What is under way ends: an SDK keeps a real timer of ten minutes for each of its calls.
  let isOver = false
  void Promise.all(all).then(() => {
    isOver = true
  })
  for (let minute = 0; minute < 30 && !isOver; minute++) await clock.advance(60_000)
  return seen
}
