/**
 * Mistakes of people who type options: swapped letters, words of other libraries, a wrong place, a wrong
 * kind. Each is answered with what to type.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import {
  byEndpoint,
  ConfigError,
  createThrottle,
  type Throttle,
  type ThrottleOptions,
  throttledFetch,
} from 'autothrottle'
import { throttleAdapter } from 'autothrottle/axios'
import { throttleHooks } from 'autothrottle/crawlee'
import { throttleHandler } from 'autothrottle/got'
import { llmFetch, llmMiddleware } from 'autothrottle/llm'
import { local } from 'autothrottle/local'
import { presets } from 'autothrottle/presets'
import { redis } from 'autothrottle/redis'
import { rules } from 'autothrottle/robots'
import { FakeClock } from 'autothrottle/testing'
import { throttle as undiciThrottle } from 'autothrottle/undici'

const page = 'https://a.example/page'
const HOSTS: { names: [string, string | null][]; unmet: [typed: string, sent: string, isTold: boolean][] } =
  JSON.parse(readFileSync(new URL('../vectors/hosts.json', import.meta.url), 'utf8'))

/** The one message that options give. */
function message(options: object): string {
  try {
    createThrottle(options)
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.message
  }
  return assert.fail('taken')
}

function make(options: ThrottleOptions = {}) {
  const fetch = (async () => new Response('ok')) as typeof globalThis.fetch
  return createThrottle({ clock: new FakeClock(), fetch, ...options })
}

test('an error in a list names its place, and the value there', () => {
  const want = 'want a status from 400 to 599; got'
  const retry = { limit: 1, statusCodes: [503, 202, '504'] as unknown as number[] }
  assert.equal(message({ retry }), `retry.statusCodes[1]: ${want} 202\nretry.statusCodes[2]: ${want} "504"`)
})

test('swapped letters, and words of other libraries', () => {
  const table: [object, string][] = [
    [{ dleay: 5 }, 'delay'],
    [{ dealy: 5 }, 'delay'],
    [{ raet: 5 }, 'rate'],
    [{ qouta: 5 }, 'quota'],
    [{ ratee: 5 }, 'rate'],
    [{ defaults: { concurerncy: 5 } }, 'concurrency'],
    [{ rateLimit: 5 }, 'rate'],
    [{ maxConcurrent: 5 }, 'concurrency'],
    [{ concurrencyLimit: 5 }, 'concurrency'],
    [{ minTime: 5 }, 'delay'],
    [{ interval: 5 }, 'rate: { limit, window }'],
    [{ intervalCap: 5 }, 'rate: { limit, window }'],
    [{ limit: 5 }, 'rate: { limit, window }'],
    [{ requestsPerMinute: 5 }, 'rate: "60/min"'],
    [{ requestsPerSecond: 5 }, 'rate'],
    [{ timeout: 5 }, 'requestTimeout'],
    [{ retries: 5 }, 'retry: { limit }'],
    [{ maxRetries: 5 }, 'retry: { limit }'],
    [{ maxDelay: 5 }, 'backoff: { maxDelay }'],
    [{ retry: { retries: 5 } }, 'limit'],
    [{ scopes: { a: { maxConcurrent: 5 } } }, 'concurrency'],
    [{ priority: 5 }, 'an option of a single request: throttle: { priority }'],
    [{ maxWait: 5 }, 'an option of a single request: throttle: { maxWait }'],
  ]
  for (const [options, meant] of table)
    assert.ok(
      message(options).includes(`want a known setting (did you mean ${meant}?); got 5`),
      message(options),
    )
})

test('a number or a flag where an object belongs', () => {
  assert.match(message({ retry: 3 }), /^retry: want an object, such as { limit: 3 }; got 3$/)
  assert.match(message({ robots: true }), /^robots: want an object, such as { userAgent: "name" }; got true$/)
})

