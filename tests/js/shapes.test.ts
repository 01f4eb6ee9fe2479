/** What stands where an object of settings belongs, and settings typed where no code reads them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createThrottle, fromScrapySettings, type ThrottleOptions } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'
import { DRIVER_KEYS, ENGINE_KEYS } from '../../js/options/generated.js'

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
