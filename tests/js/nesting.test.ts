/** Calls inside functions of `run`, `map` and `wrap`, and the fetch of a permit. */
import assert from 'node:assert/strict'
import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import { mock, test } from 'node:test'
import { createThrottle, NestedError, type Permit, type Throttle, type ThrottleOptions } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

const page = 'https://a.example/'
const PLAIN = { delay: 0, slotDelay: 0, jitter: false }

/** A throttle whose requests take 10 ms, and when they were sent. */
function make(options: ThrottleOptions = {}, answer: () => Response = () => new Response('x')) {
  const clock = new FakeClock()
  const sent: [number, string][] = []
  const fetch = async (input: unknown) => {
    sent.push([clock.now(), new URL(String((input as Request).url ?? input)).host])
    await sleep(10)
    return answer()
  }
  const sleep = (ms: number) => new Promise<void>((resolve) => void clock.setTimeout(resolve, ms))
  const warned: string[] = []
  const pace = options.defaults ? {} : PLAIN
  const throttle = createThrottle({ clock, fetch, ...pace, ...options } as never)
  throttle.addEventListener('warning', ({ code }) => warned.push(code))
  return { clock, throttle, sent, sleep, warned }
}

const times = (sent: [number, string][]) => sent.map(([at]) => at)

test('throttle.fetch inside map, run and wrap ends; the first is the request of the permit', async () => {
  for (const how of ['at once', 'after an await'] as const) {
    const { clock, throttle, sent, sleep } = make({ maxInFlight: 1, delay: 100 })
    const work = async (url: string) => {
      if (how === 'after an await') await sleep(1)
      return (await throttle.fetch(url)).text()
    }
    const urls = [1, 2, 3].map((n) => `${page}${n}`)
    const texts: string[] = []
    const mapped = (async () => {
      for await (const text of throttle.map(urls, work)) texts.push(text)
    })()
    await clock.advance(1000)
    await mapped
    const all = Promise.all([throttle.run(page, () => work(page)), throttle.wrap(work)(page)])
    await clock.advance(1000)
    await all
    assert.deepEqual(texts, ['x', 'x', 'x'])
    // A gap is from send to send: who leaves a millisecond late puts off the next one.
    const expected = how === 'at once' ? [0, 100, 200, 1000, 1100] : [1, 102, 203, 1001, 1102]
    assert.deepEqual(times(sent), expected, how)
  }
})

test('each further call inside waits for the pace, before those that have not started', async () => {
  const { clock, throttle, sent } = make({ maxInFlight: 1, delay: 100 })
  const twice = async (url: string) => {
    await throttle.fetch(`${url}?1`)
    await throttle.fetch(`${url}?2`)
  }
  const all = Promise.all([1, 2].map((n) => throttle.run(page + n, () => twice(page + n))))
  await clock.advance(1000)
  await all
  assert.deepEqual(times(sent), [0, 100, 200, 300])
  const both = throttle.run(page, () => Promise.all([throttle.fetch(page), throttle.fetch(page)]))
  await clock.advance(1000)
  await both
  assert.deepEqual(times(sent).slice(4), [1000, 1100])
})

test('run, acquire and map nest as fetch does, three deep', async () => {
  const { clock, throttle, sent } = make({ maxInFlight: 1 })
  const deep = throttle.run(page, async () => {
    using permit = await throttle.run(page, () => throttle.acquire(page))
    const text = await (await permit.fetch(page)).text()
    const more: string[] = []
    for await (const each of throttle.map([page, page], async (url) => (await throttle.fetch(url)).text()))
      more.push(each)
    return [text, ...more]
  })
  await clock.advance(1000)
  assert.deepEqual(await deep, ['x', 'x', 'x'])
  assert.equal(sent.length, 3)
  assert.equal(throttle.stats().inFlight, 0)
})

