/** What a throttle warns of: told once, to a listener, else on the console. */
import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import {
  createThrottle,
  fromScrapySettings,
  type Permit,
  type Target,
  type ThrottleOptions,
} from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'
import { DRIVER_KEYS, ENGINE_KEYS } from '../../js/options/generated.js'

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

test('a warning that nobody listens to is one line', async () => {
  const lines = await printed(() => fill())
  assert.deepEqual(lines, ['autothrottle: 2 requests wait: pull work with throttle.map (many-waiting)'])
})

test('a setting without effect is a line, too', async () => {
  const lines = await printed(async () => {
    createThrottle({ concurrency: 2, scopes: { 'a.example': { concurrency: 5 } } })
    await undefined
  })
  assert.equal(lines.length, 1)
  assert.match(lines[0]!, /^autothrottle: scopes\."a\.example"\.concurrency has no effect.*\(no-effect\)$/)
})

test('who listens gets the event, and there is no line', async () => {
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
    const silent = ['unheard a.example']
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

/** What stands where an object of settings belongs, and settings typed where no code reads them. */

const page = 'https://a.example/page'
const fetch = (async () => new Response('ok')) as typeof globalThis.fetch

function make(options: ThrottleOptions = {}) {
  const throttle = createThrottle({ clock: new FakeClock(), fetch, ...options })
  const said: string[] = []
  throttle.addEventListener('warning', ({ message }) => said.push(message))
  return { throttle, said }
}

test('what hides its members where an object of settings belongs is refused by name', async () => {
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
  const { throttle } = make({ delay: 0 })
  const untyped = throttle as unknown as Record<string, (...args: unknown[]) => unknown>
  const map = new Map([['priority', 1]])
  const calls: [() => unknown, RegExp][] = [
    [() => throttle.scope('a.example').configure(map as object), /configure: want an object, .* \(Map\)$/],
    [() => untyped.run!(page, () => 1, map), /options: want an object; got an object \(Map\)$/],
    [() => untyped.fetch!(page, { throttle: map }), /throttle: want an object; got an object \(Map\)$/],
    [() => untyped.peek!(page, { csot: 5 }), /csot: want one of cost; got 5$/],
    [
      async () => (await throttle.acquire(page)).settle(Promise.resolve(new Response()) as object),
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
  const { throttle } = make()
  const scope = throttle.scope('a.example')
  const assign = (object: object, key: string) => () => Object.assign(object, { [key]: 5 })
  const methods = ['fetch', 'robots', 'snapshot']
  // Methods have some of the names, and a mock may replace them.
  for (const key of [...DRIVER_KEYS, ...ENGINE_KEYS].filter((key) => !methods.includes(key))) {
    const message = `${key}: want it as an option, createThrottle({ ${key}: … })`
    assert.throws(assign(throttle, key), { name: 'TypeError', message })
  }
  assert.equal(typeof make().throttle.robots, 'function')
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
    const { said } = make(options)
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual(said, expected)
  }
  const { throttle, said } = make({ delay: 0 })
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
  const { throttle } = make({ delay: 0 })
  for (const key of ['throtle', 'trottle', 'throttel', 'thorttle', 'throttling', 'Throttle'])
    await assert.rejects(throttle.fetch(page, { [key]: { priority: 1 } } as object), {
      name: 'TypeError',
      message: `fetch: got ${key} (did you mean throttle?)`,
    })
  assert.equal((await throttle.fetch(page, { cache: 'no-store', title: 1 } as object)).status, 200)
})

test('throttles that are made for one request each are no limit, which one of them says', async (t) => {
  const { mock } = t.mock.method(console, 'warn', () => {})
  const get = (url: string) => createThrottle({ rate: 5, fetch }).fetch(url)
  for (let request = 0; request < 30; request++) await get(page)
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
    for (const _ of [1, 2]) await throttle.fetch(page)
  }
  assert.deepEqual(said(), [])
})

test('a permit whose fetch goes to another host than it was asked for says so, once', async () => {
  const { throttle, said } = make({ delay: 0, slotDelay: 0 })
  for (let twice = 0; twice < 2; twice++) await throttle.run(page, ({ fetch }) => fetch('https://b.example/'))
  assert.deepEqual(said, [
    'a permit for a.example sent a request to b.example, whose limits it does not know: throttle.fetch(url) does',
  ])
  await throttle.run(page, ({ fetch }) => fetch('https://a.example/other'))
  await throttle.run({ scopes: 'api' }, ({ fetch }) => fetch('https://c.example/'))
  const hooked = make({ delay: 0, getScopes: () => 'all' })
  await hooked.throttle.run(page, ({ fetch }) => fetch('https://b.example/'))
  assert.deepEqual([said.length, hooked.said], [1, []])
})
