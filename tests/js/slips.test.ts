/**
 * Arguments of callers that no host expects: getters that throw, nulls, look-alikes, texts where numbers
 * belong, sources that never answer. The work's own result comes through, and no slot is lost.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import {
  ClosedError,
  CostExceedsQuotaError,
  createThrottle,
  type Throttle,
  type ThrottleOptions,
  TimeoutError,
} from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'
import { serve } from './serve.js'
import { free, isAtRest, never, page, unpaced } from './unpaced.js'

const throws = () => {
  throw new Error('a getter throws')
}
const withGetter = (key: string) => Object.defineProperty({}, key, { get: throws })
const backedOff = (throttle: Throttle) => throttle.stats().scopes['a.example']?.backoffStep

test('a result with a getter that throws comes through, and its slot comes back', async () => {
  for (const result of ['status', 'statusCode', 'headers'].map(withGetter)) {
    const { throttle } = unpaced()
    assert.equal(await throttle.run(page, () => result), result)
    isAtRest(throttle)
  }
  const { throttle } = unpaced()
  const proxy = new Proxy({}, { get: (_, key) => (key === 'then' ? undefined : throws()) })
  assert.equal(await throttle.run(page, () => proxy), proxy)
  isAtRest(throttle)
})

test('an error with a getter that throws comes through, and its slot comes back', async () => {
  for (const key of ['status', 'statusCode', 'headers', 'name', 'message', 'code', 'cause', 'response']) {
    const { throttle } = unpaced()
    const error = Object.defineProperty(new Error('mine'), key, { get: throws })
    const same = (thrown: unknown) => thrown === error
    await assert.rejects(
      throttle.run(page, () => Promise.reject(error)),
      same,
      key,
    )
    isAtRest(throttle)
    const failing = unpaced({ retry: { limit: 1 } }, () => Promise.reject(error))
    const fetched = failing.throttle.fetch(page).catch((error) => error)
    await failing.clock.advance(60_000)
    assert.ok(same(await fetched), key)
    isAtRest(failing.throttle)
  }
})

test('headers that cannot be read leave the status heard, and a result of run as it is', async () => {
  const headers = new Proxy(new Headers({ 'retry-after': '5' }), {})
  for (const odd of [headers, { 'retry-after': {} }, { 'retry-after': null }, [['retry-after', null]]]) {
    const { throttle } = unpaced()
    const result = { status: 429, headers: odd }
    assert.equal(await throttle.run(page, () => result), result)
    assert.equal(backedOff(throttle), 1)
    isAtRest(throttle)
  }
})

test('a header that is null is left out', async () => {
  for (const headers of [{ 'retry-after': null }, { 'retry-after': undefined }, { 'retry-after': [null] }]) {
    const { throttle } = unpaced()
    const permit = await throttle.acquire(page)
    permit.settle({ status: 429, headers: headers as never })
    assert.equal(backedOff(throttle), 1)
    isAtRest(throttle)
  }
})

test('an object that only looks like a signal is refused before anything waits', async () => {
  const lookalikes = [{ throwIfAborted() {} }, { aborted: false }, 'signal', 5, true]
  for (const signal of lookalikes as unknown[] as AbortSignal[]) {
    const { throttle } = unpaced({ defaults: { ...free, concurrency: 1 } })
    const first = await throttle.acquire(page)
    for (const call of [
      () => throttle.acquire(page, { signal }),
      () => throttle.run(page, () => 1, { signal }),
      () => throttle.fetch(page, { signal }),
      () => throttle.map([page], () => 1, { signal }).next(),
    ])
      await assert.rejects(async () => call(), /signal: want an AbortSignal; got/)
    first.settle()
    isAtRest(throttle)
  }
})

test('a status above 599 comes through with release body', async () => {
  for (const status of [600, 999]) {
    const odd = new Response('odd')
    for (const [key, value] of Object.entries({ status, ok: false }))
      Object.defineProperty(odd, key, { value })
    const { throttle } = unpaced({ release: 'body' }, () => odd)
    const response = await throttle.fetch(page)
    assert.deepEqual([response.status, response.ok, response.clone().status], [status, false, status])
    assert.equal(throttle.stats().inFlight, 1)
    assert.equal(await response.text(), 'odd')
    isAtRest(throttle)
  }
})

test('map ends on an abort and on break while its source gives nothing', async () => {
  const { throttle, clock } = unpaced()
  let isReturned = false
  async function* source() {
    try {
      yield page
      await never()
    } finally {
      isReturned = true
    }
  }
  for await (const result of throttle.map(source(), () => 'first')) {
    assert.equal(result, 'first')
    await clock.advance(10)
    break
  }
  const controller = new AbortController()
  const results = throttle.map(source(), () => 'first', { signal: controller.signal })
  assert.equal((await results.next()).value, 'first')
  const next = results.next()
  await clock.advance(10)
  controller.abort(new Error('enough'))
  await assert.rejects(next, /enough/)
  isAtRest(throttle)
  assert.equal(isReturned, false, 'a source that sleeps hears of it when it wakes')
})

test('map waits for a source that can end at once', async () => {
  const { throttle } = unpaced()
  let isReturned = false
  async function* source() {
    try {
      for (;;) yield page
    } finally {
      await undefined
      isReturned = true
    }
  }
  for await (const _ of throttle.map(source(), () => 1, { buffer: 1 })) break
  assert.equal(isReturned, true)
})

test('idle waits for a request that only just knows its scopes', async () => {
  const robots = { userAgent: 'bot' }
  for (const options of [{ getScopes: async () => 'h' }, { robots }] as ThrottleOptions[]) {
    let isAnswered = false
    const clock = new FakeClock()
    const fetch = (async (url: string) => {
      if (String(url).endsWith('robots.txt')) return new Response('', { status: 404 })
      await new Promise((resolve) => clock.setTimeout(() => resolve(undefined), 50))
      isAnswered = true
      return new Response('ok')
    }) as typeof globalThis.fetch
    const throttle = createThrottle({ clock, fetch, defaults: free, ...options })
    const fetched = throttle.fetch(page)
    const idle = throttle.idle().then(() => assert.ok(isAnswered))
    await clock.advance(100)
    await Promise.all([idle, fetched])
  }
})

test('timeout and close reach requests that wait for their scopes or for robots.txt', async () => {
  const asks: [string, ThrottleOptions, (throttle: Throttle, options: object) => Promise<unknown>][] = [
    ['run, getScopes', { getScopes: never }, (throttle, options) => throttle.run(page, () => 1, options)],
    ['acquire, getScopes', { getScopes: never }, (throttle, options) => throttle.acquire(page, options)],
    [
      'fetch, getScopes',
      { getScopes: never },
      (throttle, options) => throttle.fetch(page, { throttle: options }),
    ],
    [
      'fetch, robots',
      { robots: { userAgent: 'bot' } },
      (throttle, options) => throttle.fetch(page, { throttle: options }),
    ],
  ]
  for (const [name, options, ask] of asks) {
    const clock = new FakeClock()
    const fetch = ((_: unknown, init?: RequestInit) =>
      new Promise((_, reject) =>
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)),
      )) as never
    const throttle = createThrottle({ clock, fetch, defaults: free, ...options })
    const timed = ask(throttle, { maxWait: 50 }).catch((error) => error)
    const closed = ask(throttle, {}).catch((error) => error)
    await clock.advance(49)
    assert.equal(await Promise.race([timed, 'waits']), 'waits', name)
    await clock.advance(1)
    assert.ok((await timed) instanceof TimeoutError, name)
    throttle.close()
    assert.ok((await closed) instanceof ClosedError, name)
    await throttle[Symbol.asyncDispose]()
    isAtRest(throttle)
  }
})

test('a timeout counts the wait for scopes and the one for permission together', async () => {
  const clock = new FakeClock()
  const slow = () => new Promise<string>((resolve) => clock.setTimeout(() => resolve('h'), 40))
  const throttle = createThrottle({ clock, defaults: { ...free, concurrency: 1 }, getScopes: slow })
  const first = throttle.acquire(page)
  await clock.advance(40)
  const second = throttle.acquire(page, { maxWait: 50 }).catch((error) => error)
  const sent = throttle.fetch(page, { throttle: { maxWait: 50 } }).catch((error) => error)
  await clock.advance(50)
  // The timeout that was typed is named, and not what was left of it.
  for (const error of [await second, await sent]) {
    assert.ok(error instanceof TimeoutError)
    assert.match(error.message, /waited 50 ms/)
  }
  ;(await first).settle()
})

test('texts, lists, flags and dates are refused where numbers belong, by name', async () => {
  const { throttle } = unpaced()
  const odd = ['5000', [5000], true, new Date(5000), Number.NaN, {}, null]
  for (const value of odd as number[]) {
    for (const key of ['maxWait', 'requestTimeout', 'delay', 'priority', 'cost']) {
      const want = new RegExp(`throttle\\.${key}: want `)
      await assert.rejects(throttle.fetch(page, { throttle: { [key]: value } }), want)
      await assert.rejects(
        throttle.run(page, () => 1, { [key]: value }),
        new RegExp(`^\\w+: ${key}: want `),
      )
      if (key !== 'requestTimeout')
        await assert.rejects(throttle.acquire(page, { [key]: value }), new RegExp(`^\\w+: ${key}: want `))
    }
    assert.throws(() => throttle.scope('a.example').hold(value), /hold: want milliseconds from 0; got/)
    assert.throws(() => throttle.peek(page, { cost: value }), /cost: want /)
  }
  const below = throttle.run(page, () => 1, { maxWait: -1 })
  await assert.rejects(below, { name: 'TypeError', message: 'maxWait: want milliseconds from 0; got -1' })
  for (const buffer of [0, 1.5, -1, '7'] as number[])
    assert.throws(() => throttle.map([], () => 1, { buffer }), /map\.buffer: want a whole number from 1/)
  isAtRest(throttle)
})

test('init.throttle: null is left out, and what is no object is refused', async () => {
  const { throttle } = unpaced()
  assert.equal((await throttle.fetch(page, { throttle: null as never })).status, 200)
  for (const odd of [5, 'priority', true, []])
    await assert.rejects(throttle.fetch(page, { throttle: odd as never }), /throttle: want an object; got/)
})

test('a clock that gives no time from 0 is refused', () => {
  for (const now of [-1, -1e15, Number.NaN, undefined, '5', 1e16]) {
    const clock = Object.assign(new FakeClock(), { now: () => now as number })
    assert.throws(() => createThrottle({ clock }), /clock\.now: want milliseconds from 0/)
  }
})

test('peek refuses a cost above the quota, also for a scope without requests so far', () => {
  const { throttle } = unpaced({ defaults: { ...free, quota: 5 }, scopes: { 'big.example': { quota: 9 } } })
  assert.throws(() => throttle.peek(page, { cost: 6 }), CostExceedsQuotaError)
  assert.equal(throttle.peek('https://big.example/', { cost: 6 }).at, 0)
  assert.throws(() => throttle.peek('https://big.example/', { cost: 10 }), CostExceedsQuotaError)
  assert.deepEqual(throttle.stats().scopes, {})
})

test('to look at a scope makes none', () => {
  const { throttle } = unpaced({ scopes: { 'b.example': { concurrency: 3 } } })
  assert.equal(throttle.scope('b.example').stats.slots, 3)
  for (let count = 0; count < 100; count++) assert.equal(throttle.scope(`${count}.example`).stats.waiting, 0)
  assert.deepEqual(throttle.stats().scopes, {})
})

test('a rate that is too low says what the lowest is', () => {
  assert.throws(() => createThrottle({ rate: 1e-9 }), /rate: want .*from 0\.000001/)
})

test('a lost permit beside a clock that broke gives its slot back and throws nothing', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (const broken of [throws, () => undefined]) {
    let isBroken = false
    const clock = new FakeClock()
    const now = () => (isBroken ? broken() : 0) as number
    const throttle = createThrottle({ clock: Object.assign(clock, { now }), defaults: free })
    const said: string[] = []
    throttle.addEventListener('warning', ({ message }) => said.push(message))
    await throttle.acquire(page)
    isBroken = true
    for (let turn = 0; turn < 50; turn++) {
      collect()
      await new Promise((resolve) => setImmediate(resolve))
    }
    isBroken = false
    isAtRest(throttle)
    assert.equal(said.length, 1)
    assert.equal(/settled \(its clock throws: /.test(said[0]!), broken === throws, said[0])
  }
})

test('refusals of one flight are one step, also where no time passes', async () => {
  const { throttle } = unpaced(
    { defaults: { ...free, concurrency: 8 } },
    () => new Response('', { status: 429 }),
  )
  await Promise.all(Array.from({ length: 8 }, () => throttle.fetch(page)))
  assert.equal(backedOff(throttle), 1)
})

// A caller's mistake is no evidence about a server: it fails at once, is sent once, and slows no host down.

test('a request that fetch refuses to send is no failed connection, and is not tried again', async () => {
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
      const throttle = createThrottle({
        clock,
        defaults: { ...free, backoff: {} },
        fetch: () => Promise.reject(failure),
      })
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

test('a URL without a host reaches no server, and waits for none', async () => {
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
    const throttle = createThrottle({ clock, fetch, maxInFlight: 1, ...options })
    for (const url of requests) assert.equal((await throttle.fetch(url)).status, 200)
    assert.deepEqual([sent, throttle.stats().sent], [requests, 0])
  }
  const throttle = createThrottle({ clock, fetch, defaults: free })
  sent.length = 0
  for (const url of ['localhost:3000/x', 'api.example:8080'])
    await assert.rejects(throttle.fetch(url), { name: 'TypeError', message: new RegExp(`got "${url}"`) })
  assert.deepEqual(sent, [], 'a host with its port and no scheme is told, and not sent')
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
      async () => throttle.peek(target),
    ])
      await assert.rejects(call, { name: 'TypeError', message: want })
    const map = () => throttle.map([target], () => 1).next()
    await assert.rejects(map, { name: 'TypeError', message: `${want} (map's option target names it)` })
  }
  assert.deepEqual(throttle.stats().scopes, {})
})