test('functions of one scope that call another: none waits for ever, and it is told', async () => {
  const { clock, throttle, sent, warned } = make({ maxInFlight: 4, scopes: { jobs: { concurrency: 4 } } })
  const jobs = Array.from({ length: 20 }, (_, n) =>
    throttle.run({ scopes: 'jobs' }, async () => (await throttle.fetch(`https://b.example/${n}`)).status),
  )
  await clock.advance(5000)
  assert.deepEqual(await Promise.all(jobs), Array(20).fill(200))
  assert.equal(sent.length, 20)
  assert.deepEqual(warned, ['nested'])
})

test('two scopes that wait for each other end', async () => {
  const { clock, throttle } = make({
    scopes: { 'a.example': { concurrency: 1 }, 'b.example': { concurrency: 1 } },
  })
  const other = 'https://b.example/'
  const cross = Promise.all([
    throttle.run(page, async () => (await throttle.fetch(other)).status),
    throttle.run(other, async () => (await throttle.fetch(page)).status),
  ])
  await clock.advance(1000)
  assert.deepEqual(await cross, [200, 200])
})

test('a call outside of the function waits for its turn', async () => {
  const { clock, throttle, sent, sleep } = make({ maxInFlight: 1 })
  const slow = throttle.run(page, () => sleep(500))
  await clock.advance(1)
  const outside = throttle.fetch(page)
  await clock.advance(1000)
  await Promise.all([slow, outside])
  assert.deepEqual(times(sent), [500])
})

/** Calls `work` where no async context is known, and stacks end at the first `await`. */
async function blindly(work: () => Promise<void>): Promise<void> {
  const { prepareStackTrace } = Error
  Error.prepareStackTrace = () => 'fetch@https://a.example/app.js:1:1'
  // Node from 24 on knows by its async context.
  const knows = mock.method(process, 'getBuiltinModule', () => undefined)
  try {
    await work()
  } finally {
    knows.mock.restore()
    Error.prepareStackTrace = prepareStackTrace as never
  }
}

const isNested = (error: unknown) => {
  assert(error instanceof NestedError && error.code === 'ERR_NESTED')
  return /run, map or wrap call the fetch that they are given/.test(error.message)
}

test('where a runtime knows nothing, the call is rejected with what to type', () =>
  blindly(async () => {
    const { clock, throttle, sleep } = make({ maxInFlight: 1 })
    const blind = throttle.run(page, async () => {
      await sleep(1)
      await throttle.fetch(page)
    })
    const failed = assert.rejects(blind, isNested)
    await clock.advance(20_000)
    await failed
    assert.equal(throttle.stats().inFlight, 0)
  }))

test('a nested call leaves also where another request was in flight at first, and in a callback of a timer', async () => {
  await blindly(async () => {
    const { clock, throttle, sleep } = make({ maxInFlight: 2 })
    const other = throttle.acquire('https://b.example/')
    const blind = throttle.run(page, async () => {
      await sleep(1)
      await Promise.all([throttle.fetch(page), throttle.fetch(page)])
    })
    const failed = assert.rejects(blind, isNested)
    await clock.advance(25_000)
    assert.equal(throttle.stats().waiting, 2)
    ;(await other).settle()
    await clock.advance(25_000)
    assert.equal(throttle.stats().waiting, 0)
    await failed.catch(() => {})
  })
})

test('functions that are slow are no calls that wait for themselves', () =>
  blindly(async () => {
    const { clock, throttle, sleep, warned } = make({ maxInFlight: 1 })
    const jobs: Promise<unknown>[] = []
    // All are for one URL, as calls of an API are; each takes longer than it is waited for.
    for (let job = 0; job < 8; job++) {
      jobs.push(throttle.run(page, () => sleep(30_000)))
      await clock.advance(5000)
    }
    await clock.advance(300_000)
    assert.deepEqual(
      (await Promise.allSettled(jobs)).map(({ status }) => status),
      Array(8).fill('fulfilled'),
    )
    assert.deepEqual(warned, [])
  }))

