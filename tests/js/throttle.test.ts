/** The public face against a fake clock: no test here sleeps. */

import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import {
  ClosedError,
  ConfigError,
  CostExceedsQuotaError,
  createThrottle,
  type Permit,
  QueueFullError,
  type ThrottleOptions,
  type TimeoutError,
  throttledFetch,
  type WarningEvent,
} from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

const page = 'https://a.example/page'
const plain = { delay: 1000, slotDelay: 0, jitter: false } as const

function make(options: ThrottleOptions = {}) {
  const clock = new FakeClock()
  const calls: { url: string; at: number }[] = []
  const fetch = async (input: RequestInfo | URL) => {
    calls.push({ url: input instanceof Request ? input.url : String(input), at: clock.now() })
    return new Response('body', { status: 200 })
  }
  const throttle = createThrottle({ clock, fetch, defaults: plain, ...options })
  return { clock, calls, throttle, times: () => calls.map(({ at }) => at) }
}

test('three fetches of one host are a delay apart, those of another host do not wait for them', async () => {
  const { clock, throttle, calls } = make()
  const urls = [page, page, 'https://b.example/', page]
  const done = Promise.all(urls.map((url) => throttle.fetch(url)))
  await clock.advance(5000)
  assert.deepEqual(
    (await done).map(({ status }) => status),
    [200, 200, 200, 200],
  )
  assert.deepEqual(
    calls.map(({ url, at }) => `${new URL(url).host} ${at}`),
    ['a.example 0', 'b.example 0', 'a.example 1000', 'a.example 2000'],
  )
  assert.equal(clock.timers, 0)
})

test('the scope is the host: lower case, ASCII, with a port that is not the scheme’s own', async () => {
  const { throttle } = make()
  for (const [url, scope] of [
    ['https://A.Example:443/x', 'a.example'],
    ['http://a.example:8080/', 'a.example:8080'],
    ['https://bücher.example/', 'xn--bcher-kva.example'],
    [new URL('https://user:pass@b.example/'), 'b.example'],
    [new Request('https://c.example/'), 'c.example'],
  ] as const) {
    const permit = await throttle.acquire(url)
    assert.deepEqual(permit.scopes, [scope])
    permit.settle()
  }
  for (const wrong of ['jobs', undefined as never])
    await assert.rejects(
      throttle.acquire(wrong),
      /^TypeError: want a URL, a Request or \{ scopes: 'name' \}; got/,
    )
})

test('abort while waiting rejects with the reason, frees the place at once and leaves no listener', async () => {
  const { clock, throttle, times } = make()
  const first = throttle.fetch(page)
  const controller = new AbortController()
  const reason = new Error('changed my mind')
  const aborted = throttle.fetch(page, { signal: controller.signal })
  const third = throttle.fetch(page)
  await clock.advance(500)
  assert.equal(throttle.stats().waiting, 2)
  controller.abort(reason)
  await assert.rejects(aborted, (error) => error === reason)
  assert.equal(throttle.stats().waiting, 1)
  assert.equal(getEventListeners(controller.signal, 'abort').length, 0)
  await clock.advance(500)
  await Promise.all([first, third])
  assert.deepEqual(times(), [0, 1000])
  await assert.rejects(throttle.acquire(page, { signal: controller.signal }), (error) => error === reason)
})

test('abort in flight frees the slot', async () => {
  const clock = new FakeClock()
  const fetch = (_: unknown, init?: RequestInit) =>
    new Promise<Response>((_, reject) =>
      init!.signal!.addEventListener('abort', () => reject(init!.signal!.reason)),
    )
  const throttle = createThrottle({ clock, fetch, defaults: plain })
  const controller = new AbortController()
  const flying = throttle.fetch(page, { signal: controller.signal })
  await clock.advance(10)
  assert.equal(throttle.stats().inFlight, 1)
  controller.abort()
  await assert.rejects(flying, { name: 'AbortError' })
  assert.equal(throttle.stats().inFlight, 0)
})

