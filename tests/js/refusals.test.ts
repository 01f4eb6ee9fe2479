/** Refusals that no status says: by the body, by what a function throws later, by a broken body. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ConfigError,
  createThrottle,
  type Permit,
  type Throttle,
  type ThrottleOptions,
  type WarningEvent,
} from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

const page = 'https://a.example/'

function make(options: ThrottleOptions = {}, answer: () => Response = () => new Response('x')) {
  const clock = new FakeClock()
  const sent: number[] = []
  const sleep = (ms: number) => new Promise<void>((resolve) => void clock.setTimeout(resolve, ms))
  const fetch = async () => {
    sent.push(clock.now())
    await sleep(10)
    return answer()
  }
  const throttle = createThrottle({ clock, fetch, jitter: false, delay: 0, ...options } as ThrottleOptions)
  const warned: WarningEvent['code'][] = []
  throttle.addEventListener('warning', ({ code }) => warned.push(code))
  return { clock, throttle, sent, sleep, warned }
}

/** Cost points as Shopify counts them: 200 in the bucket, 50 come back each second, a query costs 60. */
function points(clock: FakeClock) {
  let [left, at] = [200, 0]
  return () => {
    left = Math.min(200, left + ((clock.now() - at) * 50) / 1000)
    at = clock.now()
    const isThrottled = left < 60
    if (!isThrottled) left -= 60
    const errors = [{ message: 'Throttled', extensions: { code: 'THROTTLED' } }]
    return Response.json(isThrottled ? { errors } : { data: {} })
  }
}

interface Answer {
  data?: object
  errors?: { extensions: { code: string } }[]
}

test('GraphQL cost points: 45 of 45 queries come through, none lost', async () => {
  const clock = new FakeClock()
  const server = points(clock)
  const isThrottled = async (response: Response) =>
    ((await response.json()) as Answer).errors?.some((each) => each.extensions.code === 'THROTTLED') ?? false
  const throttle = createThrottle({
    clock,
    fetch: async () => server(),
    retry: { limit: 20, methods: ['POST'], when: isThrottled },
  })
  const query = async () =>
    (await (await throttle.fetch(page, { method: 'POST', body: '{}' })).json()) as Answer
  const all = Promise.all(Array.from({ length: 45 }, query))
  await clock.advance(3_600_000)
  assert.equal((await all).filter(({ data }) => data).length, 45)
})

test('an answer that getResponseBackoff calls bad is sent again, and a good one is not', async () => {
  let answers = 0
  const { clock, throttle, sent } = make({
    retry: { limit: 3 },
    getResponseBackoff: () => (++answers <= 2 ? ['a.example'] : []),
  })
  const answer = throttle.fetch(page)
  await clock.advance(600_000)
  assert.equal((await answer).status, 200)
  assert.equal(sent.length, 3)
})

test('the wait of an answer that you call a refusal is obeyed, whatever its status', async () => {
  const isRefused = (response: Response) => response.headers.has('retry-after')
  const ways: ThrottleOptions[] = [
    { retry: { limit: 3, when: isRefused } },
    {
      retry: { limit: 3 },
      getResponseBackoff: (response) => (isRefused(response) ? 'a.example' : undefined),
    },
  ]
  for (const options of ways)
    for (const status of [200, 202, 404, 429]) {
      const answers = [1, 2].map(() => new Response('', { status, headers: { 'retry-after': '30' } }))
      const { clock, throttle, sent } = make(
        { delay: 100, ...options },
        () => answers.pop() ?? new Response('ok'),
      )
      assert.equal((await clock.run(throttle.fetch(page))).status, 200)
      assert.equal(sent.length, 3)
      assert.ok(sent[1]! >= 30_000 && sent[2]! >= sent[1]! + 30_000, `${status}: ${sent}`)
    }
})