test('where it can only be guessed, it is told after two minutes', () =>
  blindly(async () => {
    const { clock, throttle, sleep, warned } = make({ maxInFlight: 1 })
    const blind = throttle.run(page, async () => {
      await sleep(1)
      await throttle.fetch(`${page}another`)
    })
    await clock.advance(110_000)
    assert.deepEqual(warned, [])
    await clock.advance(20_000)
    assert.deepEqual(warned, ['nested'])
    throttle.close()
    await assert.rejects(blind, { code: 'ERR_CLOSED' })
    assert.equal(clock.timers, 0)
  }))

test('a hook that waits for the slot of its own request is rejected, with what to type', async () => {
  const fails = (throttle: Throttle) => throttle.fetch(`${page}status`).then(() => undefined)
  const refuse = () => Promise.reject(new TypeError('fetch failed'))
  const table: [string, (ask: () => Promise<undefined>) => ThrottleOptions, string][] = [
    ['getHints', (ask) => ({ getHints: ask }), 'at once'],
    ['getResponseDelay', (ask) => ({ getResponseDelay: ask }), 'after an await'],
    ['getResponseBackoff', (ask) => ({ getResponseBackoff: ask }), 'after an await'],
    ['getErrorBackoff', (ask) => ({ getErrorBackoff: ask, fetch: refuse as never }), 'at once'],
  ]
  for (const [hook, options, how] of table) {
    const own: { throttle?: Throttle } = {}
    const ask = async () => {
      if (how === 'after an await') await made.sleep(1)
      return await fails(own.throttle!)
    }
    const made = make({ maxInFlight: 1, ...options(ask) })
    own.throttle = made.throttle
    const failed = made.throttle.fetch(page).catch((error) => error)
    await made.clock.advance(100)
    const error = (await Promise.race([failed, undefined])) as { code?: string; cause?: unknown } | undefined
    assert.equal(error?.code, 'ERR_MANAGER', hook)
    assert(error.cause instanceof NestedError)
    assert.match(
      error.cause.message,
      /status waits for a slot that its own function holds: .* hooks and a fetch of yours another throttle/,
    )
    assert.deepEqual(made.warned, [])
    assert.equal(made.throttle.stats().inFlight, 0)
  }
})

test('a fetch of your own that waits for the slot of its own request is rejected, with what to type', async () => {
  for (const how of ['at once', 'after an await'] as const) {
    const own: { throttle?: Throttle } = {}
    const fetch = async (input: unknown) => {
      if (how === 'after an await') await made.sleep(1)
      if (input === page) await own.throttle!.fetch(`${page}token`)
      return new Response('x')
    }
    const made = make({ maxInFlight: 1, fetch: fetch as never })
    own.throttle = made.throttle
    // Without a storage that is free, a warning comes after two minutes.
    const isKnown = how === 'at once' || !('_enable' in AsyncLocalStorage.prototype)
    const failed = made.throttle.fetch(page).catch((error) => error)
    await made.clock.advance(isKnown ? 100 : 130_000)
    if (!isKnown) {
      assert.deepEqual(made.warned, ['unsettled'])
      continue
    }
    const error = await Promise.race([failed, undefined])
    assert(error instanceof NestedError, how)
    assert.match(error.message, /token waits for a slot that its own function holds/)
    assert.deepEqual(made.warned, [])
    assert.equal(made.throttle.stats().inFlight, 0)
    const next = made.throttle.fetch(`${page}2`)
    await made.clock.advance(100)
    assert.equal((await next).status, 200)
  }
  const own: { throttle?: Throttle } = {}
  const fetch = async (input: unknown) => {
    if (input === page) await own.throttle!.fetch('https://b.example/token')
    return new Response('x')
  }
  const made = make({ maxInFlight: 2, fetch: fetch as never })
  own.throttle = made.throttle
  assert.equal((await made.throttle.fetch(page)).status, 200)
})

test('a request that is being sent waits for no call that another one in its context starts', async () => {
  const ends: Promise<Response>[] = []
  let sent = 0
  // As where a socket's events have the context of the request that opened it.
  const fetch = async () => {
    if (++sent < 3) ends.push(throttle.fetch(`${page}${sent}`))
    await sleep(100)
    return new Response('x')
  }
  const { clock, throttle, sleep } = make({ concurrency: 2, delay: 0, fetch: fetch as never })
  ends.push(throttle.fetch(page))
  await clock.advance(1000)
  const statuses = await Promise.all(ends.map((end) => end.then(({ status }) => status, String)))
  assert.deepEqual(statuses, [200, 200, 200])
})