test('run settles with the status of what it returns and with what it throws', async () => {
  const { clock, throttle } = make({ defaults: { ...plain, delay: 0, autothrottle: { startDelay: 1000 } } })
  await throttle.run(page, async () => {
    clock.jump(200)
    return { status: 200 }
  })
  assert.equal(throttle.scope('a.example').stats.delayMs, 600)
  const failing = throttle.run(page, () => Promise.reject(new TypeError('connection lost')))
  failing.catch(() => {})
  await clock.advance(1000)
  await assert.rejects(failing, /connection lost/)
  assert.equal(throttle.stats().inFlight, 0)
  assert.equal(throttle.scope('a.example').stats.delayMs, 600)
})

test('adjustDelay: false keeps the delay', async () => {
  const { throttle } = make({ defaults: { ...plain, delay: 0, autothrottle: true } })
  await throttle.fetch(page, { throttle: { adjustDelay: false } })
  assert.equal(throttle.scope('a.example').stats.delayMs, 5000)
})

test('maxWaiting, costs and closing each have their own error', async () => {
  const { throttle } = make({ maxWaiting: 1, defaults: { ...plain, quota: 10 } })
  await assert.rejects(throttle.acquire(page, { cost: 11 }), CostExceedsQuotaError)
  await assert.rejects(throttle.acquire(page, { cost: Number.NaN }), TypeError)
  await assert.rejects(throttle.acquire(page, { priority: Number.POSITIVE_INFINITY }), TypeError)
  const permit = await throttle.acquire(page)
  const waiting = throttle.acquire(page)
  await assert.rejects(throttle.acquire(page), QueueFullError)
  throttle.close('enough')
  await assert.rejects(
    waiting,
    (error: ClosedError) => error instanceof ClosedError && error.cause === 'enough',
  )
  await assert.rejects(throttle.acquire(page), ClosedError)
  permit.settle({ status: 200 })
  await throttle.idle()
})

test('closing lets no request through that waited behind another', async () => {
  const { throttle } = make({ defaults: { ...plain, delay: 0, concurrency: 9, quota: 10 } })
  const first = await throttle.acquire(page, { cost: 6 })
  const waiting = [throttle.acquire(page, { cost: 9 }), throttle.acquire(page, { cost: 2 })]
  throttle.close()
  for (const result of await Promise.allSettled(waiting)) assert.equal(result.status, 'rejected')
  assert.equal(throttle.stats().inFlight, 1)
  first.settle()
  await throttle.idle()
})

test('pause, hold and configure are felt by what waits', async () => {
  const { clock, throttle, times } = make()
  const scope = throttle.scope('a.example')
  throttle.pause()
  const done = [1, 2, 3].map(() => throttle.fetch(page))
  await clock.advance(5000)
  assert.deepEqual(times(), [])
  assert.equal(throttle.peek(page).reason, 'paused')
  throttle.resume()
  await clock.advance(100)
  scope.hold(3000)
  assert.deepEqual(throttle.peek(page), { at: 8100, reason: 'hold', scope: 'a.example' })
  await clock.advance(3000)
  scope.configure({ delay: 200 })
  await clock.advance(200)
  await Promise.all(done)
  assert.deepEqual(times(), [5000, 8100, 8300])
  assert.throws(() => scope.configure({ delay: -1 }), ConfigError)
  assert.throws(() => scope.hold(Number.NaN), TypeError)
})

test('a listener may use the throttle while permissions are handed out', async () => {
  const { clock, throttle, times } = make({ warnThreshold: 1, defaults: { ...plain, delay: 20 } })
  throttle.addEventListener('warning', () => void throttle.fetch(page))
  const done = [throttle.fetch(page), throttle.fetch(page)]
  await clock.advance(100)
  await Promise.all(done)
  assert.deepEqual(times(), [0, 20, 40])
})