test('a `when` that throws is a ManagerError, and the slot comes back', async () => {
  const fail = () => {
    throw new Error('no')
  }
  const { clock, throttle } = make({ retry: { limit: 3, when: fail } })
  const answer = assert.rejects(throttle.fetch(page), { name: 'ManagerError', message: /retry\.when/ })
  await clock.advance(1000)
  await answer
  assert.equal(throttle.stats().inFlight, 0)
  // Neither does a function that was refused wait for another call.
  const call = throttle.run(page, () => ({ status: 503 }), { retry: true })
  await Promise.all([assert.rejects(call, { name: 'ManagerError' }), clock.advance(60_000)])
  const { sent, waiting, inFlight } = throttle.stats()
  assert.deepEqual({ sent, waiting, inFlight }, { sent: 2, waiting: 0, inFlight: 0 })
  const typed = { retry: { limit: 3, when: 'yes' } } as unknown as ThrottleOptions
  assert.throws(() => createThrottle(typed), { name: 'ConfigError', message: /retry\.when: want a function/ })
})

test('an error that a function throws after its permit’s fetch counts: the later word decides', async () => {
  const { clock, throttle } = make()
  const refused = throttle.run(page, async ({ fetch }) => {
    await fetch(page)
    throw Object.assign(new Error('refused'), { status: 429 })
  })
  const rejected = assert.rejects(refused, { message: 'refused' })
  await clock.advance(100)
  await rejected
  assert.equal(throttle.scope('a.example').stats.backoffStep, 1)
  assert.equal(throttle.stats().inFlight, 0)
})

test('with retry such a function is called again, also after a body that broke off', async () => {
  const errors = [
    Object.assign(new Error('refused'), { status: 429 }),
    new TypeError('terminated', { cause: { code: 'UND_ERR_SOCKET' } }),
  ]
  for (const error of errors)
    for (const how of ['permit', 'throttle'] as const) {
      const { clock, throttle, sent } = make()
      let calls = 0
      const work = async ({ fetch }: { fetch: typeof globalThis.fetch }) => {
        await (how === 'permit' ? fetch(page) : throttle.fetch(page))
        if (++calls < 3) throw error
        return calls
      }
      const done = throttle.run(page, work, { retry: { limit: 3 } })
      await clock.advance(600_000)
      assert.equal(await done, 3, `${error.message} ${how}`)
      assert.equal(sent.length, 3)
      assert.equal(throttle.stats().inFlight, 0)
    }
})

test('a function that sent requests and throws is called again as often as its retry says', async () => {
  type Send = (permit: Permit, throttle: Throttle) => Promise<unknown>
  const ways: Record<string, Send> = {
    none: async () => {},
    permit: ({ fetch }) => fetch(page),
    throttle: (_, throttle) => throttle.fetch(page),
    'permit, then throttle': async ({ fetch }, throttle) => [await fetch(page), await throttle.fetch(page)],
    'throttle, then permit': async ({ fetch }, throttle) => [
      await throttle.fetch(page),
      await fetch(page).catch(() => {}),
    ],
    'permit, then run': async ({ fetch }, throttle) => [
      await fetch(page),
      await throttle.run(page, ({ fetch }) => fetch(page)),
    ],
    'permit, then another host': async ({ fetch }, throttle) => [
      await fetch(page),
      await throttle.fetch('https://b.example/'),
    ],
  }
  for (const [name, send] of Object.entries(ways))
    for (const limit of [1, 2, 3])
      for (const status of [429, 503]) {
        const { clock, throttle } = make()
        let calls = 0
        const work = async (permit: Permit) => {
          calls++
          await send(permit, throttle)
          throw Object.assign(new Error('refused'), { status })
        }
        const rejected = assert.rejects(throttle.run(page, work, { retry: { limit } }), /refused/)
        await clock.advance(600_000)
        await rejected
        assert.deepEqual([calls, throttle.stats().inFlight], [limit + 1, 0], `${name}, ${limit}, ${status}`)
      }
})