test('a hook that asks where slots are left is answered', async () => {
  const own: { throttle?: Throttle } = {}
  const getResponseDelay = async ({ headers }: Response) => {
    if (headers.get('x') === null) return undefined
    return (await own.throttle!.fetch('https://b.example/')).ok ? 700 : undefined
  }
  const answers = [new Response('x', { headers: { x: '1' } }), new Response('x')]
  const { clock, throttle, sent } = make({ maxInFlight: 2, getResponseDelay }, () => answers.shift()!)
  own.throttle = throttle
  const fetched = throttle.fetch(page)
  await clock.advance(100)
  assert.equal((await fetched).status, 200)
  assert.deepEqual(sent, [
    [0, 'a.example'],
    [10, 'b.example'],
  ])
  assert.equal(throttle.scope('a.example').stats.holdUntil, 720)
})

test('slots that do not come back for two minutes are told, once', async () => {
  const never = () => new Promise<never>(() => {})
  const table: [string, ThrottleOptions, (throttle: Throttle) => Promise<unknown>][] = [
    ['a permit that is never settled', {}, (throttle) => throttle.acquire(page)],
    ['a server that never answers', { fetch: never }, (throttle) => throttle.fetch(page)],
    ['a body that is never read', { release: 'body' }, (throttle) => throttle.fetch(page)],
  ]
  for (const [name, options, begin] of table) {
    const { clock, throttle } = make({ maxInFlight: 1, ...options })
    const said: string[] = []
    throttle.addEventListener('warning', ({ code, message }) => said.push(`${code}: ${message}`))
    const held = begin(throttle)
    held.catch(() => {})
    await clock.advance(50)
    for (let more = 0; more < 3; more++) throttle.acquire(page).catch(() => {})
    await clock.advance(110_000)
    assert.deepEqual(said, [], name)
    await clock.advance(300_000)
    assert.equal(said.length, 1, name)
    assert.match(said[0]!, /^unsettled: no slot of a\.example came back for 2 minutes, and 3 requests wait: /)
    throttle.close()
    assert.equal(clock.timers, 0, name)
    void held
  }
})

test('a call that waits for resume is not stuck', async () => {
  const { clock, throttle, warned, sleep } = make({ maxInFlight: 1 })
  const nested = throttle.run(page, async () => {
    await sleep(1)
    await throttle.fetch(`https://b.example/`)
  })
  throttle.pause()
  await clock.advance(60_000)
  assert.deepEqual([warned, throttle.stats().inFlight], [[], 1])
  throttle.resume()
  await clock.advance(1000)
  await nested
  // Now it waits for the slot.
  assert.deepEqual(warned, ['nested'])
})

test('the fetch of a permit sends its request, once, and is heard whatever is returned', async () => {
  const limited = () => new Response('busy', { status: 429, headers: { 'retry-after': '600' } })
  const { clock, throttle, sent } = make({ maxInFlight: 2 }, limited)
  const texts: Promise<string>[] = []
  for (let n = 0; n < 9; n++)
    texts.push(throttle.run(page + n, async ({ fetch }) => (await fetch(page)).text()))
  await clock.advance(60_000)
  assert.deepEqual(times(sent), [0])
  assert(throttle.scope('a.example').stats.holdUntil! > 60_000)
  throttle.close()
  await Promise.allSettled(texts)

  const next = make()
  const twice = next.throttle.run(page, async ({ fetch }) => {
    await fetch(page)
    await fetch(page)
  })
  const failed = assert.rejects(twice, /permit\.fetch: one permit is for one request/)
  await next.clock.advance(100)
  await failed
  const permit = await next.throttle.acquire(page)
  permit.settle()
  await assert.rejects(permit.fetch(page), TypeError)
})

