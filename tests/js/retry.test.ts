/** Retries go back into the throttle: against a fake clock and a scripted server. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, test } from 'node:test'
import {
  BodyNotReplayableError,
  type ConfigError,
  createThrottle,
  RetryAfterTooLongError,
  StalledError,
  type ThrottleOptions,
  TimeoutError,
} from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

const page = 'https://a.example/page'

/** Answers by URL: one script each; then 200. */
function make(
  script: Record<string, (number | Error | Record<string, string>)[]>,
  options: ThrottleOptions = {},
) {
  const clock = new FakeClock()
  const calls: { at: number; path: string; body: string | undefined }[] = []
  const fetch = async (input: RequestInfo | URL, init?: RequestInit) => {
    const request = new Request(input, {
      ...init,
      ...(init?.body instanceof ReadableStream ? { duplex: 'half' } : {}),
    } as RequestInit)
    const path = new URL(request.url).pathname
    calls.push({ at: clock.now(), path, body: request.body ? await request.text() : undefined })
    const answer = script[path]?.shift() ?? 200
    if (answer instanceof Error) throw answer
    if (typeof answer === 'number') return new Response(`status ${answer}`, { status: answer })
    return new Response('no', { status: 429, headers: answer })
  }
  const defaults = {
    delay: 100,
    slotDelay: 0,
    jitter: false,
    backoff: { jitter: false, minDelay: 100, factor: 2 },
  } as const
  const throttle = createThrottle({ clock, fetch, defaults, retry: { limit: 3 }, ...options })
  return {
    clock,
    calls,
    throttle,
    when: (path: string) => calls.filter((call) => call.path === path).map(({ at }) => at),
  }
}

const reset = () =>
  Object.assign(new TypeError('fetch failed'), { cause: Object.assign(new Error(), { code: 'ECONNRESET' }) })

test('an attempt that failed waits again, before those who came after it, and holds nothing meanwhile', async () => {
  const { clock, calls, throttle } = make({ '/1': [503], '/2': [reset()] })
  const all = Promise.all(['/1', '/2', '/3'].map((path) => throttle.fetch(`https://a.example${path}`)))
  await clock.advance(100)
  assert.deepEqual(throttle.stats().inFlight, 0)
  await clock.advance(5000)
  assert.deepEqual(
    (await all).map(({ status }) => status),
    [200, 200, 200],
  )
  assert.deepEqual(
    calls.map(({ path, at }) => [path, at]),
    [
      ['/1', 0],
      ['/1', 200],
      ['/2', 400],
      ['/2', 800],
      ['/3', 1200],
    ],
  )
  assert.equal(throttle.scope('a.example').stats.backoffStep, 2)
})

test('after the last attempt the answer is what the caller gets, body unread', async () => {
  const { clock, throttle, calls } = make({ '/page': [503, 503, 503, 503, 503] })
  const response = throttle.fetch(page)
  await clock.advance(60_000)
  assert.equal((await response).status, 503)
  assert.equal(await (await response).text(), 'status 503')
  assert.equal(calls.length, 4)
  const failing = make({ '/page': [reset(), reset(), reset(), reset()] })
  const failure = assert.rejects(failing.throttle.fetch(page), /fetch failed/)
  await failing.clock.advance(60_000)
  await failure
  assert.equal(failing.calls.length, 4)
})

test('never earlier than the server asked, also where the hold has a cap', async () => {
  const { clock, throttle, when } = make(
    { '/page': [{ 'retry-after': '20' }] },
    { defaults: { delay: 0, slotDelay: 0, jitter: false, backoff: { maxHold: 5000 } } },
  )
  const response = throttle.fetch(page)
  await clock.advance(10_000)
  const other = throttle.fetch('https://a.example/other')
  await clock.advance(60_000)
  await Promise.all([response, other])
  assert.deepEqual(when('/page'), [0, 21_000])
  assert.deepEqual(when('/other'), [10_000], 'the hold of the host ends at backoff.maxHold')
})