test('all problems of both layers are listed at once', () => {
  const options = { clock: {}, fetch: 1, unref: 'yes', concurency: 3, defaults: { delay: Number.NaN } }
  assert.throws(
    () => createThrottle(options as unknown as ThrottleOptions),
    (error: ConfigError) => {
      assert.ok(error instanceof ConfigError)
      assert.deepEqual(
        error.problems.map(({ path }) => path),
        ['clock', 'fetch', 'unref', 'defaults.delay', 'concurency'],
      )
      assert.match(error.message, /defaults\.delay: want milliseconds from 0 to a year; got NaN/)
      assert.match(error.message, /did you mean concurrency\?/)
      return true
    },
  )
  for (const wrong of [null, 7, [], 'x']) assert.throws(() => createThrottle(wrong as never), ConfigError)
})

test('a misspelt option of a single request is an error', async () => {
  const { throttle } = make()
  const wrong = { throttle: { scope: 'api', cost: 1 } } as never
  await assert.rejects(throttle.fetch(page, wrong), (error: ConfigError) => {
    assert.ok(error instanceof ConfigError)
    assert.match(error.message, /^throttle\.scope: want one of .*scopes.*; got "api"$/)
    return true
  })
  await assert.rejects(throttle.acquire(page, { prio: 1 } as never), /^ConfigError: prio: want one of /)
  await assert.rejects(
    throttle.run(page, () => 1, { prio: 1 } as never),
    ConfigError,
  )
  assert.equal(throttle.stats().waiting, 0)
})

test('throttledFetch has the signature of fetch', async () => {
  const { throttle, clock, times } = make()
  const fetch: typeof globalThis.fetch = throttledFetch(throttle)
  const done = [fetch(page), fetch(new URL(page), { method: 'POST' })]
  await clock.advance(1000)
  await Promise.all(done)
  assert.deepEqual(times(), [0, 1000])
  const own = throttledFetch({ clock, defaults: plain }, async () => new Response('own'))
  assert.equal(await (await own(page)).text(), 'own')
  assert.throws(() => throttledFetch(throttle, globalThis.fetch), TypeError)
})

test('a scope that looks like new is not forgotten while a request with it is put together', async () => {
  const { clock, throttle } = make()
  for (let round = 0; round < 20; round++) {
    const permit = await throttle.acquire({ scopes: ['known', `new-${round}`] })
    permit.settle({ status: 200 })
    await clock.advance(10_000)
    const other = await throttle.acquire({ scopes: ['other'] })
    other.settle({ status: 200 })
  }
  assert.equal(throttle.stats().settled, 40)
  assert.ok(Object.keys(throttle.stats().scopes).length <= 4, 'those seen once are forgotten')
})

test('priorities, several scopes and costs reach the engine', async () => {
  const { clock, throttle } = make({ scopes: { api: { ...plain, delay: 0, concurrency: 9, quota: 10 } } })
  const order: string[] = []
  const first = await throttle.acquire({ scopes: { api: 4, users: 1 } })
  assert.equal(throttle.scope('api').stats.quotaLeft, 6)
  first.settle({ status: 200, cost: { api: 1.5 } })
  assert.equal(throttle.scope('api').stats.quotaLeft, 8.5)
  const take = (name: string, priority: number) =>
    throttle.run({ scopes: ['users'] }, () => order.push(name), { priority })
  const done = [take('low', -1), take('high', 1), take('middle', 0)]
  await clock.advance(5000)
  await Promise.all(done)
  assert.deepEqual(order, ['high', 'middle', 'low'])
})

test('the same seed makes the same jitter, another one another', async () => {
  const timesOf = async (seed: number) => {
    const { clock, throttle, times } = make({ seed, defaults: { delay: 1000, slotDelay: 0 } })
    const done = Array.from({ length: 20 }, () => throttle.fetch(page))
    await clock.advance(60_000)
    await Promise.all(done)
    return times()
  }
  assert.deepEqual(await timesOf(1), await timesOf(1))
  assert.notDeepEqual(await timesOf(2), await timesOf(1))
})

