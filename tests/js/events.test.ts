/** The events of a throttle, which are free without a listener. */

import assert from 'node:assert/strict'
import diagnostics from 'node:diagnostics_channel'
import { describe, mock, test } from 'node:test'
import {
  createThrottle,
  fromScrapySettings,
  type Permit,
  type ScopeEvent,
  type Target,
  type ThrottleOptions,
} from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'
import { DRIVER_KEYS, ENGINE_KEYS } from '../../js/options/generated.js'

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

test('nothing is printed unasked', async () => {
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
  assert.deepEqual(ids, [1, 2, 3])
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

test('events are made only while a listener is there: once, signal and removal are counted', async () => {
  const { throttle } = make([], { defaults: { delay: 0, slotDelay: 0, jitter: false } })
  const made = mock.method(throttle as unknown as { emit(event: Event): void }, 'emit')
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
    ['wait-capped', 'a.example', message],
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
  const third = throttle.fetch('https://a.example/3', { throttle: { maxWait: 500 } })
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

// The warnings of a throttle: told once, to a listener, else on the console.

/** The lines that `console.warn` gets while `work` runs. */
async function printed(work: () => unknown): Promise<string[]> {
  const lines: string[] = []
  const printing = mock.method(console, 'warn', (line: string) => void lines.push(line))
  try {
    await work()
  } finally {
    printing.mock.restore()
  }
  return lines
}

const slow = (options: ThrottleOptions = {}) =>
  createThrottle({ clock: new FakeClock(), delay: 1000, warnThreshold: 2, ...options })

const fill = async (throttle = slow()) => {
  const left = [1, 2, 3, 4].map(() => throttle.acquire('https://a.example/').catch(() => {}))
  throttle.close()
  await Promise.all(left)
}

test('a warning without a listener is one line', async () => {
  const lines = await printed(() => fill())
  assert.deepEqual(lines, ['autothrottle: 2 requests wait: pull work with throttle.map (many-waiting)'])
})

test('a setting without effect is a line, too', async () => {
  const lines = await printed(async () => {
    createThrottle({ maxInFlight: 2, scopes: { 'a.example': { concurrency: 5 } } })
    await undefined
  })
  assert.equal(lines.length, 1)
  assert.match(lines[0]!, /^autothrottle: scopes\."a\.example"\.concurrency has no effect.*\(no-effect\)$/)
})

test('a listener gets the event, and there is no line', async () => {
  const codes: string[] = []
  const lines = await printed(() => {
    const throttle = slow()
    throttle.addEventListener('warning', ({ code }) => codes.push(code))
    return fill(throttle)
  })
  assert.deepEqual([codes, lines], [['many-waiting'], []])
})

test('warnings: false prints nothing', async () => {
  assert.deepEqual(await printed(() => fill(slow({ warnings: false }))), [])
  assert.throws(() => createThrottle({ warnings: 'no' as never }), /warnings: want true or false; got "no"/)
})

test('a warning about a scope is told once for each scope', async () => {
  const lines = await printed(() => {
    const own = { delay: 2000 }
    const throttle = slow({ scopes: { 'a.example': own, 'b.example': own } })
    const text = 'User-agent: *\nCrawl-delay: 4\n'
    for (const host of ['a.example', 'b.example', 'a.example'])
      throttle.robots(host, text, { userAgent: 'x' })
  })
  assert.equal(lines.length, 2)
  assert.match(lines[1]!, /robots\.txt of b\.example .*\(robots-overruled\)$/)
})

describe('answers that a function keeps to itself', () => {
  const page = 'https://a.example/'
  const refused = () => new Response('busy', { status: 429, headers: { 'retry-after': '600' } })

  function make(answer = refused) {
    const clock = new FakeClock()
    let sent = 0
    const fetch = async () => {
      sent++
      return answer()
    }
    const throttle = createThrottle({ clock, fetch, rate: 100, warnings: false })
    const warned: string[] = []
    throttle.addEventListener('warning', ({ code, scope }) => warned.push(`${code} ${scope}`))
    const heard: (number | undefined)[] = []
    throttle.addEventListener('settle', ({ status }) => heard.push(status))
    return { clock, throttle, fetch, warned, heard, sent: () => sent }
  }

  /** Runs a function twenty-five times, and gives what was warned of. */
  async function many(work: (permit: Permit) => unknown, target: Target = page) {
    const { clock, throttle, warned, heard } = make()
    const all = Promise.allSettled(Array.from({ length: 25 }, () => throttle.run(target, work)))
    await clock.advance(1000)
    throttle.close()
    await all
    return { warned, heard: heard[0] }
  }

  test('the recipe of many URLs stops at a 429 with Retry-After', async () => {
    const { clock, throttle, sent, warned } = make()
    const urls = Array.from({ length: 100 }, (_, n) => page + n)
    const pages = (async () => {
      for await (const _ of throttle.map(urls, async (url, { fetch }) => (await fetch(url)).text()));
    })()
    const failed = assert.rejects(pages, { code: 'ERR_CLOSED' })
    await clock.advance(60_000)
    assert(sent() <= 16, `${sent()} requests after a 429`)
    assert.deepEqual(warned, [])
    throttle.close()
    await failed
  })

  test('a scope that is told nothing twenty times in a row says so, once', async () => {
    const silent = ['no-status a.example']
    const cases: [unknown, (permit: Permit) => unknown][] = [
      [silent, () => 'a string'],
      [silent, () => Promise.reject(new Error('HTTP 429'))],
      [[], () => 'jobs'],
    ]
    for (const [index, [expected, work]] of cases.entries())
      assert.deepEqual((await many(work, index === 2 ? { scopes: 'jobs' } : page)).warned, expected)
    const { clock, throttle, warned } = make()
    const all = (async () => {
      for (let n = 0; n < 60; n++) {
        const permit = await throttle.acquire(page)
        if (n % 19 === 0) permit.settle({ status: 200 })
        else permit.settle()
      }
    })()
    await clock.advance(5000)
    await all
    assert.deepEqual(warned, [])
  })

  test('requests that were aborted are no silent ones', async () => {
    const { clock, throttle, warned } = make()
    const all = (async () => {
      for (let n = 0; n < 25; n++) {
        const caller = new AbortController()
        const permit = await throttle.acquire(page, { signal: caller.signal })
        caller.abort()
        permit.settle()
      }
    })()
    await clock.advance(60_000)
    await all
    assert.deepEqual(warned, [])
  })

  test('heard: a response in the result, in the error, in its cause, at both depths', async () => {
    const response = refused()
    const thrown = (error: unknown) => () => Promise.reject(error)
    for (const work of [
      () => response,
      () => ({ response }),
      thrown(Object.assign(new Error('x'), { response })),
      thrown(new Error('x', { cause: response })),
      thrown(new Error('x', { cause: Object.assign(new Error('y'), { response }) })),
      thrown(new Error('x', { cause: { response: { statusCode: 429, headers: {} } } })),
    ])
      assert.equal((await many(work)).heard, 429)
    assert.equal((await many(thrown(new Error('HTTP 429')))).heard, undefined)
  })
})

/**
 * Values of the wrong type in place of an object of settings, and settings typed where no code reads them.
 */

const place = 'https://a.example/page'
const fetch = (async () => new Response('ok')) as typeof globalThis.fetch

function saying(options: ThrottleOptions = {}) {
  const throttle = createThrottle({ clock: new FakeClock(), fetch, ...options })
  const said: string[] = []
  throttle.addEventListener('warning', ({ message }) => said.push(message))
  return { throttle, said }
}

test('an object of settings that hides its members is refused by name', async () => {
  const table: [options: unknown, path: string, got: string][] = [
    [new Map([['rate', 5]]), 'options', 'an object (Map)'],
    [new URLSearchParams('rate=5'), 'options', 'an object (URLSearchParams)'],
    [Promise.resolve({ rate: 5 }), 'options', 'an object (Promise)'],
    [{ scopes: new Map([['a.example', { delay: 500 }]]) }, 'scopes', 'an object (Map)'],
    [{ scopes: new Set(['a.example']) }, 'scopes', 'an object (Set)'],
    [{ scopes: { 'a.example': new Map() } }, 'scopes."a.example"', 'an object (Map)'],
    [{ scopes: { 'a.example': /x/ } }, 'scopes."a.example"', 'an object (RegExp)'],
    [{ defaults: new Map() }, 'defaults', 'an object (Map)'],
    [{ defaults: { backoff: new Date() } }, 'defaults.backoff', 'an object (Date)'],
    [{ rampup: new Map() }, 'rampup', 'an object (Map)'],
    [{ hints: { 'a.example': new Headers() } }, 'hints."a.example"', 'an object (Headers)'],
  ]
  for (const [options, path, got] of table)
    assert.throws(
      () => createThrottle(options as ThrottleOptions),
      { code: 'ERR_CONFIG', message: `${path}: want an object; got ${got}` },
      path,
    )
  const { throttle } = saying({ delay: 0 })
  const untyped = throttle as unknown as Record<string, (...args: unknown[]) => unknown>
  const map = new Map([['priority', 1]])
  const calls: [() => unknown, RegExp][] = [
    [() => throttle.scope('a.example').configure(map as object), /configure: want an object, .* \(Map\)$/],
    [() => untyped.run!(place, () => 1, map), /options: want an object; got an object \(Map\)$/],
    [() => untyped.fetch!(place, { throttle: map }), /throttle: want an object; got an object \(Map\)$/],
    [() => untyped.peek!(place, { csot: 5 }), /csot: want one of cost; got 5$/],
    [
      async () => (await throttle.acquire(place)).settle(Promise.resolve(new Response()) as object),
      /settle: want one of status, .*; got an object \(Promise\)$/,
    ],
  ]
  for (const [call, expected] of calls) await assert.rejects(async () => call(), expected)
  assert.equal(throttle.stats().inFlight, 0)
})

test('instances, modules and what has no prototype are objects of settings', () => {
  class Settings {
    rate = 5
  }
  for (const options of [new Settings(), Object.assign(Object.create(null), { rate: 5 })])
    createThrottle({ clock: new FakeClock(), ...options, defaults: {}, scopes: Object.create(null) })
})

test('a setting that is assigned to a throttle or a scope is an error', () => {
  const { throttle } = saying()
  const scope = throttle.scope('a.example')
  const assign = (object: object, key: string) => () => Object.assign(object, { [key]: 5 })
  const methods = ['fetch', 'robots', 'snapshot']
  // Methods have some of the names, and a mock may replace them.
  for (const key of [...DRIVER_KEYS, ...ENGINE_KEYS].filter((key) => !methods.includes(key))) {
    const message = `${key}: want it as an option, createThrottle({ ${key}: … })`
    assert.throws(assign(throttle, key), { name: 'TypeError', message })
  }
  assert.equal(typeof saying().throttle.robots, 'function')
  assert.throws(assign(scope, 'delay'), /not extensible/)
  assert.doesNotThrow(assign(throttle, 'own'))
})

test('spans that are seconds are told wherever they are typed, also those of a hold', async () => {
  const of = (path: string, s: number) => [`${path} is in milliseconds: for ${s} s type ${s * 1000}`]
  const table: [ThrottleOptions, string[]][] = [
    [{ backoff: { minDelay: 1 } }, of('backoff.minDelay', 1)],
    [{ defaults: { delay: 0, autothrottle: { maxDelay: 60 } } }, of('defaults.autothrottle.maxDelay', 60)],
    [{ autothrottle: { startDelay: 5, maxDelay: 60_000 } }, of('autothrottle.startDelay', 5)],
    [{ scopes: { jobs: { backoff: { window: 60 } } } }, of('scopes.jobs.backoff.window', 60)],
    [{ robots: { userAgent: 'bot', maxDelay: 60 } }, of('robots.maxDelay', 60)],
    [{ backoff: { minDelay: 50, maxDelay: 5000, maxHold: 1000 } }, []],
  ]
  for (const [options, expected] of table) {
    const { said } = saying(options)
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(said, expected)
  }
  const { throttle, said } = saying({ delay: 0 })
  throttle.scope('a.example').hold(5)
  throttle.scope('b.example').hold(500)
  assert.deepEqual(said, of('hold', 5))
})

test('a target of rampup is told where nothing has rampup, as in Python', (t) => {
  const { mock } = t.mock.method(console, 'warn', () => {})
  const settings = { RAMPUP_BACKOFF_TARGET: 2 }
  const scopes = { 'a.example': { rampup: true } }
  assert.deepEqual(fromScrapySettings({ ...settings, THROTTLING_SCOPES: scopes }).scopes, {
    'a.example': { rampup: { backoffTarget: 2 } },
  })
  assert.equal(mock.callCount(), 0)
  fromScrapySettings(settings)
  assert.deepEqual(mock.calls[0]!.arguments, [
    'autothrottle: RAMPUP_BACKOFF_TARGET has no effect: no scope has rampup (no-effect)',
  ])
})

test('throttle, misspelt beside the options of fetch', async () => {
  const { throttle } = saying({ delay: 0 })
  for (const key of ['throtle', 'trottle', 'throttel', 'thorttle', 'throttling', 'Throttle'])
    await assert.rejects(throttle.fetch(place, { [key]: { priority: 1 } } as object), {
      name: 'TypeError',
      message: `fetch: got ${key} (did you mean throttle?)`,
    })
  assert.equal((await throttle.fetch(place, { cache: 'no-store', title: 1 } as object)).status, 200)
})

test('throttles that are made for one request each are no limit, which one of them says', async (t) => {
  const { mock } = t.mock.method(console, 'warn', () => {})
  const get = (url: string) => createThrottle({ rate: 5, fetch }).fetch(url)
  for (let request = 0; request < 30; request++) await get(place)
  const said = () => mock.calls.map(({ arguments: [line] }) => line)
  const expected =
    'autothrottle: 20 throttles in a row sent one request each to a.example, and none knows of the others:' +
    ' make one, outside of the function (no-effect)'
  assert.deepEqual(said(), [expected])
  mock.resetCalls()
  // One for each host is as it should be, and so is one that is used again.
  for (let request = 0; request < 30; request++) await get(`https://${request}.example/`)
  for (let request = 0; request < 30; request++) {
    const throttle = createThrottle({ delay: 0, fetch })
    for (const _ of [1, 2]) await throttle.fetch(place)
  }
  assert.deepEqual(said(), [])
})

test('a permit whose fetch goes to another host than it was asked for says so, once', async () => {
  const { throttle, said } = saying({ delay: 0, slotDelay: 0 })
  for (let twice = 0; twice < 2; twice++)
    await throttle.run(place, ({ fetch }) => fetch('https://b.example/'))
  assert.deepEqual(said, [
    'a permit for a.example sent a request to b.example, whose limits it does not know: throttle.fetch(url) does',
  ])
  await throttle.run(place, ({ fetch }) => fetch('https://a.example/other'))
  await throttle.run({ scopes: 'api' }, ({ fetch }) => fetch('https://c.example/'))
  const hooked = saying({ delay: 0, getScopes: () => 'all' })
  await hooked.throttle.run(place, ({ fetch }) => fetch('https://b.example/'))
  assert.deepEqual([said.length, hooked.said], [1, []])
})
