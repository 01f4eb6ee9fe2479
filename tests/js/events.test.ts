/** What a throttle tells, and that it is free without a listener. */
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
  throttle.addEventListener('settle', ({ status, at, latencyMs }) =>
    told.push(`settle ${status} ${at} ${latencyMs}`),
  )
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
    'settle 200 50 50',
    'send a.example 1000',
    'settle 429 1050 50',
    'backoff a.example 2000 1 12050',
    'delay a.example 2000 1 12050',
    'hold a.example 2000 1 12050',
    'send a.example 12050',
    'settle 200 12100 50',
    'send a.example 100000',
    'settle 200 100050 50',
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

test('nothing is printed that nobody asked for', async () => {
  const { clock, throttle } = make([], { autothrottle: true })
  const printing = mock.method(console, 'debug')
  const first = throttle.fetch(page)
  await clock.advance(100)
  await first
  printing.mock.restore()
  assert.equal(printing.mock.callCount(), 0)
})

test('queued, send and settle carry an id that joins them, what was asked for, and its URL', async () => {
  const { clock, throttle } = make([[503], [200], [200]], { retry: { limit: 1 } })
  const told: unknown[] = []
  for (const type of ['queued', 'send', 'settle'] as const)
    throttle.addEventListener(type, ({ id, target, url, scopes }) =>
      told.push([type, id, target, url, scopes]),
    )
  const request = new Request('https://b.example/x')
  const all = Promise.all([
    throttle.fetch(page),
    throttle.run({ scopes: ['c'] }, () => 1),
    throttle.fetch(request),
  ])
  await clock.advance(10_000)
  await all
  const ids = [...new Set(told.map((each) => (each as unknown[])[1]))]
  assert.equal(ids.length, 3)
  const of = (index: number) =>
    told.filter((each) => (each as unknown[])[1] === ids[index]).map((each) => (each as unknown[])[0])
  assert.deepEqual(of(0), ['queued', 'send', 'settle', 'queued', 'send', 'settle'], 'a retry keeps its id')
  assert.deepEqual(
    [of(1), of(2)],
    [
      ['queued', 'send', 'settle'],
      ['queued', 'send', 'settle'],
    ],
  )
  const first = (id: unknown) => (told.find((each) => (each as unknown[])[1] === id) as unknown[]).slice(2)
  assert.deepEqual(first(ids[0]), [page, page, ['a.example']])
  assert.deepEqual(first(ids[1]), [{ scopes: ['c'] }, undefined, ['c']])
  assert.deepEqual(first(ids[2]), [request, 'https://b.example/x', ['b.example']])
})

test('events are made only while somebody listens: once, signal and removal are counted', async () => {
  const { throttle } = make([], { defaults: { delay: 0, slotDelay: 0, jitter: false } })
  const made = mock.method(throttle as unknown as { tell(event: Event): void }, 'tell')
  const run = () => throttle.run({ scopes: ['x'] }, () => 1)
  const count = async () => {
    made.mock.resetCalls()
    await run()
    return made.mock.callCount()
  }
  const listener = () => {}
  const controller = new AbortController()
  assert.equal(await count(), 0)
  throttle.addEventListener('send', listener)
  throttle.addEventListener('send', listener)
  assert.equal(await count(), 1)
  throttle.removeEventListener('send', listener, true)
  assert.equal(await count(), 1, 'another phase is another listener')
  throttle.removeEventListener('send', listener)
  assert.equal(await count(), 0)
  throttle.addEventListener('settle', listener, { once: true })
  assert.deepEqual([await count(), await count()], [1, 0])
  throttle.addEventListener('settle', listener, { signal: controller.signal })
  throttle.addEventListener('settle', { handleEvent: listener } as never, { signal: controller.signal })
  assert.equal(await count(), 1)
  controller.abort()
  assert.equal(await count(), 0)
  throttle.addEventListener('settle', listener, { signal: controller.signal })
  throttle.addEventListener('settle', null)
  assert.equal(await count(), 0)
})

test('a wait that is cut is told with what the server asked for, and warned of', async () => {
  const { clock, throttle } = make([[429, { 'retry-after': '100000' }]])
  const told: unknown[] = []
  throttle.addEventListener('hold', ({ askedMs, holdUntil }) => told.push([askedMs, holdUntil]))
  throttle.addEventListener('warning', ({ code, scope, message }) => told.push([code, scope, message]))
  const first = throttle.fetch(page)
  await clock.advance(50)
  await first
  const message =
    'backoff.maxHold cuts a wait of a.example: the server asked for 100000 s, and 86400 s are kept'
  assert.deepEqual(told, [
    [100_000_000, 86_400_050],
    ['hold-cut', 'a.example', message],
  ])
})

test('a request that gives up its place is told as cancelled, with the reason', async () => {
  const clock = new FakeClock()
  const throttle = createThrottle({ clock, delay: 1000, jitter: false, fetch: async () => new Response() })
  const told: unknown[] = []
  for (const type of ['queued', 'send', 'cancel'] as const)
    throttle.addEventListener(type, (event) => {
      const { error } = event as { error?: { name: string } }
      told.push([event.type, event.url, event.at, error?.name])
    })
  const leave = new AbortController()
  const first = throttle.fetch('https://a.example/1')
  const second = throttle.fetch('https://a.example/2', { signal: leave.signal })
  const third = throttle.fetch('https://a.example/3', { throttle: { timeout: 500 } })
  const fourth = throttle.fetch('https://a.example/4')
  const all = Promise.allSettled([first, second, third, fourth])
  await clock.advance(100)
  leave.abort()
  await clock.advance(600)
  throttle.close()
  await all
  assert.deepEqual(told, [
    ['queued', 'https://a.example/1', 0, undefined],
    ['send', 'https://a.example/1', 0, undefined],
    ['queued', 'https://a.example/2', 0, undefined],
    ['queued', 'https://a.example/3', 0, undefined],
    ['queued', 'https://a.example/4', 0, undefined],
    ['cancel', 'https://a.example/2', 100, 'AbortError'],
    ['cancel', 'https://a.example/3', 500, 'TimeoutError'],
    ['cancel', 'https://a.example/4', 700, 'ClosedError'],
  ])
})