test('a setting without effect is found out, once, and the figures say what binds', async () => {
  const clock = new FakeClock()
  const options = { defaults: { concurrency: 16, delay: 1000, slotDelay: 0, jitter: false } }
  const throttle = createThrottle({ clock, ...options })
  const warnings: WarningEvent[] = []
  throttle.addEventListener('warning', (event) => warnings.push(event))
  const request = () =>
    throttle.run('https://a.example/', async () => {
      await new Promise<void>((done) => clock.setTimeout(done, 250))
      return new Response()
    })
  await Promise.resolve()
  const message =
    'defaults.concurrency has no effect: 16 slots; with 1000 ms between sends they are all in use only while answers take longer than 15000 ms'
  const told = () => warnings.map(({ code, message, scope }) => ({ code, message, scope }))
  assert.deepEqual(told(), [{ code: 'no-effect', message, scope: undefined }], 'at construction')
  const all = Promise.all(Array.from({ length: 480 }, request))
  await clock.advance(400_000)
  assert.equal(warnings.length, 1, 'once')
  const { rate, concurrency, boundBy, withoutEffect } = throttle.scope('a.example').stats
  assert.deepEqual({ concurrency, boundBy }, { concurrency: 0.25, boundBy: { delay: 1 } })
  assert.equal(rate?.toFixed(3), '1.017') // the sends at both ends of the minute
  assert.match(withoutEffect ?? '', /^concurrency: 16 slots/)
  throttle.scope('a.example').configure({ concurrency: 1 })
  assert.equal(throttle.scope('a.example').stats.withoutEffect, undefined)
  await clock.advance(100_000)
  await all
})

test('a limit of yours that binds rampup is told once, by scope', async () => {
  const clock = new FakeClock()
  const throttle = createThrottle({ clock, rampup: true, scopes: { 'a.example': { concurrency: 4 } } })
  const told: { code: string; scope: string | undefined; message: string }[] = []
  throttle.addEventListener('warning', ({ code, scope, message }) => told.push({ code, scope, message }))
  let isOver = false
  const worker = async () => {
    while (!isOver) {
      await throttle.run(
        'https://a.example/',
        () => new Promise<{ status: number }>((done) => clock.setTimeout(() => done({ status: 200 }), 250)),
      )
    }
  }
  const all = Promise.all(Array.from({ length: 10 }, worker))
  await clock.advance(200_000)
  isOver = true
  await clock.advance(10_000)
  await all
  const message =
    'scopes."a.example".concurrency slows rampup down in a.example: requests waited for it 100 % of the last minute'
  assert.equal(told.length, 1)
  assert.deepEqual(
    { ...told[0]!, message: told[0]!.message.replace(/\d+ %/, '100 %') },
    {
      code: 'rampup-bound',
      scope: 'a.example',
      message,
    },
  )
})

test('peek makes no scope, and speaks the time of now()', () => {
  const { clock, throttle } = make({ scopes: { 'b.example': { quota: 5 } } })
  clock.jump(70)
  assert.deepEqual(throttle.peek(page), { at: 70, reason: undefined, scope: undefined })
  assert.deepEqual(throttle.peek({ scopes: ['b.example', 'never seen'] }).at, throttle.now())
  assert.deepEqual(throttle.stats().scopes, {})
})

test('scope names are strings, and any string is a name', async () => {
  const { throttle } = make({
    defaults: { ...plain, delay: 0 },
    scopes: JSON.parse('{"__proto__":{"quota":5}}'),
  })
  for (const scopes of [7, ['a', 5], null, [Symbol('x')]] as never[]) {
    await assert.rejects(throttle.acquire({ scopes }), /^TypeError: scopes: want names as text/)
    assert.throws(() => throttle.peek({ scopes }), TypeError)
  }
  assert.throws(() => throttle.scope(5 as never), TypeError)
  for (const name of ['__proto__', 'constructor', '', 'ä 💥', 'a\0b']) {
    const permit = await throttle.acquire({ scopes: { [name]: 1 } })
    permit.settle({ status: 429, scopes: JSON.parse(`{${JSON.stringify(name)}:{"delay":500}}`) })
    assert.equal(throttle.scope(name).stats.backoffStep, 1, name)
    assert.ok(Object.hasOwn(throttle.stats().scopes, name), name)
  }
  assert.equal(throttle.scope('__proto__').stats.quotaLeft, 4)
  assert.deepEqual([throttle.stats().waiting, throttle.stats().inFlight], [0, 0])
})

