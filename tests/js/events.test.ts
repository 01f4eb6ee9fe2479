/** What a throttle tells, and that it costs nothing when nobody listens. */
import assert from 'node:assert/strict'
import diagnostics from 'node:diagnostics_channel'
import { mock, test } from 'node:test'
import { createThrottle, type ScopeEvent, type ThrottleOptions } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

const page = 'https://a.example/'

function make(answers: [number, Record<string, string>?][], options: ThrottleOptions = {}) {
  const clock = new FakeClock()
  const fetch = async () => {
    const [status, headers] = answers.shift() ?? [200]
    await new Promise<void>((resolve) => void clock.setTimeout(resolve, 50))
    return new Response('x', { status, headers: headers ?? {} })
  }
  const defaults = { delay: 1000, slotDelay: 0, jitter: false, backoff: { jitter: false } } as const
  return { clock, throttle: createThrottle({ clock, fetch, defaults, ...options }) }
}

test('send, settle, backoff, delay, hold, recover', async () => {
  const { clock, throttle } = make([[200], [429, { 'retry-after': '10' }]])
  const told: string[] = []
  throttle.addEventListener('send', ({ scopes, at }) => told.push(`send ${scopes} ${at}`))
  throttle.addEventListener('settle', ({ status, latencyMs }) => told.push(`settle ${status} ${latencyMs}`))
  for (const type of ['backoff', 'recover', 'delay', 'hold'] as const) {
    const listener = ({ scope, delayMs, step, holdUntil }: ScopeEvent) =>
      told.push(`${type} ${scope} ${delayMs} ${step} ${holdUntil ?? '-'}`)
    throttle.addEventListener(type, listener)
  }
  const all = Promise.all([1, 2, 3].map(() => throttle.fetch(page)))
  await clock.advance(100_000)
  await all
  const last = throttle.fetch(page)
  await clock.advance(1000)
  await last
  assert.deepEqual(told, [
    'send a.example 0',
    'settle 200 50',
    'send a.example 1000',
    'settle 429 50',
    'backoff a.example 2000 1 12050',
    'delay a.example 2000 1 12050',
    'hold a.example 2000 1 12050',
    'send a.example 12050',
    'settle 200 50',
    'send a.example 100000',
    'settle 200 50',
    'recover a.example 1000 0 -',
    'delay a.example 1000 0 -',
  ])
})

test('the same on diagnostics_channel, without an event listener', async () => {
  const { clock, throttle } = make([])
  const seen: unknown[] = []
  const listener = (event: unknown) => seen.push(event)
  diagnostics.subscribe('autothrottle:send', listener)
  const first = throttle.fetch(page)
  await clock.advance(100)
  await first
  diagnostics.unsubscribe('autothrottle:send', listener)
  const second = throttle.fetch(page)
  await clock.advance(2000)
  await second
  assert.equal(seen.length, 1)
  assert.deepEqual((seen[0] as { scopes: string[] }).scopes, ['a.example'])
})

test("debug prints AutoThrottle's line for each response", async () => {
  const { clock, throttle } = make([], { debug: true, autothrottle: { startDelay: 3000 } })
  const lines: string[] = []
  const printing = mock.method(console, 'debug', (line: string) => void lines.push(line))
  const first = throttle.fetch(page)
  await clock.advance(100)
  await first
  printing.mock.restore()
  assert.deepEqual(lines, ['slot: a.example | conc: 0 | delay: 1525 ms (-1475) | latency:   50 ms'])
})
