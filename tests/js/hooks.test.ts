/** Results of hooks and managers, and their effect if they make no sense or throw. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  addScope,
  byDomainHierarchy,
  byEndpoint,
  byHost,
  byIp,
  ConfigError,
  createThrottle,
  ManagerError,
  type ScopeManager,
  type ThrottleOptions,
  updateScopeBackoff,
} from 'autothrottle'
import { byDomainHierarchy as byKnownHierarchy, byRegistrableDomain } from 'autothrottle/domains'
import { FakeClock } from 'autothrottle/testing'

const page = 'https://a.example/page'

function make(options: ThrottleOptions, answer: () => Response | Error = () => new Response('ok')) {
  const clock = new FakeClock()
  const fetch = async () => {
    const given = answer()
    if (given instanceof Error) throw given
    return given
  }
  const defaults = { delay: 0, slotDelay: 0, jitter: false } as const
  return { clock, throttle: createThrottle({ clock, fetch, defaults, ...options }) }
}

const both = { getScopes: () => ['a', 'b'] }
const reset = () =>
  Object.assign(new TypeError('fetch failed'), { cause: Object.assign(new Error(), { code: 'ECONNRESET' }) })

test('updateScopeBackoff and the forms of an answer', () => {
  assert.deepEqual(updateScopeBackoff(undefined, 'a', { cost: 3 }), { a: { cost: 3 } })
  assert.deepEqual(updateScopeBackoff('a', 'a', { delay: 5 }), { a: { delay: 5 } })
  assert.deepEqual(updateScopeBackoff(['a', 'b'], 'b', { backoff: false }), { a: {}, b: { backoff: false } })
  assert.deepEqual(updateScopeBackoff({ a: { cost: 1 } }, 'a', { delay: 5 }), { a: { cost: 1, delay: 5 } })
})

test('getResponseBackoff: the scopes that it names back off, to the others a refusal is no news', async () => {
  const refusal = () => new Response('', { status: 429, headers: { 'retry-after': '5' } })
  const { clock, throttle } = make({ ...both, getResponseBackoff: () => 'b' }, refusal)
  await throttle.fetch(page)
  const { a, b } = throttle.stats().scopes
  assert.deepEqual([a?.backoffStep, a?.holdUntil], [0, undefined])
  assert.deepEqual([b?.backoffStep, b?.holdUntil], [1, clock.now() + 6000])
})

test('getResponseBackoff: delay, quota, `backoff: false`, and nothing at all', async () => {
  let says: object | undefined = { a: { delay: 7000 }, b: { remaining: 2, resetMs: 9000 } }
  const { throttle } = make({ ...both, getResponseBackoff: () => says as never })
  await throttle.fetch(page)
  let { a, b } = throttle.stats().scopes
  assert.deepEqual([a?.backoffStep, a?.holdUntil, b?.backoffStep, b?.quotaLeft], [1, 7000, 0, 2])
  const other = make(
    { ...both, getResponseBackoff: () => says as never, backoff: {} },
    () => new Response('', { status: 503 }),
  )
  says = { a: { backoff: false } }
  await other.throttle.fetch(page)
  ;({ a, b } = other.throttle.stats().scopes)
  assert.deepEqual([a?.backoffStep, b?.backoffStep], [0, 0])
  says = undefined
  await other.throttle.fetch(page)
  ;({ a, b } = other.throttle.stats().scopes)
  assert.deepEqual([a?.backoffStep, b?.backoffStep], [1, 1], 'the status counts')
})

test('getErrorBackoff and getResponseDelay', async () => {
  const failing = make(
    { ...both, getErrorBackoff: (error) => (error instanceof TypeError ? ['a'] : undefined) },
    reset,
  )
  await assert.rejects(failing.throttle.fetch(page), /fetch failed/)
  const { a, b } = failing.throttle.stats().scopes
  assert.deepEqual([a?.backoffStep, b?.backoffStep], [1, 0])
  const late = make(
    { getResponseDelay: async (response) => Number(response.headers.get('x-wait')) || undefined },
    () => new Response('', { headers: { 'x-wait': '2500' } }),
  )
  await late.throttle.fetch(page)
  assert.equal(late.throttle.scope('a.example').stats.holdUntil, 2500)
})

test('a hook that throws or talks nonsense fails its request only, with the cause', async () => {
  const nonsense: [Partial<ThrottleOptions>, RegExp][] = [
    [
      {
        getResponseBackoff: () => {
          throw new Error('oops')
        },
      },
      /getResponseBackoff.*failed for a response/,
    ],
    [{ getResponseBackoff: () => 'c' }, /"c", which is no scope of the request \(a, b\)/],
    [{ getResponseBackoff: () => 7 as never }, /gave 7/],
    [{ getResponseBackoff: () => ({ a: { delay: -1 } }) }, /delay: -1/],
    [{ getResponseBackoff: () => ({ a: { dely: 1 } }) as never }, /dely/],
    [{ getResponseDelay: () => Number.NaN }, /getResponseDelay.*milliseconds/],
  ]
  for (const [options, message] of nonsense) {
    const { throttle } = make({ ...both, ...options })
    await assert.rejects(
      throttle.fetch(page),
      (error) => error instanceof ManagerError && message.test(error.message),
    )
    assert.equal(throttle.stats().inFlight, 0, String(message))
  }
  const { throttle } = make(
    {
      ...both,
      getErrorBackoff: () => {
        throw new Error('oops')
      },
    },
    reset,
  )
  await assert.rejects(
    throttle.fetch(page),
    (error: ManagerError) => error instanceof ManagerError && error.message.includes(page),
  )
  assert.equal(throttle.stats().inFlight, 0)
  const permit = await make(both).throttle.acquire(page)
  assert.throws(() => permit.settle({ status: 429, scopes: ['elsewhere'] }), ManagerError)
})

test('a hook that has nothing to say of the delay says nothing, in either word', async () => {
  for (const nothing of [undefined, null]) {
    const { throttle } = make({ getResponseDelay: () => nothing })
    assert.equal((await throttle.fetch(page)).status, 200)
    assert.equal(throttle.scope('a.example').stats.holdUntil, undefined)
  }
})

test('a signal beside a Request stands in its place, as in fetch', async () => {
  const { throttle, clock } = make({ defaults: { delay: 1000, slotDelay: 0, jitter: false } })
  await throttle.fetch(page)
  const [inside, beside] = [new AbortController(), new AbortController()]
  const request = new Request(page, { signal: inside.signal })
  const left = assert.rejects(throttle.fetch(request, { signal: beside.signal }), { message: 'beside' })
  const stays = throttle.fetch(request, { signal: null })
  beside.abort(new Error('beside'))
  await left
  inside.abort(new Error('inside'))
  await clock.advance(2000)
  assert.equal((await stays).status, 200, 'null is no signal at all')
})

test('a permit may say which scopes back off, too', async () => {
  const { throttle } = make(both)
  const permit = await throttle.acquire(page)
  permit.settle({ status: 429, scopes: { a: { delay: 3000 } } })
  const { a, b } = throttle.stats().scopes
  assert.deepEqual([a?.holdUntil, a?.backoffStep, b?.backoffStep], [3000, 1, 0])
})

test("a scope's manager hears what happens and says how fast; backoff and rampup have no say", async () => {
  const heard: string[] = []
  let status = 200
  const manager: ScopeManager & { delay: number; concurrency: number } = {
    delay: 10,
    concurrency: 2,
    onSend: ({ scope }) => heard.push(`send ${scope}`),
    onGood: ({ status, latency }) => heard.push(`good ${status} ${latency}`),
    onBad({ status, error }) {
      heard.push(`bad ${status ?? (error as Error).message}`)
      this.delay = 500
      this.concurrency = 1
    },
  }
  const options = { scopes: { 'a.example': { manager, backoff: { statusCodes: [418] } } } }
  const { clock, throttle } = make(options, () => (status ? new Response('', { status }) : reset()))
  await throttle.fetch(page)
  status = 429
  const second = throttle.fetch(page)
  await clock.advance(10)
  await second
  status = 418
  const third = throttle.fetch(page)
  await clock.advance(10)
  await third
  const stats = throttle.scope('a.example').stats
  assert.deepEqual([stats.delayMs, stats.slots, stats.backoffStep], [500, 1, 0])
  status = 0
  const fourth = throttle.fetch(page)
  fourth.catch(() => {})
  await clock.advance(499)
  assert.equal(throttle.stats().waiting, 1)
  await clock.advance(1)
  await assert.rejects(fourth)
  assert.deepEqual(heard, [
    'send a.example',
    'good 200 0',
    'send a.example',
    'good 429 0',
    'send a.example',
    'bad 418',
    'send a.example',
    'bad fetch failed',
  ])
})

test('a function makes a manager for each scope; objects that throw fail their request only', async () => {
  const made: string[] = []
  const manager = (scope: string) => {
    made.push(scope)
    if (scope === 'bad.example') throw new Error('not this one')
    return {
      delay: 0,
      onGood: () => {
        if (scope === 'worse.example') throw new Error('not good')
      },
    }
  }
  const { throttle } = make({ defaults: { delay: 0, slotDelay: 0, jitter: false, manager } })
  await throttle.fetch('https://a.example/')
  await throttle.fetch('https://a.example/')
  await throttle.fetch('https://b.example/')
  assert.deepEqual(made, ['a.example', 'b.example'])
  await assert.rejects(throttle.fetch('https://bad.example/'), ManagerError)
  await assert.rejects(
    throttle.fetch('https://worse.example/'),
    (error: Error) => (error.cause as Error).message === 'not good',
  )
  assert.deepEqual([throttle.stats().inFlight, throttle.stats().waiting], [0, 0])
  let sent = 0
  const again = make(
    {
      retry: { limit: 3 },
      scopes: {
        'a.example': {
          manager: {
            onBad: () => {
              throw new Error('not again')
            },
          },
        },
      },
    },
    () => new Response('', { status: 400 + 29 * Math.min(1, ++sent) }),
  )
  await assert.rejects(again.throttle.fetch(page), ManagerError)
  assert.deepEqual(
    [sent, again.throttle.stats().inFlight, again.throttle.stats().waiting],
    [1, 0, 0],
    'it is not tried again behind its back',
  )
  const nan = make({ scopes: { 'a.example': { manager: { delay: Number.NaN } } } })
  await assert.rejects(nan.throttle.fetch(page), /manager.*delay/)
})

test('managers and hooks that are none are a ConfigError with their paths', () => {
  const wrong = {
    getResponseBackoff: 7,
    getErrorBackoff: {},
    getResponseDelay: 'no',
    redirects: 'sometimes',
    redirectMaxDelay: -1,
    release: 'late',
    defaults: { manager: {} },
    scopes: { x: { manager: 7 }, y: { manager: { onBad: 1 } } },
  } as unknown as ThrottleOptions
  assert.throws(
    () => createThrottle(wrong),
    (error) => {
      assert.ok(error instanceof ConfigError)
      const want = [
        'getResponseBackoff',
        'getErrorBackoff',
        'getResponseDelay',
        'redirects',
        'redirectMaxDelay',
        'release',
        'defaults.manager',
        'scopes."x".manager',
        'scopes."y".manager.onBad',
      ]
      assert.deepEqual(
        error.problems.map(({ path }) => path),
        want,
      )
      return true
    },
  )
})

test('byIp: one look-up for a name, again after a minute; names that lead nowhere are their own', async () => {
  const asked: string[] = []
  const lookup = async (name: string) => {
    asked.push(name)
    if (name === 'nowhere.example') throw new Error('ENOTFOUND')
    return '192.0.2.7'
  }
  const ip = byIp({ lookup, maxNames: 2 })
  const all = await Promise.all(
    ['https://a.example/', 'https://a.example/x', 'https://b.example/'].map((url) => ip({ url })),
  )
  assert.deepEqual(all, ['192.0.2.7', '192.0.2.7', '192.0.2.7'])
  assert.equal(await ip({ url: 'https://nowhere.example/' }), 'nowhere.example')
  assert.equal(await ip({ url: 'http://[::1]:80/' }), '[::1]')
  assert.equal(await ip({ url: 'https://a.example/' }), '192.0.2.7')
  assert.deepEqual(
    asked,
    ['a.example', 'b.example', 'nowhere.example', 'a.example'],
    'the oldest name was forgotten',
  )
  assert.match(await byIp()({ url: 'http://localhost/' }), /^(?:127\.0\.0\.1|::1)$/)
})

/** Scopes by hooks and helpers: the draft's groupings, costs, and hooks that fail. */
describe('scopes by hooks and helpers', () => {
  function make(options: ThrottleOptions) {
    const clock = new FakeClock()
    const calls: [string, number][] = []
    const fetch = async (input: RequestInfo | URL) => {
      calls.push([String(input), clock.now()])
      return new Response('ok')
    }
    const defaults = { delay: 1000, slotDelay: 0, jitter: false } as const
    return { clock, calls, throttle: createThrottle({ clock, fetch, defaults, ...options }) }
  }

  test('the helpers', () => {
    const at = (url: string) => ({ url })
    assert.equal(byHost(at('https://Books.Example.com:443/x')), 'books.example.com')
    assert.equal(byEndpoint()(at('https://a.example/fast?x=1')), 'a.example/fast')
    assert.equal(byEndpoint('b.example')(at('https://a.example/fast')), 'a.example')
    const hierarchy = byDomainHierarchy()
    assert.deepEqual(hierarchy(at('https://a.books.toscrape.com/')), [
      'a.books.toscrape.com',
      'books.toscrape.com',
      'toscrape.com',
    ])
    assert.deepEqual(hierarchy(at('https://toscrape.com/')), ['toscrape.com'])
    assert.deepEqual(hierarchy(at('https://www.example.co.uk/')), ['www.example.co.uk', 'example.co.uk'])
    assert.deepEqual(hierarchy(at('http://127.0.0.1:8080/')), ['127.0.0.1:8080'])
    assert.deepEqual(hierarchy(at('http://[::1]:8080/')), ['[::1]:8080'])
    assert.deepEqual(hierarchy(at('http://localhost/')), ['localhost'])
    assert.equal(byRegistrableDomain(at('https://books.example.co.uk/')), 'example.co.uk')
    assert.equal(byRegistrableDomain(at('http://localhost:3000/')), 'localhost:3000')
    assert.deepEqual(byKnownHierarchy(at('https://x.y.example.co.uk/')), [
      'x.y.example.co.uk',
      'y.example.co.uk',
      'example.co.uk',
    ])
    assert.deepEqual(addScope('a', 'b'), ['a', 'b'])
    assert.deepEqual(addScope(['a', 'b'], 'b'), ['a', 'b'])
    assert.deepEqual(addScope(['a'], 'cost', 5), { a: 1, cost: 5 })
    assert.deepEqual(addScope({ a: 2 }, 'b'), { a: 2, b: 1 })
    // A function that makes a strategy is taken for the strategy.
    assert.throws(() => addScope(byEndpoint('a') as never, 'b'), /want names as text; got a function/)
  })

  test('a hook names the scopes, once per request, also for run and acquire, and a request may overrule it', async () => {
    const asked: string[] = []
    const { clock, calls, throttle } = make({
      getScopes: async (request) => {
        asked.push(`${request.method} ${request.url} ${request.headers.get('x-tier') ?? '-'}`)
        return addScope(byHost(request), 'all')
      },
      scopes: { all: { delay: 300 } },
    })
    const all = Promise.all([
      throttle.fetch('https://a.example/', { headers: { 'x-tier': 'gold' } }),
      throttle.fetch('https://b.example/', { method: 'post' }),
      throttle.run('https://c.example/', () => 0),
      throttle.fetch('https://d.example/', { throttle: { scopes: 'own' } }),
    ])
    await clock.advance(3000)
    await all
    assert.deepEqual(asked, [
      'GET https://a.example/ gold',
      'POST https://b.example/ -',
      'GET https://c.example/ -',
    ])
    assert.deepEqual(calls, [
      ['https://d.example/', 0],
      ['https://a.example/', 0],
      ['https://b.example/', 300],
    ])
    assert.throws(() => throttle.peek('https://a.example/'), TypeError)
    assert.equal(throttle.peek({ scopes: 'all' }).scope, undefined)
  })

  test('a hook that throws, or gives what makes no sense, fails its request only', async () => {
    const { clock, throttle } = make({
      getScopes: (request) => {
        if (request.url.includes('boom')) throw new RangeError('boom')
        if (request.url.includes('odd')) return { a: -1 }
        if (request.url.includes('none')) return [] as string[]
        return byHost(request)
      },
    })
    const boom = await throttle.fetch('https://boom.example/').catch((error: unknown) => error)
    assert.ok(boom instanceof ManagerError && boom.cause instanceof RangeError && boom.hook === 'getScopes')
    await assert.rejects(
      throttle.fetch('https://odd.example/'),
      /gave {"a":-1} for https:\/\/odd\.example\/; want a name/,
    )
    await assert.rejects(throttle.fetch('https://none.example/'), ManagerError)
    const fine = throttle.fetch('https://fine.example/')
    await clock.advance(10)
    assert.equal((await fine).status, 200)
  })
})