test('a cost above a quota names the scope and the setting', async () => {
  const { throttle } = make({ defaults: { ...plain, quota: 10 }, scopes: { api: { quota: 5 } } })
  const wrong = async (target: { scopes: Record<string, number> }) =>
    throttle.acquire(target).then(
      () => undefined,
      ({ code, scope, path }: CostExceedsQuotaError) => ({ code, scope, path }),
    )
  const code = 'ERR_COST_EXCEEDS_QUOTA'
  assert.deepEqual(await wrong({ scopes: { api: 6 } }), { code, scope: 'api', path: 'scopes.api.quota' })
  assert.deepEqual(await wrong({ scopes: { api: 1, x: 11 } }), { code, scope: 'x', path: 'defaults.quota' })
})

test('the host of a URL is what URL says it is without a dot at its end, however it is written', async () => {
  const parts = [
    ['http', 'https', 'HTTP', 'ftp'],
    ['://', ':/', ':'],
    ['', 'user@', 'u:p@'],
    [
      'a.example',
      'A.example',
      'a.example.',
      'xn--bcher-kva.example',
      'bücher.example',
      '1.2.3',
      '127.0.0.1',
      '0x7f.1',
      'a..b',
    ],
    ['', ':80', ':443', ':8080', ':'],
    ['', '/', '/x?y#z', '?x', '#x', '\\x', '/\n', ' '],
  ]
  const { throttle } = make({ defaults: { ...plain, delay: 0, concurrency: 10_000 }, maxInFlight: 10_000 })
  const all = parts.reduce<string[]>(
    (urls, part) => urls.flatMap((url) => part.map((each) => url + each)),
    [''],
  )
  // Not `URL.canParse`: once hot, it is wrong in Node 20.20 and 22.23.
  const hostOf = (url: string) => {
    try {
      return new URL(url).host.replace(/\.(?=:|$)/, '')
    } catch {
      return undefined
    }
  }
  let plainly = 0
  // Twice, for what was read of the last one is remembered.
  for (const url of all.flatMap((url) => [url, `${url}/again`, url])) {
    const expected = hostOf(url)
    const said = await throttle.acquire(url).then(
      (permit) => {
        permit.settle()
        return permit.scopes[0]
      },
      () => undefined,
    )
    assert.equal(said, expected, JSON.stringify(url))
    if (said === 'a.example') plainly++
  }
  assert.ok(plainly > 20)
})

test('a scope that is called by a URL is told its host', () => {
  const throttle = createThrottle()
  assert.throws(() => throttle.scope('https://a.example/x'), {
    message: 'scope: want the host alone, "a.example"; got "https://a.example/x"',
  })
  const url = 'http://u:p@b.example:81/?x'
  assert.throws(() => createThrottle({ hints: { [url]: {} }, scopes: { [url]: {} } }), {
    message: [
      `hints."${url}": want the host alone, "b.example:81"; got "${url}"`,
      `scopes."${url}": want the host alone, "b.example:81"; got "${url}"`,
    ].join('\n'),
  })
})

test('the code of each error is a literal type', () => {
  const told = (error: TimeoutError | ClosedError | ConfigError) => {
    switch (error.code) {
      case 'ERR_TIMEOUT':
        return error satisfies TimeoutError
      case 'ERR_CLOSED':
        return error satisfies ClosedError
      default:
        return error.problems[0]?.path
    }
  }
  const wrong = () => createThrottle({ defaults: { delay: -1 } })
  assert.throws(wrong, (error: ConfigError) => told(error) === 'defaults.delay')
})

// Many items through one throttle: order, errors, the end of it, and memory.

function throttleOf(
  defaults: ThrottleOptions['defaults'] = { delay: 100, slotDelay: 0, concurrency: 2, jitter: false },
) {
  const clock = new FakeClock()
  const throttle = createThrottle({ clock, maxInFlight: 1000, defaults })
  const after = <T>(ms: number, value: T) =>
    new Promise<T>((resolve) => void clock.setTimeout(() => resolve(value), ms))
  return { clock, throttle, after }
}