test('Retry-After beyond the cap fails with how long it is, waits, or is capped, as chosen', async () => {
  const tooLong = { 'retry-after': '3600' }
  const failing = make({ '/page': [tooLong] })
  const failure = assert.rejects(failing.throttle.fetch(page), (error: RetryAfterTooLongError) => {
    assert.ok(error instanceof RetryAfterTooLongError)
    assert.deepEqual(
      [error.code, error.retryAfterMs, error.response.status],
      ['ERR_RETRY_AFTER_TOO_LONG', 3_600_000, 429],
    )
    return true
  })
  await failing.clock.advance(10)
  await failure
  assert.equal(failing.throttle.stats().inFlight, 0)
  assert.equal(
    failing.throttle.scope('a.example').stats.holdUntil,
    3_601_000,
    'and the host is held all the same',
  )
  for (const [longRetryAfter, at] of [
    ['wait', 3_601_000],
    ['cap', 400_000],
  ] as const) {
    const { clock, throttle, when } = make(
      { '/page': [tooLong] },
      {
        retry: { limit: 1, longRetryAfter, maxRetryAfter: 400_000 },
        // Others of the host wait for as long as it asked: who caps the one caps the other.
        defaults: {
          delay: 100,
          jitter: false,
          backoff: { jitter: false, maxHold: longRetryAfter === 'cap' ? 400_000 : 86_400_000 },
        },
      },
    )
    const response = throttle.fetch(page)
    await clock.advance(4_000_000)
    assert.equal((await response).status, 200)
    assert.deepEqual(when('/page'), [0, at], longRetryAfter)
  }
})

test('idempotent methods only, unless told; 413 only with Retry-After; 404 never', async () => {
  const { clock, throttle, when } = make(
    { '/post': [503], '/told': [503], '/large': [413], '/soon': [413, 200], '/gone': [404] },
    { retry: { limit: 2 } },
  )
  const post = throttle.fetch('https://a.example/post', { method: 'POST', body: 'x' })
  const large = throttle.fetch('https://a.example/large', { method: 'PUT', body: 'x' })
  const gone = throttle.fetch('https://a.example/gone')
  await clock.advance(5000)
  assert.deepEqual(
    (await Promise.all([post, large, gone])).map(({ status }) => status),
    [503, 413, 404],
  )
  assert.deepEqual([when('/post').length, when('/large').length, when('/gone').length], [1, 1, 1])
  const told = make({ '/told': [503] }, { retry: { limit: 2, methods: ['post'] } })
  const response = told.throttle.fetch('https://a.example/told', { method: 'POST', body: 'again' })
  await told.clock.advance(5000)
  assert.equal((await response).status, 200)
  assert.deepEqual(
    told.calls.map(({ body }) => body),
    ['again', 'again'],
  )
})

test('a Request with a body is copied; a stream cannot be sent again and says so', async () => {
  const { clock, throttle, calls } = make({ '/page': [503, 503] })
  const response = throttle.fetch(new Request(page, { method: 'PUT', body: 'kept' }))
  await clock.advance(5000)
  assert.equal((await response).status, 200)
  assert.deepEqual(
    calls.map(({ body }) => body),
    ['kept', 'kept', 'kept'],
  )
  const stream = make({ '/page': [503] })
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('once'))
      controller.close()
    },
  })
  const failure = assert.rejects(stream.throttle.fetch(page, { method: 'PUT', body }), BodyNotReplayableError)
  await stream.clock.advance(5000)
  await failure
  assert.equal(stream.throttle.stats().inFlight, 0)
})

