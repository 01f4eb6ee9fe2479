/** Metrics and spans of a throttle, as the real SDK of OpenTelemetry exports them. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { createThrottle } from 'autothrottle'
import { instrument } from 'autothrottle/opentelemetry'
import { FakeClock } from 'autothrottle/testing'
import { skipUnless } from '../required.mjs'

const isHere = existsSync(new URL('node_modules/@opentelemetry/sdk-metrics', import.meta.url))
const skip = skipUnless(isHere, 'not installed: npm install --prefix tests/clients')

/** A throttle on a clock of its own, and the SDK's meter and tracer in memory. */
async function setUp(options) {
  const { MeterProvider, MetricReader } = await import('@opentelemetry/sdk-metrics')
  const sdk = await import('@opentelemetry/sdk-trace-base')
  const { AsyncLocalStorageContextManager } = await import('@opentelemetry/context-async-hooks')
  const { context } = await import('@opentelemetry/api')
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  class Reader extends MetricReader {
    async onForceFlush() {}
    async onShutdown() {}
  }
  const reader = new Reader()
  const spans = new sdk.InMemorySpanExporter()
  const provider = new sdk.BasicTracerProvider({ spanProcessors: [new sdk.SimpleSpanProcessor(spans)] })
  const meter = new MeterProvider({ readers: [reader] }).getMeter('test')
  const tracer = provider.getTracer('test')
  const clock = new FakeClock()
  const throttle = createThrottle({ clock, ...options })
  const stop = instrument(throttle, { meter, tracer, attributes: { fleet: 'blue' } })
  /** Each point of a metric: its attributes without the constant one, and its value. */
  const points = async (name) => {
    const { resourceMetrics } = await reader.collect()
    const metrics = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics)
    const points = metrics.find(({ descriptor }) => descriptor.name === name)?.dataPoints ?? []
    return points.map(({ attributes: { fleet, ...attributes }, value }) => {
      assert.equal(fleet, 'blue')
      return [attributes, value]
    })
  }
  return { clock, throttle, stop, spans, tracer, points }
}

test('waits by scope and reason add up to the time that passed', { skip }, async () => {
  const fetch = async () => new Response()
  const { clock, throttle, points } = await setUp({ fetch, delay: 1000, jitter: false })
  const all = [1, 2, 3, 4].map((page) => throttle.fetch(`https://a.example/${page}`))
  await clock.advance(3000)
  await Promise.all(all)
  const waited = await points('autothrottle.wait.duration')
  const byReason = waited.map(([attributes, { sum, count }]) => [attributes, sum, count])
  const [scope, reason] = ['autothrottle.scope', 'autothrottle.reason']
  assert.deepEqual(
    byReason.map(([attributes]) => attributes[scope]),
    byReason.map(() => 'a.example'),
  )
  assert.ok(
    byReason.every(([attributes]) => attributes[reason] !== 'unknown'),
    JSON.stringify(byReason),
  )
  assert.equal(
    byReason.reduce((sum, [, each]) => sum + each, 0),
    1 + 2 + 3,
  )
  assert.equal(
    byReason.reduce((sum, [, , count]) => sum + count, 0),
    3,
    'the first one did not wait',
  )
})

test('metrics have the ends of requests, those that wait, and the gap in force', { skip }, async () => {
  let status = 429
  const fetch = async () => new Response(null, { status })
  const { clock, throttle, stop, points } = await setUp({ fetch, delay: 500, jitter: false })
  await throttle.fetch('https://a.example/')
  status = 200
  const [second, third] = [throttle.fetch('https://a.example/'), throttle.fetch('https://a.example/')]
  const scope = { 'autothrottle.scope': 'a.example' }
  assert.deepEqual(await points('autothrottle.waiting'), [[scope, 2]])
  const [[, delay]] = await points('autothrottle.delay')
  assert.ok(delay > 0.5, `backoff: ${delay} s`)
  await clock.advance(60_000)
  await Promise.all([second, third])
  const ended = [
    [{ ...scope, 'http.response.status_code': 429 }, 1],
    [{ ...scope, 'http.response.status_code': 200 }, 2],
  ]
  assert.deepEqual(await points('autothrottle.requests'), ended)
  stop()
  const last = throttle.fetch('https://a.example/')
  await clock.advance(60_000)
  await last
  assert.deepEqual(await points('autothrottle.requests'), ended, 'it was told to end')
})

test('a span of the wait lies under the span of the caller', { skip }, async () => {
  const fetch = async () => new Response()
  const { clock, throttle, spans, tracer } = await setUp({ fetch, delay: 2000, jitter: false })
  const leave = new AbortController()
  const all = tracer.startActiveSpan('page', async (page) => {
    const first = throttle.fetch('https://a.example/1')
    const second = throttle.fetch('https://a.example/2')
    const third = throttle.fetch('https://a.example/3', { signal: leave.signal })
    await Promise.allSettled([first, second, third])
    page.end()
  })
  await clock.advance(2000)
  leave.abort()
  await clock.advance(10)
  await all
  const finished = spans.getFinishedSpans()
  const page = finished.find(({ name }) => name === 'page')
  const waits = finished.filter(({ name }) => name === 'throttle.wait')
  for (const { parentSpanContext } of waits) assert.equal(parentSpanContext.spanId, page.spanContext().spanId)
  assert.deepEqual(
    waits.map(({ status }) => status.code),
    [0, 2],
    'the third one gave up',
  )
})

test('an argument that is no throttle is a TypeError', { skip }, () => {
  assert.throws(() => instrument({}), { name: 'TypeError', message: /wants a throttle/ })
})