const target = () => ({ scopes: 'x' })

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

test('in the order of the items, or as they come', async () => {
  for (const [ordered, want] of [
    [true, [0, 1, 2, 3]],
    [false, [1, 0, 3, 2]],
  ] as const) {
    const { clock, throttle, after } = throttleOf()
    const work = (item: number) => after(item % 2 === 0 ? 150 : 10, item)
    const all = collect(throttle.map([0, 1, 2, 3], work, { target, ordered }))
    await clock.advance(2000)
    assert.deepEqual(await all, want)
  }
})

test('an endless async source is pulled as fast as it can be sent, and closed when the caller leaves', async () => {
  const { clock, throttle } = throttleOf()
  let [pulled, isClosed] = [0, false]
  async function* endless() {
    try {
      for (;;) yield `https://a.example/${pulled++}`
    } finally {
      isClosed = true
    }
  }
  const seen: string[] = []
  const loop = (async () => {
    for await (const url of throttle.map(endless(), (url) => url, { buffer: 10 })) {
      seen.push(url)
      if (seen.length === 5) break
    }
  })()
  await clock.advance(250)
  assert.equal(seen.length, 3)
  assert.ok(pulled <= 15, `${pulled} were pulled`)
  await clock.advance(1000)
  await loop
  assert.ok(isClosed)
  assert.deepEqual([throttle.stats().waiting, throttle.stats().inFlight], [0, 0], 'what waited has left')
})

test('an error ends it, is left out, or is told, as chosen', async () => {
  const work = async (item: number) => {
    if (item === 1) throw new RangeError('one')
    return item
  }
  const first = throttleOf()
  const thrown = assert.rejects(collect(first.throttle.map([0, 1, 2, 3], work, { target })), RangeError)
  await first.clock.advance(2000)
  await thrown
  assert.deepEqual([first.throttle.stats().waiting, first.throttle.stats().inFlight], [0, 0])
  const second = throttleOf()
  const left = collect(second.throttle.map([0, 1, 2], work, { target, errors: 'skip' }))
  await second.clock.advance(2000)
  assert.deepEqual(await left, [0, 2])
  const third = throttleOf()
  const told = collect(third.throttle.map([0, 1], work, { target, errors: 'settle' }))
  await third.clock.advance(2000)
  assert.deepEqual(
    (await told).map((result) => (result.status === 'fulfilled' ? result.value : result.reason.message)),
    [0, 'one'],
  )
  const fourth = throttleOf()
  function* broken() {
    yield 0
    throw new TypeError('the source')
  }
  const failed = assert.rejects(collect(fourth.throttle.map(broken(), work, { target })), /the source/)
  await fourth.clock.advance(2000)
  await failed
})

test('an abort ends it with the reason, and what is in flight hears of it', async () => {
  const { clock, throttle } = throttleOf()
  const controller = new AbortController()
  let heard: unknown
  const work = (_: number, { signal }: Permit) =>
    new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => {
        heard = signal.reason
        reject(signal.reason)
      })
    })
  const all = assert.rejects(
    collect(throttle.map([1, 2, 3], work, { target, signal: controller.signal })),
    /enough/,
  )
  await clock.advance(50)
  controller.abort(new Error('enough'))
  await all
  assert.match(String(heard), /enough/)
  assert.deepEqual([throttle.stats().waiting, throttle.stats().inFlight], [0, 0])
})

test('a hundred thousand items: memory stays flat', async () => {
  const { throttle } = throttleOf({ delay: 0, slotDelay: 0, concurrency: 50, jitter: false })
  const items = Number(process.env.ITEMS ?? 100_000)
  function* many() {
    for (let item = 0; item < items; item++) yield item
  }
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const used = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  let [sum, most] = [0, 0]
  const start = used()
  for await (const item of throttle.map(many(), async (item) => item, { target })) {
    sum += item
    if (item % 10_000 === 0) most = Math.max(most, used() - start)
  }
  assert.equal(sum, (items * (items - 1)) / 2)
  assert.ok(most < 5e6, `${(most / 1e6).toFixed(1)} MB`)
})
