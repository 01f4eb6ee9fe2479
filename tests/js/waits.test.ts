/**
 * The waits that `autothrottle/opentelemetry` reports add up: the time of a call is its waits, by their
 * reasons, and the time at the server. In virtual time, over the server of language models and over one that
 * refuses.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Attributes, Meter } from '@opentelemetry/api'
import { createThrottle } from 'autothrottle'
import { llmFetch } from 'autothrottle/llm'
import { instrument } from 'autothrottle/opentelemetry'
import { FakeClock } from 'autothrottle/testing'
import { ModelServer } from './model-server.js'

type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/** A meter that adds up waits by reason, in milliseconds. */
function adder() {
  const waits: Record<string, number> = {}
  const record = (seconds: number, attributes: Attributes) => {
    const reason = String(attributes['autothrottle.reason'])
    waits[reason] = (waits[reason] ?? 0) + seconds * 1000
  }
  const rest = { add: () => {}, observe: () => {}, addCallback: () => {} }
  const meter = {
    createHistogram: () => ({ record }),
    createCounter: () => rest,
    createObservableGauge: () => rest,
    addBatchObservableCallback: () => {},
    removeBatchObservableCallback: () => {},
  } as unknown as Meter
  return { waits, meter }
}

/** Calls at once: how long they took, what of it was spent at the server, and the news of their waits. */
async function told(
  clock: FakeClock,
  server: Fetch,
  calls: number,
  client: (fetch: Fetch, meter: Meter) => (call: number) => Promise<Response>,
) {
  let away = 0
  const timed: Fetch = async (input, init) => {
    const sentAt = clock.now()
    try {
      return await server(input, init)
    } finally {
      away += clock.now() - sentAt
    }
  }
  const { waits, meter } = adder()
  const ask = client(timed, meter)
  let wall = 0
  let isOver = false
  const all = Array.from({ length: calls }, async (_, call) => {
    const since = clock.now()
    const response = await ask(call)
    const heardAt = clock.now()
    await response.text()
    away += clock.now() - heardAt
    wall += clock.now() - since
  })
  void Promise.all(all).then(() => {
    isOver = true
  })
  for (let minute = 0; minute < 120 && !isOver; minute++) await clock.advance(60_000)
  await Promise.all(all)
  const sum = Object.values(waits).reduce((sum, each) => sum + each, 0)
  return { wall, away, waits, sum, off: Math.abs(wall - away - sum) / wall }
}

test('calls of a model: waits by reason and time at the server are the time they took, within 1 %', async () => {
  for (const style of ['openai', 'anthropic'] as const) {
    const clock = new FakeClock()
    const model = new ModelServer(clock, { style, rpm: 60, tpm: 60_000, otpm: 20_000, overloaded: 0.1 })
    const seen = await told(clock, model.fetch, 300, (fetch, meter) => {
      const throttle = createThrottle({ clock, maxInFlight: 64, fetch, warnings: false })
      instrument(throttle, { meter, tracer: false })
      const llm = llmFetch(throttle, { vendor: style })
      return (call) => {
        const messages = [{ role: 'user', content: 'a'.repeat(400 + 97 * (call % 40)) }]
        const body = JSON.stringify({ model: 'm-1', max_tokens: 400, stream: call % 2 === 0, messages })
        const headers = { authorization: 'Bearer k' }
        return llm('https://models.example/v1/chat/completions', { method: 'POST', body, headers })
      }
    })
    assert.ok((model.refusedBy.overloaded ?? 0) > 0, 'some are sent again')
    assert.ok(seen.sum > seen.wall / 2 && seen.off <= 0.01, JSON.stringify(seen))
    assert.equal(seen.waits.unknown ?? 0, 0, JSON.stringify(seen.waits))
  }
})

test('a server that refuses: what is sent again waits, too', async () => {
  const clock = new FakeClock()
  let asked = 0
  const server = async () => {
    await new Promise<void>((done) => clock.setTimeout(done, 50))
    return ++asked % 5 === 0
      ? new Response(null, { status: 429, headers: { 'retry-after': '2' } })
      : new Response('')
  }
  const seen = await told(clock, server, 50, (fetch, meter) => {
    const throttle = createThrottle({ clock, fetch, delay: 200, retry: { limit: 5 }, warnings: false })
    instrument(throttle, { meter, tracer: false })
    return (call) => throttle.fetch(`https://a.example/${call}`)
  })
  assert.ok(seen.off <= 0.01, JSON.stringify(seen))
})