test('a wrong place, a wrong kind, a wrong order', async () => {
  const throttle = make()
  const untyped = throttle as unknown as Record<string, (...args: unknown[]) => unknown>
  const table: [() => unknown, RegExp][] = [
    [() => throttle.fetch(page, { priority: 1 as never }), /priority: type { throttle: { priority: 1 } }/],
    [() => throttle.fetch(page, { maxWait: 2 } as never), /maxWait: type { throttle: { maxWait: 2 } }/],
    [
      () => throttle.fetch(page, { throttle: { timeout: 2 } as never }),
      /throttle\.timeout: want maxWait, its/,
    ],
    [() => throttle.acquire(page, { timeout: 2 } as never), /timeout: want maxWait, its name now/],
    [() => throttle.run(page, () => 1, { timeout: 2 } as never), /timeout: want maxWait, its name now/],
    [() => throttle.fetch(page, { cost: 2 } as never), /cost: type { throttle: { cost: 2 } }/],
    [() => throttle.fetch(page, { scopes: 'a' } as never), /scopes: type { throttle: { scopes: "a" } }/],
    [() => untyped.run!(() => 1), /run: want a URL before the function/],
    [
      () => untyped.run!(page, Promise.resolve(1)),
      /run: want a function; got a Promise, .* put \(\) => before/,
    ],
    [() => untyped.run!(page, 5), /run: want a function; got 5/],
    [() => untyped.run!({ scope: 'a' }, () => 1), /got { scope } \(did you mean scopes\?\)/],
    [() => untyped.run!(undefined, () => 1), /want a URL, .*; got undefined/],
    [() => untyped.acquire!(() => page), /got a function: the URL comes first/],
    [() => untyped.wrap!(page), /wrap: want a function; got "https:/],
    [() => throttle.wrap((one: number) => one)(1), /got 1 \(the second argument of wrap names it\)/],
    [() => untyped.map!([page], Promise.resolve(1)), /map: want a function; got a Promise/],
    [() => throttle.map([1, 2], (one) => one).next(), /got 1 \(map's option target names it\)/],
    [() => throttle.map(['a line'], (one) => one).next(), /got "a line" \(map's option target names it\)/],
    [() => throttle.map([{ id: 1 }], (one) => one).next(), /names it\)/],
  ]
  for (const [call, expected] of table) await assert.rejects(async () => call(), expected)
  assert.equal(throttle.stats().waiting + throttle.stats().inFlight, 0)
  assert.equal((await throttle.fetch(page, { priority: 'high' })).status, 200)
})

test('timeout and retry beside fetch’s own options are told, and those that a client hands on are not', async () => {
  const table: [init: object, said: RegExp | undefined][] = [
    [{ timeout: 2000, headers: {} }, /^timeout has no effect .*: throttle: { requestTimeout } counts from/],
    [{ retry: 2 }, /^retry has no effect .*: createThrottle\({ retry: { limit } }\) repeats/],
    [{ method: 'POST', body: '' }, undefined],
    // As ofetch does it, which heeds both itself.
    [{ retry: 2, headers: new Headers() }, undefined],
    [{ timeout: 5, signal: new AbortController().signal }, undefined],
  ]
  for (const [init, said] of table) {
    const throttle = make({ delay: 0 })
    const told: string[] = []
    throttle.addEventListener('warning', ({ message }) => told.push(message))
    for (let call = 0; call < 3; call++) await throttle.fetch(page, init)
    assert.equal(told.length, said === undefined ? 0 : 1)
    if (said) assert.match(told[0]!, said)
  }
})

test('a hook that was not called', async () => {
  const throttle = make({ getScopes: byEndpoint as never })
  const expected = /getScopes gave a function: call it where you type it, getScopes: byEndpoint\(\)$/
  await assert.rejects(throttle.fetch(page), expected)
})

test('methods may be taken off', async () => {
  const clock = new FakeClock()
  const throttle: Throttle = createThrottle({ clock, delay: 0 })
  const { run, wrap, acquire, map, peek, scope, now, stats, snapshot, pause, resume, idle, close, robots } =
    throttle
  pause()
  resume()
  assert.equal(await run(page, () => 1), 1)
  assert.equal(await wrap((_: string) => 2)(page), 2)
  ;(await acquire(page)).settle()
  for await (const one of map([page], () => 3)) assert.equal(one, 3)
  assert.equal(peek(page).at, now())
  assert.equal(scope('a.example').stats.waiting, stats().waiting)
  assert.ok(snapshot())
  assert.equal(robots('a.example', '', { userAgent: 'bot' }), null)
  await idle()
  close()
  assert.deepEqual(
    Object.keys(throttle).filter((key) => typeof throttle[key as 'fetch'] === 'function'),
    ['fetch'],
  )
})

test('a delay that looks like seconds is warned of, once', async () => {
  const table: [ThrottleOptions, string | undefined][] = [
    [{ delay: 2 }, 'delay is in milliseconds: for 2 s type 2000'],
    [{ defaults: { delay: 0.5 } }, 'defaults.delay is in milliseconds: for 0.5 s type 500'],
    [
      { scopes: { 'a.example': { slotDelay: 5 } } },
      'scopes."a.example".slotDelay is in milliseconds: for 5 s',
    ],
    [{ rate: { limit: 5, window: 1 } }, 'rate.window is in milliseconds: for 1 s type 1000'],
    [{ rate: { limit: 100, window: 60 } }, 'rate.window is in milliseconds: for 60 s type 60000'],
    [
      { defaults: { quota: 100, window: 3600 } },
      'defaults.window is in milliseconds: for 3600 s type 3600000',
    ],
    [{ quota: { limit: 100, window: 86_400 } }, 'quota.window is in milliseconds: for 86400 s type 86400000'],
    [{ rate: { limit: 1, window: 50 } }, undefined],
    [{ rate: { limit: 5, window: 1000 }, quota: 9, window: 60_000 }, undefined],
    [{ delay: 60 }, undefined],
    [{ delay: 0 }, undefined],
    [{ delay: 20 }, undefined],
  ]
  for (const [options, expected] of table) {
    const warnings: string[] = []
    const throttle = make(options)
    throttle.addEventListener('warning', ({ code, message }) => {
      if (code === 'suspicious-unit') warnings.push(message)
    })
    await undefined
    await undefined
    assert.equal(warnings.length, expected === undefined ? 0 : 1)
    assert.ok(warnings[0] === undefined || warnings[0].startsWith(expected!), warnings[0])
  }
})

test('names of scopes that no URL has are told, once each', async () => {
  const warned = (options: ThrottleOptions, use: (throttle: Throttle) => unknown = () => {}) => {
    const said: string[] = []
    const throttle = make(options)
    throttle.addEventListener('warning', ({ code, message }) => {
      if (code === 'no-effect') said.push(message)
    })
    use(throttle)
    return Promise.resolve().then(() => said)
  }
  const rate = { rate: 5 }
  for (const [name, typed] of HOSTS.names) {
    const got = await warned({ scopes: { [name]: rate } })
    const said =
      typed === 'a pattern'
        ? 'scopes are no patterns; type defaults, or getScopes: byDomainHierarchy()'
        : `it is the scope of no URL; type "${typed}"`
    assert.equal(got.length, typed === null ? 0 : 1, name)
    if (typed !== null)
      assert.ok(got[0]!.startsWith(`scopes.${JSON.stringify(name)} has no effect: ${said}`), got[0])
  }
  const looked = await warned({}, (throttle) => {
    throttle.scope('API.example').configure(rate)
    throttle.scope('API.example').pause()
  })
  assert.deepEqual(looked, [
    'scope("API.example") has no effect: it is the scope of no URL; type "api.example"',
  ])
  const used = await warned({}, async (throttle) => {
    await throttle.acquire({ scopes: 'My.Jobs' })
    throttle.scope('My.Jobs').configure(rate)
  })
  assert.deepEqual(used, [])
  // A hook may give any name.
  assert.deepEqual(await warned({ scopes: { 'API.example': rate }, getScopes: () => 'API.example' }), [])
})

test('a host that no request meets, beside one that is hardly another, is told when it is sure', async () => {
  const said = async (typed: string[], sent: string[], options: ThrottleOptions = {}) => {
    const clock = new FakeClock()
    const scopes = Object.fromEntries(typed.map((name) => [name, { rate: 5 }]))
    const throttle = make({ clock, delay: 0, scopes, ...options })
    const heard: string[] = []
    throttle.addEventListener('warning', ({ message }) => heard.push(message))
    for (const host of sent) await throttle.fetch(`https://${host}/`)
    await clock.advance(1)
    assert.deepEqual(heard, [])
    await throttle.idle()
    const early = [...heard]
    throttle.close()
    assert.deepEqual(heard, early)
    return heard
  }
  for (const [typed, sent, isTold] of HOSTS.unmet) {
    const want = `scopes.${JSON.stringify(typed)} has no effect: requests go to ${JSON.stringify(sent)}`
    assert.deepEqual(await said([typed], [sent]), isTold ? [want] : [], typed)
    // A name that is used is no mistake, and neither is one that another name was typed for.
    assert.deepEqual(await said([typed], [sent, typed]), [])
    assert.deepEqual(await said([typed, sent], [sent]), [])
    assert.deepEqual(await said([typed], [sent], { getScopes: () => sent }), [])
  }
  const hints = { 'api.exmaple.com': { remaining: 'x-left' } }
  assert.deepEqual(await said([], ['api.example.com'], { hints }), [
    'hints."api.exmaple.com" has no effect: requests go to "api.example.com"',
  ])
  const early = make({ scopes: { 'github.com': { rate: 5 } } })
  const heard: string[] = []
  early.addEventListener('warning', ({ message }) => heard.push(message))
  await early.fetch('https://api.github.com/')
  early.close()
  const told = ['scopes."github.com" has no effect: requests go to "api.github.com"']
  assert.deepEqual(heard, told)
  // A server is never closed.
  const server = make({ delay: 0, slotDelay: 0, scopes: { 'github.com': { rate: 5 } } })
  heard.length = 0
  server.addEventListener('warning', ({ message }) => heard.push(message))
  const send = async () => {
    for (let request = 0; request < 99; request++) await server.fetch('https://api.github.com/')
  }
  await send()
  assert.deepEqual(heard, [])
  await send()
  assert.deepEqual(heard, told)
})

test('items that are no list are an error when map is called', () => {
  const untyped = make() as unknown as Record<string, (...args: unknown[]) => unknown>
  const want = 'map: want a list of items, or what gives them one by one; got'
  const table: [unknown, string][] = [
    [page, `"${page}": for one item put it in a list`],
    [{}, 'an object'],
    [undefined, 'undefined'],
    [null, 'null'],
    [3, '3'],
    [Promise.resolve([page]), 'a Promise: await it'],
    [() => [page], 'a function: the items come before it; what a generator gives is generator()'],
  ]
  for (const [items, got] of table)
    assert.throws(() => untyped.map!(items, () => 1), { name: 'TypeError', message: `${want} ${got}` })
})

test('configure without settings, and an outcome without a word of ours', async () => {
  const throttle = make({ maxInFlight: 1, delay: 0, slotDelay: 0 })
  const scope = throttle.scope('a.example') as unknown as { configure(...args: unknown[]): void }
  for (const [args, got] of [
    [[], 'undefined'],
    [[null], 'null'],
    [['5/s'], '"5/s"'],
  ] as const)
    assert.throws(() => scope.configure(...args), {
      code: 'ERR_CONFIG',
      message: `configure: want an object, such as { rate: 5 }; got ${got}`,
    })
  const table: [unknown, RegExp][] = [
    [{ code: 429 }, /settle: want one of status, .*; got { code } \(did you mean status\?\)$/],
    [{ statsu: 429 }, /got { statsu } \(did you mean status\?\)$/],
    [{ response: new Response() }, /got { response } \(did you mean settle\(response\)\?\)$/],
    [{ ok: false, why: 'busy' }, /got { ok, why }$/],
    [new Error('HTTP 429'), /got an error: type settle\({ error }\)$/],
    [429, /settle: want an outcome, such as { status: 429 }; got 429$/],
  ]
  for (const [outcome, expected] of table) {
    const permit = await throttle.acquire({ scopes: 'jobs' })
    assert.throws(() => permit.settle(outcome as object), expected)
    assert.equal(throttle.stats().inFlight, 0)
  }
  for (const outcome of [undefined, {}, { latency: 5 }, { status: undefined }, new Response()])
    (await throttle.acquire({ scopes: 'others' })).settle(outcome as object)
})

test('hosts in capitals are those of their URLs', async () => {
  const scopes = byEndpoint('API.example', 'https://B.example/x')
  assert.equal(scopes({ url: 'https://api.example/v1' }), 'api.example/v1')
  assert.equal(scopes({ url: 'https://b.example/v1' }), 'b.example/v1')
  assert.equal(scopes({ url: 'https://c.example/v1' }), 'c.example')
  const throttle = make({ delay: 0, slotDelay: 0 })
  throttle.robots('A.example', 'User-agent: *\nCrawl-delay: 5', { userAgent: 'bot' })
  assert.equal(throttle.scope('a.example').stats.delayMs, 5000)
})

test('more that would be read in another way than it is meant', async () => {
  const throttle = make({ delay: 0, slotDelay: 0 })
  const warned: string[] = []
  throttle.addEventListener('warning', ({ message }) => warned.push(message))
  const untyped = throttle as unknown as Record<string, (...args: unknown[]) => unknown>
  const want = /robots: want a host, its robots\.txt as text, and { userAgent: "name" }; got /
  const table: [() => unknown, RegExp][] = [
    [() => untyped.robots!('User-agent: *'), /got undefined for the text$/],
    [() => untyped.robots!('a.example', 'User-agent: *'), /got undefined for userAgent$/],
    [() => untyped.robots!('a.example', new Response('x'), { userAgent: 'b' }), want],
    [() => untyped.fetch!(page, 5), /fetch: want options as an object; got 5/],
    [() => untyped.acquire!({ scopes: [] }), /scopes: want at least one name; got none/],
    [() => untyped.acquire!({ scopes: {} }), /scopes: want at least one name; got none/],
  ]
  for (const [call, expected] of table) await assert.rejects(async () => call(), expected)
  const mapped = untyped.map!([page], () => 7, null) as AsyncGenerator
  assert.equal((await mapped.next()).value, 7)
  assert.equal((await (untyped.fetch!(page, null) as Promise<Response>)).status, 200)
  throttle.scope('a.example').configure({ delay: 2 })
  throttle.scope('a.example').configure({ delay: 3 })
  assert.deepEqual(warned, ['delay is in milliseconds: for 2 s type 2000'])
})

test('robots is for fetch: what other clients send is told, and so is a Disallow without rules', async () => {
  const rules = () => () => true
  const warned = async (use: (throttle: Throttle) => unknown, more: ThrottleOptions = {}) => {
    const fetch = async () => new Response('User-agent: *\nDisallow: /secret')
    const robots = { userAgent: 'bot', rules }
    const throttle = make({ delay: 0, slotDelay: 0, fetch: fetch as never, robots, ...more })
    const said: string[] = []
    throttle.addEventListener('warning', ({ code, message }) => said.push(`${code}: ${message}`))
    for (let twice = 0; twice < 2; twice++) await use(throttle)
    return said
  }
  const other =
    'no-effect: robots has no effect on what other clients send: send with the fetch of the permit'
  const table: [(throttle: Throttle) => unknown, isTold: boolean][] = [
    [(throttle) => throttle.run(page, () => 1), true],
    [async (throttle) => (await throttle.acquire(page)).settle({ status: 200 }), true],
    [(throttle) => throttle.run(page, ({ fetch }) => fetch(page)), false],
    [async (throttle) => (await throttle.acquire(page)).fetch(page), false],
    [(throttle) => throttle.run({ scopes: 'jobs' }, () => 1), false],
    [(throttle) => throttle.fetch(page), false],
  ]
  for (const [use, isTold] of table) {
    const said = await warned(use)
    assert.equal(said.length, isTold ? 1 : 0, String(use))
    if (isTold) assert.ok(said[0]!.startsWith(other), said[0])
  }
  assert.deepEqual(await warned(table[0]![0], { robots: undefined } as object), [])
  const use = (throttle: Throttle) => throttle.fetch(page)
  assert.deepEqual(await warned(use, { robots: { userAgent: 'bot' } }), [
    'no-effect: Disallow in robots.txt of a.example has no effect: type rules of autothrottle/robots into robots',
  ])
})

test('presets of no host, rules that were called, and a fetch of no URL', async () => {
  const untyped = make().fetch as (...args: unknown[]) => Promise<unknown>
  const call = rules as unknown as () => unknown
  const table: [() => unknown, RegExp][] = [
    [() => presets(), /^TypeError: presets: want at least one host; there are api\./],
    [() => call(), /^TypeError: rules: type it without \(\): robots: { userAgent: "name", rules }$/],
    [() => untyped(), /want a URL, a Request or { scopes: 'name' }; got undefined$/],
    [() => untyped(null), /want a URL, a Request or { scopes: 'name' }; got null$/],
    [() => untyped(5), /want a URL, a Request or { scopes: 'name' }; got 5$/],
    [() => untyped({}), /want a URL, a Request or { scopes: 'name' }; got an object$/],
  ]
  for (const [slip, expected] of table) await assert.rejects(async () => slip(), expected)
})

test('axios: a forgotten argument, and a retry that is for fetch', async () => {
  const untyped = throttleAdapter as (...args: unknown[]) => unknown
  const said: string[] = []
  const throttle = make({ retry: { limit: 3 } })
  throttle.addEventListener('warning', ({ message }) => said.push(message))
  for (const axios of [undefined, {}])
    assert.throws(
      () => untyped(throttle, axios),
      /^TypeError: throttleAdapter: want axios after the throttle, .*; got/,
    )
  const axios = { defaults: {}, getAdapter: () => async () => ({}), getUri: () => page }
  for (const _ of [1, 2]) untyped(throttle, axios)
  untyped(make(), axios)
  assert.deepEqual(said, [
    'retry has no effect on axios: axios-retry repeats requests, or run(url, fn, { retry: true })',
  ])
})

test('an event that no throttle has', () => {
  const throttle = make()
  const known = 'queued, send, settle, cancel, backoff, recover, delay, hold, stall, warning, shared'
  for (const method of ['addEventListener', 'removeEventListener'] as const)
    for (const [type, got] of [
      ['holds', '"holds" (did you mean hold?)'],
      ['sent', '"sent" (did you mean send?)'],
      ['Settle', '"Settle" (did you mean settle?)'],
      ['error', '"error"'],
      [undefined, 'undefined'],
    ] as const)
      assert.throws(() => throttle[method](type as never, () => {}), {
        name: 'TypeError',
        message: `${method}: want one of ${known}; got ${got}`,
      })
  const event = new Event('anything')
  assert.equal(throttle.dispatchEvent(event), true)
})

test('retry of one request, and what the retry of a function does not take', async () => {
  const throttle = make({ retry: { limit: 2 } })
  const table: [object, RegExp][] = [
    [
      { limit: 1, shouldRetry: () => true },
      /retry\.shouldRetry: want { limit } alone; .* 503, calls a function/,
    ],
    [{ limit: 1, statusCodes: [500] }, /retry\.statusCodes: want .*the throttle's own retry: .*statusCodes/],
    [
      { limit: 1, methods: ['POST'] },
      /retry\.methods: want { limit } alone; .* again, whatever method it uses/,
    ],
  ]
  for (const [retry, expected] of table) {
    await assert.rejects(
      throttle.run(page, () => 1, { retry } as object),
      expected,
    )
    await assert.rejects(throttle.wrap(() => 1, page, { retry } as object)(), expected)
    assert.throws(() => throttle.map([page], () => 1, { retry } as object), expected)
  }
  const once = throttle.fetch(page, { throttle: { retry: { limit: 1 } } as object })
  await assert.rejects(
    once,
    /^ConfigError: throttle\.retry: want it as an option of the throttle, or of throttle\.run/,
  )
})

test('options of the throttle, typed at a call', async () => {
  const throttle = make()
  const untyped = throttle as unknown as Record<string, (...args: unknown[]) => unknown>
  const work = () => 1
  const table: [() => unknown, RegExp][] = [
    [
      () => untyped.map!([page], work, { concurrency: 3 }),
      /map\.concurrency: want it as an option of the thr/,
    ],
    [() => untyped.run!(page, work, { rate: 5 }), /^ConfigError: rate: want it as an option of the throttle/],
    [
      () => throttle.fetch(page, { throttle: { concurrency: 1 } as object }),
      /\.concurrency: want it as an opt/,
    ],
    [() => untyped.map!([page], work, { size: 3 }), /map\.size: want one of .*, target/],
  ]
  for (const [call, expected] of table) await assert.rejects(async () => call(), expected)
})

test('a wrong value in place of the throttle, or of the options of sharing', () => {
  const entries: [string, (throttle: never) => unknown][] = [
    ['throttleAdapter', (throttle) => throttleAdapter(throttle, {} as never)],
    ['throttleHandler', throttleHandler],
    ['throttleHooks', throttleHooks],
    ['llmFetch', llmFetch],
    ['llmMiddleware', llmMiddleware],
  ]
  for (const [name, entry] of entries)
    for (const [value, got] of [
      [undefined, 'undefined'],
      [{ rate: 5 }, 'an object'],
    ] as const)
      assert.throws(() => entry(value as never), {
        name: 'TypeError',
        message: `${name}: want a throttle, as createThrottle gives it; got ${got}`,
      })
  for (const share of [local, (options: never) => redis({} as never, options)])
    assert.throws(() => share('crawler' as never), {
      code: 'ERR_CONFIG',
      message: 'shared: want an object, such as { name: "crawler" }; got "crawler"',
    })
})

test('a throttle of another copy of the package is one', async () => {
  // Two versions in one program: neither is an instance of the other's class.
  const own = make({ delay: 0 })
  const other = new Proxy(new EventTarget(), { get: (_, key) => own[key as 'fetch'] }) as Throttle
  assert.ok(!(other instanceof (own.constructor as new () => object)))
  const fetch = throttledFetch(other)
  assert.equal((await fetch(page)).status, 200)
  assert.equal(typeof undiciThrottle(other), 'function')
})

test('a clock of tests that is moved by what is no time', async () => {
  const clock = new FakeClock()
  const want = /want milliseconds from 0; got /
  for (const ms of ['5', -5, Number.NaN, undefined] as number[]) {
    await assert.rejects(clock.advance(ms), want)
    if (ms !== -5) assert.throws(() => clock.jump(ms), /want milliseconds; got /)
  }
  assert.throws(() => new FakeClock({} as never), want)
  assert.equal(clock.now(), 0)
})

test('a word that would be taken for another, or for none, in map, hints and managers', async () => {
  const throttle = make({ delay: 0 })
  const untyped = throttle as unknown as Record<string, (...args: unknown[]) => unknown>
  const bad = () => Promise.reject(new Error('lost'))
  const hinted = (hints: object) => make({ getHints: () => hints }).fetch(page)
  const managed = (manager: unknown) => make({ scopes: { 'a.example': { manager: manager as never } } })
  const table: [() => unknown, RegExp][] = [
    [
      () => untyped.map!([page], bad, { errors: 'thorw' }),
      /map\.errors: want "throw", "skip" or "settle"; got "th/,
    ],
    [() => untyped.map!([page], bad, { errors: true }), /map\.errors: want .*; got true$/],
    [() => untyped.map!([page], bad, { ordered: 'no' }), /map\.ordered: want true or false; got "no"$/],
    [() => untyped.map!([page], bad, { target: 5 }), /map\.target: want a function of an item; got 5$/],
    [() => hinted({ delay: 5 }), /hints: want one of delayMs, .*; got { delay }$/],
    [() => hinted({ retryAfterMs: 5 }), /got { retryAfterMs } \(did you mean delayMs\?\)$/],
    [() => hinted({ delayMs: '5' }), /hints\.delayMs: want a number; got "5"$/],
    [
      () => managed({ onGod() {} }),
      /scopes\."?a\.example"?\.manager: want one of onSend, .* in it; got { onGod }$/,
    ],
    [() => managed(() => ({})).fetch(page), /manager for a\.example: want one of onSend, .*; got { {2}}$/],
  ]
  for (const [call, expected] of table) await assert.rejects(async () => call(), expected)
  class Own {
    onBad() {}
  }
  assert.equal((await managed(new Own()).fetch(page)).status, 200)
  assert.equal((await hinted({})).status, 200)
})