test('a client that does not send by the throttle: its permit is used once it is settled', async () => {
  for (const isSettled of [false, true]) {
    const { clock, throttle, sent, sleep } = make({ maxInFlight: 2, delay: 100 })
    const done = throttle.run(page, async (permit) => {
      await sleep(10) // Its request leaves at 0, and its answer comes at 10.
      if (isSettled) permit.settle({ status: 200 })
      await throttle.fetch(page)
    })
    await clock.advance(1000)
    await done
    // Unsettled it is for the first call of the throttle, which leaves beside what was not seen.
    assert.deepEqual(times(sent), isSettled ? [100] : [10])
  }
})

test('the signal of a permit: of the caller, of the iteration, of requestTimeout', async () => {
  const { clock, throttle, sleep } = make({ defaults: { concurrency: 9, delay: 0, slotDelay: 0 } })
  const signals: AbortSignal[] = []
  const keep = async ({ signal }: Permit) => {
    signals.push(signal)
    await sleep(1000)
  }
  const late = assert.rejects(throttle.run(page, keep, { requestTimeout: 50 }), { code: 'ERR_TIMEOUT' })
  const { signal } = new AbortController()
  const others = [throttle.run(page, keep), throttle.run(page, keep, { signal })]
  for await (const _ of throttle.map([page], (_, permit) => void signals.push(permit.signal))) break
  await clock.advance(2000)
  await Promise.all([late, ...others])
  assert.deepEqual(signals.map(({ reason }) => reason?.name).sort(), [
    'AbortError',
    'TimeoutError',
    undefined,
    undefined,
  ])
  assert(signals.includes(signal))
})

test('with robots, the fetch of a permit asks first', async () => {
  const asked: string[] = []
  const fetch = async (input: unknown) => {
    asked.push(new URL(String(input)).pathname)
    return new Response('User-agent: *\nDisallow: /secret')
  }
  const throttle = createThrottle({
    fetch,
    delay: 0,
    slotDelay: 0,
    maxInFlight: 1,
    robots: { userAgent: 'bot' },
  })
  await throttle.run(page, async ({ fetch }) => (await fetch(`${page}one`)).text())
  await throttle.run(page, async () => (await throttle.fetch(`${page}two`)).text())
  assert.deepEqual(asked, ['/robots.txt', '/one', '/two'])
})

test('with robots, the first fetch of a permit hears the signal of its caller, too', async () => {
  const fetch = (input: unknown, init?: RequestInit) =>
    String(input).endsWith('.txt')
      ? Promise.resolve(new Response())
      : new Promise<never>((_, reject) =>
          init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)),
        )
  const throttle = createThrottle({ fetch: fetch as never, ...PLAIN, robots: { userAgent: 'bot' } })
  const controller = new AbortController()
  const options = { signal: controller.signal }
  const got = throttle.run(page, ({ fetch }) => fetch(page), options).catch((error) => error)
  while (throttle.stats().sent < 3) await new Promise((resolve) => setImmediate(resolve))
  controller.abort(new Error('enough'))
  assert.match(String(await got), /enough/)
})

test('no timer and no listener is left, and a line is printed where there is no listener', async () => {
  const printing = mock.method(console, 'warn', () => {})
  const throttle = createThrottle({
    maxInFlight: 1,
    fetch: async () => new Response(),
    delay: 0,
    slotDelay: 0,
  })
  await throttle.run({ scopes: 'jobs' }, () => throttle.fetch(page))
  printing.mock.restore()
  assert.match(String(printing.mock.calls[0]?.arguments[0]), /their slots are given back.*\(nested\)$/)
})

/**
 * Runs `work` as in Node from 24 on, where `AsyncLocalStorage` is no hook at every promise. It gets the count
 * of functions that were called with one.
 */