test('abort and the total timeout end the wait for another attempt', async () => {
  const { clock, throttle, calls } = make({ '/page': [{ 'retry-after': '60' }, { 'retry-after': '60' }] })
  const controller = new AbortController()
  const aborted = assert.rejects(throttle.fetch(page, { signal: controller.signal }), {
    name: 'Error',
    message: 'enough',
  })
  await clock.advance(1000)
  assert.equal(throttle.stats().waiting, 1)
  controller.abort(new Error('enough'))
  await aborted
  assert.deepEqual([throttle.stats().waiting, throttle.stats().inFlight], [0, 0])
  assert.equal(getEventListeners(controller.signal, 'abort').length, 0)
  const timely = make({ '/page': [{ 'retry-after': '60' }] })
  const timeout = assert.rejects(timely.throttle.fetch(page, { throttle: { maxWait: 5000 } }), TimeoutError)
  await timely.clock.advance(4999)
  assert.equal(timely.throttle.stats().waiting, 1)
  await timely.clock.advance(1)
  await timeout
  assert.equal(calls.length, 1)
  const late = make({ '/page': [{ 'retry-after': '3' }, { 'retry-after': '3' }] })
  await late.clock.advance(60_000)
  const total = assert.rejects(late.throttle.fetch(page, { throttle: { maxWait: 5000 } }), TimeoutError)
  await late.clock.advance(5000)
  await total
  assert.equal(late.calls.length, 2, 'the timeout counts from the call, whatever the clock says')
})

test('closing ends the wait for another attempt', async () => {
  const { clock, throttle } = make({ '/page': [{ 'retry-after': '60' }] })
  const closed = assert.rejects(throttle.fetch(page), { code: 'ERR_CLOSED' })
  await clock.advance(10)
  throttle.close()
  await closed
  assert.deepEqual([throttle.stats().waiting, throttle.stats().inFlight], [0, 0])
})

test('timeouts and connection errors are bad answers; an abort by the caller and a bug are not', async () => {
  const cases: [Error, number][] = [
    [reset(), 1],
    [Object.assign(new Error('too slow'), { name: 'TimeoutError' }), 1],
    [Object.assign(new TypeError('fetch failed'), { cause: { code: 'UND_ERR_HEADERS_TIMEOUT' } }), 1],
    [new TypeError('Failed to fetch'), 1],
    [Object.assign(new Error('aborted'), { name: 'AbortError' }), 0],
  ]
  for (const [error, steps] of cases) {
    const { clock, throttle } = make({ '/page': [error] })
    const { retry: _, ...options } = { retry: undefined }
    void options
    const rejected = throttle.fetch(page, { method: 'POST' }).catch((thrown: unknown) => thrown)
    await clock.advance(10)
    assert.equal(await rejected, error)
    assert.equal(throttle.scope('a.example').stats.backoffStep, steps, error.message)
  }
  const { clock, throttle } = make({})
  const bug = throttle.run(page, () => JSON.parse('{')).catch(() => 'a bug')
  await clock.advance(10)
  await bug
  assert.equal(throttle.scope('a.example').stats.backoffStep, 0)
  const network = throttle.run(page, () => Promise.reject(reset())).catch(() => 'the network')
  await clock.advance(1000)
  await network
  assert.equal(throttle.scope('a.example').stats.backoffStep, 1)
})

test('a verdict of the caller counts more than the status', async () => {
  const { clock, throttle } = make({})
  const first = throttle.acquire(page)
  await clock.advance(0)
  ;(await first).settle({ status: 200, backoff: true })
  assert.equal(throttle.scope('a.example').stats.backoffMs, 200)
  const second = throttle.acquire(page)
  await clock.advance(1000)
  ;(await second).settle({ status: 503, backoff: false })
  assert.equal(throttle.scope('a.example').stats.backoffMs, 200)
})

