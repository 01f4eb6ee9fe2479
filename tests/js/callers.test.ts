/**
 * What a caller typed is no evidence about a server: it fails at once, is sent once, and slows no host down.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createThrottle, type Throttle } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'
import { serve } from './serve.js'

const free = { delay: 0, slotDelay: 0, jitter: false } as const

test('what fetch refuses to send is no failed connection, and is not tried again', async () => {
  const page = 'http://a.example/'
  const refused: [string, RequestInit][] = [
    [page, { body: 'GET has none' }],
    [page, { headers: { 'no name': '1' } }],
    [page, { headers: { name: '€' } }],
    [page, { method: 'G ET' }],
    ['http://user:password@a.example/', {}],
    ['http://a.example:6000/', {}],
    ['ws://a.example/', {}],
  ]
  for (const [url, init] of refused) {
    const clock = new FakeClock()
    const methods = ['GET', 'G ET']
    const throttle = createThrottle({ clock, defaults: free, retry: { limit: 3, methods } })
    const failed = await throttle.fetch(url, init).then(
      () => undefined,
      (error) => error,
    )
    assert.ok(failed instanceof TypeError, url)
    const { scopes, waiting, inFlight } = throttle.stats()
    assert.deepEqual(
      { steps: Object.values(scopes).map(({ backoffStep }) => backoffStep), waiting, inFlight },
      { steps: [0], waiting: 0, inFlight: 0 },
      failed.message,
    )
  }
})

test('a failed connection is one still, whatever was typed', async () => {
  const failures = [
    new TypeError('fetch failed', { cause: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) }),
    new TypeError('Load failed'),
    new TypeError('A server with the specified hostname could not be found.'),
    new Error('bad port'),
  ]
  for (const failure of failures)
    for (const init of [{}, { method: 'PUT', body: 'text' }, { method: 'PUT', body: new Blob().stream() }]) {
      const clock = new FakeClock()
      const throttle = createThrottle({ clock, defaults: free, fetch: () => Promise.reject(failure) })
      await assert.rejects(throttle.fetch('http://a.example/', init), failure)
      assert.equal(throttle.stats().scopes['a.example']?.backoffStep, 1, failure.message)
    }
})

test('a redirect without end, or one that was not wanted, is asked for once', async () => {
  let asked = 0
  const url = await serve((_, response) => {
    asked++
    response.writeHead(302, { location: '/' }).end()
  })
  for (const [redirect, times] of [
    ['follow', 21],
    ['error', 1],
  ] as const) {
    asked = 0
    const throttle = createThrottle({ defaults: free, retry: { limit: 3 } })
    await assert.rejects(throttle.fetch(url, { redirect }), /fetch failed/)
    assert.equal(asked, times, redirect)
    assert.equal(Object.values(throttle.stats().scopes)[0]?.backoffStep, 0, redirect)
  }
})

test('the throttle may stand in the place of the global fetch', async () => {
  const real = globalThis.fetch
  const asked: string[] = []
  const web = async (input: RequestInfo | URL) => {
    asked.push(String(input))
    return new Response('ok')
  }
  const url = 'https://a.example/'
  try {
    for (const place of [
      (throttle: Throttle) => throttle.fetch,
      (throttle: Throttle) => (input: RequestInfo | URL, init?: RequestInit) => throttle.fetch(input, init),
      (throttle: Throttle) => async (input: RequestInfo | URL) => throttle.fetch(new URL(String(input))),
    ]) {
      globalThis.fetch = web
      const clock = new FakeClock()
      const throttle = createThrottle({ clock, delay: 100, slotDelay: 0, jitter: false })
      globalThis.fetch = place(throttle)
      const both = Promise.all([fetch(url), fetch(url)])
      await clock.advance(100)
      assert.deepEqual(
        (await both).map(({ status }) => status),
        [200, 200],
      )
      assert.equal(throttle.stats().sent, 2, 'each is throttled, and once')
    }
    globalThis.fetch = web
    // Another URL inside a fetch of one's own is a request of its own.
    const own: Throttle = createThrottle({
      clock: new FakeClock(),
      delay: 0,
      fetch: async (input) => {
        if (String(input) === url) await own.fetch('https://token.example/')
        return web(input as string)
      },
    })
    asked.length = 0
    assert.equal((await own.fetch(url)).status, 200)
    assert.deepEqual([asked, own.stats().sent], [['https://token.example/', url], 2])
  } finally {
    globalThis.fetch = real
  }
})

test('what reaches no server waits for none: a URL without a host', async () => {
  const sent: unknown[] = []
  const fetch = async (input: unknown) => {
    sent.push(input)
    return new Response('ok')
  }
  const urls = ['data:text/plain,hi', 'blob:https://a.example/1', 'about:blank', 'file:///etc/hostname']
  const requests = [...urls, new URL(urls[0]!), new Request(urls[0]!)]
  const clock = new FakeClock()
  for (const options of [
    {},
    { robots: { userAgent: 'bot' } },
    { getScopes: () => 'a' },
    { retry: { limit: 1 } },
  ]) {
    sent.length = 0
    const throttle = createThrottle({ clock, fetch, concurrency: 1, ...options })
    for (const url of requests) assert.equal((await throttle.fetch(url)).status, 200)
    assert.deepEqual([sent, throttle.stats().sent], [requests, 0])
  }
  const throttle = createThrottle({ clock, fetch, defaults: free })
  // Where its scope is typed, it counts.
  await throttle.fetch(urls[0]!, { throttle: { scopes: 'a' } })
  await throttle.run({ scopes: 'a' }, ({ fetch }) => fetch(urls[0]!)).catch(() => {})
  assert.deepEqual(Object.keys(throttle.stats().scopes), ['a'])
})

test('a target without a host is refused: it would be one scope of all of them', async () => {
  const throttle = createThrottle({ clock: new FakeClock(), defaults: free })
  for (const target of ['localhost:3000/items', 'job:resize', 'mailto:a@b.example', new URL('about:blank')]) {
    const want = `want a URL, a Request or { scopes: 'name' }; got ${
      typeof target === 'string' ? JSON.stringify(target) : 'an object (URL)'
    }, which has no host`
    for (const call of [
      () => throttle.acquire(target),
      () => throttle.run(target, () => 1),
      () => throttle.wrap(() => 1, target)(),
      () => throttle.map([target], () => 1).next(),
      async () => throttle.peek(target),
    ])
      await assert.rejects(call, { name: 'TypeError', message: want })
  }
  assert.deepEqual(throttle.stats().scopes, {})
})