test('a refusal of the permit’s own fetch counts once', async () => {
  const { clock, throttle } = make({}, () => new Response('', { status: 429 }))
  const run = throttle.run(page, async ({ fetch }) => {
    const { status } = await fetch(page)
    throw Object.assign(new Error('refused'), { status })
  })
  const rejected = assert.rejects(run)
  await clock.advance(1000)
  await rejected
  assert.equal(throttle.scope('a.example').stats.backoffStep, 1)
})

test('the hold of a refusal is no time of requestTimeout', async () => {
  let answers = 0
  const refuse = () =>
    ++answers === 1 ? new Response('', { status: 429, headers: { 'retry-after': '30' } }) : new Response('x')
  const { clock, throttle, sent, sleep } = make({ retry: { limit: 2 }, requestTimeout: 10_000 }, refuse)
  const text = throttle.run(page, async ({ fetch }) => (await fetch(page)).text())
  await clock.advance(60_000)
  assert.equal(await text, 'x')
  assert.ok(sent[1]! >= 30_000)
  answers = 0
  const slow = throttle.run(page, async ({ fetch }) => {
    await fetch(page)
    await sleep(11_000)
  })
  const rejected = assert.rejects(slow, { name: 'TimeoutError' })
  await clock.advance(120_000)
  await rejected
})

test('map keeps to maxWaiting', async () => {
  const { clock, throttle, sent } = make({ maxWaiting: 5, delay: 100, concurrency: 16 })
  const urls = Array.from({ length: 40 }, (_, index) => page + index)
  const texts: string[] = []
  const all = (async () => {
    for await (const text of throttle.map(urls, async (url, { fetch }) => (await fetch(url)).text()))
      texts.push(text)
  })()
  await clock.advance(60_000)
  await all
  assert.equal(texts.length, 40)
  assert.equal(sent.at(-1), 3900)
})

test('an outcome that makes no sense, or that throws, gives the slot back', async () => {
  const { throttle } = make({ concurrency: 1 })
  const costs = [Number.NaN, -1, '3', Number.POSITIVE_INFINITY, { other: 1 }, { 'a.example': -1 }]
  for (const cost of costs) {
    const permit = await throttle.acquire(page)
    assert.throws(() => permit.settle({ status: 200, cost: cost as number }), ConfigError, `${cost}`)
    assert.equal(throttle.stats().inFlight, 0)
  }
  const permit = await throttle.acquire(page)
  const hostile = {
    get status(): number {
      throw new TypeError('a getter')
    },
  }
  assert.throws(() => permit.settle(hostile), { message: 'a getter' })
  assert.equal(throttle.stats().inFlight, 0)
})

test('an abort by one’s own AbortSignal.timeout says no word about the server', async () => {
  const late = new AbortController()
  const clock = new FakeClock()
  const fetch = (_: unknown, init?: RequestInit) =>
    new Promise<Response>((_, reject) => {
      init?.signal?.addEventListener('abort', () => reject(init.signal!.reason))
    })
  const throttle = createThrottle({ clock, fetch: fetch as typeof globalThis.fetch, delay: 0 })
  const rejected = assert.rejects(throttle.fetch(page, { signal: late.signal }), { name: 'TimeoutError' })
  await clock.advance(10)
  late.abort(new DOMException('late', 'TimeoutError'))
  await clock.advance(10)
  await rejected
  assert.equal(throttle.scope('a.example').stats.backoffStep, 0)
})

test('FakeClock behaves as timers do', async () => {
  const clock = new FakeClock()
  const fired: string[] = []
  clock.setTimeout(() => clock.clearTimeout(second), 5)
  const second = clock.setTimeout(() => fired.push('second'), 5)
  clock.setTimeout(() => fired.push('not a number'), Number.NaN)
  clock.setTimeout(() => fired.push('too long'), Number.POSITIVE_INFINITY)
  clock.setTimeout(() => {
    throw new Error('its own')
  }, 7)
  clock.setTimeout(() => fired.push('third'), 7)
  await assert.rejects(clock.advance(10), { message: 'its own' })
  assert.deepEqual(fired, ['not a number', 'too long', 'third'])
  assert.equal(clock.now(), 10)
  assert.equal(clock.timers, 0)
})