test('a host that only refuses has stalled: one event, and the caller decides', async () => {
  const script = Array.from({ length: 1000 }, () => 503)
  const { clock, throttle } = make({ '/page': script }, { retry: { limit: 1000 }, stallAfter: 60_000 })
  const stalls: number[] = []
  throttle.addEventListener('stall', (event) => {
    stalls.push(event.forMs)
    assert.equal(event.scope, 'a.example')
    if (stalls.length === 2) event.fail()
  })
  const all = Promise.allSettled([
    throttle.fetch(page),
    throttle.fetch(page),
    throttle.fetch('https://b.example/'),
  ])
  await clock.advance(2_000_000)
  assert.equal(stalls.length, 1)
  assert.ok(stalls[0]! >= 60_000)
  script.splice(0, script.length, 200, ...Array.from({ length: 1000 }, () => 503))
  await clock.advance(4_000_000)
  assert.equal(stalls.length, 2, 'again, after it had answered well')
  const [first, second, third] = await all
  const outcomes = [first, second].map(
    (each) => each?.status === 'rejected' && each.reason instanceof StalledError,
  )
  assert.deepEqual(outcomes.sort(), [false, true], 'one got its page in between')
  assert.equal(third?.status, 'fulfilled')
})

test('a 403 that refuses the pace is sent again, when its server says; any other is not', async () => {
  const clock = new FakeClock()
  const sent: [string, number][] = []
  const answers: Record<string, Record<string, string>> = {
    '/wait': { 'retry-after': '3' },
    '/spent': { 'x-ratelimit-remaining': '0' },
    '/github': { 'x-ratelimit-resource': 'search', 'x-ratelimit-remaining': '14' },
    '/forbidden': {},
  }
  const fetch = async (input: RequestInfo | URL) => {
    const { pathname } = new URL(input as string)
    sent.push([pathname, clock.now()])
    const headers = answers[pathname]
    delete answers[pathname]
    return new Response(null, headers ? { status: 403, headers } : {})
  }
  const throttle = createThrottle({
    clock,
    fetch,
    delay: 0,
    jitter: false,
    getScopes: (request) => new URL(request.url).pathname,
    retry: { limit: 2 },
    backoff: { jitter: false },
  })
  const all = Promise.all(Object.keys(answers).map((path) => throttle.fetch(`https://a.example${path}`)))
  await clock.advance(100_000)
  assert.deepEqual(
    (await all).map(({ status }) => status),
    [200, 200, 200, 403],
  )
  assert.deepEqual(sent.slice(4), [
    ['/spent', 1000],
    ['/wait', 4000],
    ['/github', 60_000],
  ])
})