async function freely(work: (followed: () => number) => Promise<void>): Promise<void> {
  const known = process.getBuiltinModule
  let count = 0
  class Free {
    readonly #storage = new AsyncLocalStorage()
    run = (...args: unknown[]) => {
      count++
      return this.#storage.run(...(args as [unknown, () => unknown]))
    }
    getStore = () => this.#storage.getStore()
  }
  const get = (id: string) => (/async_hooks$/.test(id) ? { AsyncLocalStorage: Free } : known(id))
  mock.method(process, 'getBuiltinModule', get as typeof known)
  try {
    await work(() => count)
  } finally {
    mock.restoreAll()
  }
}

test('functions have a context of their own only once a call waits while one runs', () =>
  freely(async (followed) => {
    const { clock, throttle, sleep } = make({ maxInFlight: 2, concurrency: 2 })
    const slow = () => throttle.run(page, () => sleep(10))
    for (let n = 0; n < 40; n++) await throttle.run(page, async () => {})
    // They wait before one of them runs.
    const many = Promise.all(Array.from({ length: 5 }, slow))
    await clock.advance(100)
    await many
    const running = Promise.all([slow(), slow()])
    await clock.advance(1)
    assert.equal(followed(), 0)
    const late = slow()
    await clock.advance(100)
    await Promise.all([running, late])
    assert.equal(followed(), 1)
  }))

test('the first call of a function takes its permit where slots are left, too', () =>
  freely(async () => {
    const { clock, throttle, sent, sleep } = make({ maxInFlight: 9, concurrency: 9 })
    const work = async (isLate: boolean) => {
      if (isLate) await sleep(1)
      return (await throttle.fetch(page)).text()
    }
    for (const isLate of [true, false, true]) {
      const all = Promise.all([1, 2, 3].map(() => throttle.run(page, () => work(isLate))))
      await clock.advance(100)
      assert.deepEqual(await all, ['x', 'x', 'x'])
    }
    assert.deepEqual([sent.length, throttle.stats().sent], [9, 9])
  }))

test('a call by a timer is known to be inside once another call waited; the first is told what to type', () =>
  freely(async () => {
    const { clock, throttle } = make({ maxInFlight: 1 })
    const nested = () =>
      throttle.run(
        page,
        () =>
          new Promise<Response>((resolve, reject) => {
            // A timer of Node keeps its context.
            const call = AsyncResource.bind(() => void throttle.fetch(page).then(resolve, reject))
            clock.setTimeout(call, 1)
          }),
      )
    const first = assert.rejects(nested(), isNested)
    await clock.advance(20_000)
    await first
    const next = nested()
    await clock.advance(100)
    assert.equal((await next).status, 200)
  }))

test('a loop that outlives the function that began it is before others no longer', () =>
  freely(async () => {
    const { clock, throttle, sleep } = make({ concurrency: 1, delay: 100 })
    const order: string[] = []
    const send = async (name: string) => {
      await throttle.fetch(page)
      order.push(name)
    }
    let loop: Promise<unknown> | undefined
    const run = throttle.run(page, () => {
      loop = sleep(500).then(() => Promise.all(['loop 1', 'loop 2', 'loop 3'].map(send)))
    })
    await clock.advance(450)
    await run
    const others = Promise.all(['other 1', 'other 2', 'other 3'].map(send))
    await clock.advance(2000)
    await Promise.all([others, loop])
    assert.deepEqual(order.slice(0, 3), ['other 1', 'other 2', 'other 3'])
  }))

for (const delay of [0, 100])
  test(`a function that begins the next one before it ends keeps no permit but the last: delay ${delay}`, () =>
    freely(async () => {
      const { clock, throttle } = make({ concurrency: 2, delay })
      const permits: Permit[] = []
      const poll = async (permit: Permit): Promise<void> => {
        permits.push(permit)
        await permit.fetch(page)
        if (permits.length < 50) void throttle.run(page, poll)
      }
      void throttle.run(page, poll)
      await clock.advance(10_000)
      assert.equal(permits.length, 50)
      const kept = permits.map((permit) => {
        let count = 0
        for (let outer = permit.within; outer; outer = outer.within) count++
        return count
      })
      assert.ok(Math.max(...kept) >= 1, 'calls were not inside')
      assert.ok(Math.max(...kept) <= 2, `${Math.max(...kept)} permits are kept`)
    }))