describe('retry of run, wrap and map', () => {
  const page = 'https://a.example/'

  function make(statuses: number[], options: ThrottleOptions = {}) {
    const clock = new FakeClock()
    const at: number[] = []
    const send = async () => {
      at.push(clock.now())
      const status = statuses.shift() ?? 200
      return new Response('x', { status, headers: status === 429 ? { 'retry-after': '2' } : {} })
    }
    const throttle = createThrottle({ clock, fetch: send, rate: 10, backoff: { jitter: false }, ...options })
    const warned: string[] = []
    throttle.addEventListener('warning', ({ message }) => warned.push(message))
    return { clock, throttle, at, send, warned }
  }

  test('the function is called again, not before the server allows it, in its place by age', async () => {
    for (const how of ['result', 'error', 'permit.fetch', 'nested'] as const) {
      const { clock, throttle, at, send } = make([429, 503])
      const works = {
        result: send,
        error: async () => {
          const response = await send()
          if (!response.ok) throw Object.assign(new Error('refused'), { response })
          return response
        },
        'permit.fetch': ({ fetch }: { fetch: (url: string, init: RequestInit) => Promise<Response> }) =>
          fetch(page, { method: 'POST' }),
        nested: () => throttle.fetch(page),
      }
      const got = throttle.run(page, works[how], { retry: { limit: 2 } })
      await clock.advance(20_000)
      assert.equal((await got).status, 200, how)
      assert.equal(at.length, 3, how)
      assert(at[1]! >= 2000, how)
    }
  })

  test('wrap and map take it too; true is the retry of the throttle', async () => {
    const { clock, throttle, at, send, warned } = make([503, 503, 503], { retry: { limit: 1 } })
    const wrapped = throttle.wrap(send, page, { retry: true })()
    await clock.advance(20_000)
    assert.equal((await wrapped).status, 503)
    const mapped = throttle.map([page], send, { retry: { limit: 3 } }).next()
    await clock.advance(20_000)
    assert.equal(((await mapped).value as Response).status, 200)
    assert.equal(at.length, 4)
    assert.deepEqual(warned, [])
  })

  test('an own retry that makes no sense is refused', async () => {
    const { throttle } = make([])
    const wrong: [unknown, RegExp][] = [
      [true, /retry: want retry of the throttle, which true means, or \{ limit \}; got true/],
      [3, /retry: want true or \{ limit: 3 \}; got 3/],
      [{ limit: -1 }, /retry\.limit: want a whole number from 0; got -1/],
      [{ limit: 1, statusCodes: [500] }, /retry\.statusCodes/],
    ]
    for (const [retry, message] of wrong) {
      await assert.rejects(
        throttle.run(page, () => 1, { retry } as object),
        message,
      )
      assert.throws(() => throttle.map([], () => 1, { retry } as object), message)
    }
  })

  test('the retry of the throttle says where it would have had an effect', async () => {
    const { clock, throttle, at, send, warned } = make([503, 503], { retry: { limit: 5 } })
    const all = Promise.all([throttle.run(page, send), throttle.run(page, send)])
    await clock.advance(20_000)
    await all
    assert.equal(at.length, 2)
    assert.equal(warned.length, 1)
    assert.match(warned[0]!, /retry has no effect on functions of run, map or wrap: \{ retry: true \}/)
  })

  test('a cost for each scope; one number where they were to cost different ones is refused', async () => {
    const scopes = { rpm: { quota: 60 }, tpm: { quota: 10_000 } }
    const throttle = createThrottle({ clock: new FakeClock(), delay: 0, slotDelay: 0, scopes })
    const target = { scopes: { rpm: 1, tpm: 500 } }
    const left = () => [throttle.scope('rpm').stats.quotaLeft, throttle.scope('tpm').stats.quotaLeft]
    const first = await throttle.acquire(target)
    first.settle({ status: 200, cost: { tpm: 300 } })
    assert.deepEqual(left(), [59, 9700])

    throttle.scope('rpm').reset()
    throttle.scope('tpm').reset()
    const second = await throttle.acquire({ scopes: { rpm: 1, tpm: 500 } }, { priority: 1 })
    assert.throws(
      () => second.settle({ status: 200, cost: 300 }),
      ({ code, message }: ConfigError) =>
        code === 'ERR_CONFIG' && /cost: want a map, .*\{ "tpm": 300 \}; got 300/.test(message),
    )
    assert.equal(throttle.stats().inFlight, 0)
    const third = await throttle.acquire({ scopes: ['rpm', 'tpm'] })
    assert.throws(
      () => third.settle({ cost: { tpn: 1 } }),
      /cost\.tpn: want a scope of the request \(rpm, tpm\)/,
    )
    const fourth = await throttle.acquire({ scopes: ['rpm', 'tpm'] })
    fourth.settle({ status: 200, cost: 2 })
  })
})

test('an answer with x-should-retry: false is not sent again', async () => {
  const no = { 'retry-after': '1', 'x-should-retry': 'false' }
  const { clock, throttle, when } = make({ '/no': [no], '/yes': [{ 'retry-after': '1' }] })
  const both = Promise.all(['/no', '/yes'].map((path) => throttle.fetch(`https://a.example${path}`)))
  await clock.advance(10_000)
  assert.deepEqual(
    (await both).map(({ status }) => status),
    [429, 200],
  )
  assert.deepEqual([when('/no').length, when('/yes').length], [1, 2])
})
