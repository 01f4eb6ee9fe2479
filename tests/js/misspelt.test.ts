/**
 * What people type in place of what is meant: swapped letters, words of other libraries, a wrong place, a
 * wrong kind. Each is answered with what to type.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { byEndpoint, ConfigError, createThrottle, type Throttle, type ThrottleOptions } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

const page = 'https://a.example/page'

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
    [{ interval: 5 }, 'rate: { limit, per }'],
    [{ intervalCap: 5 }, 'rate: { limit, per }'],
    [{ limit: 5 }, 'rate: { limit, per }'],
    [{ requestsPerMinute: 5 }, 'rate: "60/min"'],
    [{ requestsPerSecond: 5 }, 'rate'],
    [{ timeout: 5 }, 'requestTimeout'],
    [{ retries: 5 }, 'retry: { limit }'],
    [{ maxRetries: 5 }, 'retry: { limit }'],
    [{ maxDelay: 5 }, 'backoff: { maxDelay }'],
    [{ retry: { retries: 5 } }, 'limit'],
    [{ scopes: { a: { maxConcurrent: 5 } } }, 'concurrency'],
    [{ priority: 5 }, 'an option of a single request: throttle: { priority }'],
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
  ]
  for (const [call, expected] of table) await assert.rejects(async () => call(), expected)
  assert.equal(throttle.stats().waiting + throttle.stats().inFlight, 0)
  assert.equal((await throttle.fetch(page, { priority: 'high' })).status, 200)
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
  assert.deepEqual(Object.keys(throttle), ['fetch'])
})

test('a delay that looks like seconds is warned of, once', async () => {
  const table: [ThrottleOptions, string | undefined][] = [
    [{ delay: 2 }, 'delay is in milliseconds: 2 is 500 requests a second; for 2 s type 2000'],
    [{ defaults: { delay: 0.5 } }, 'defaults.delay is in milliseconds: 0.5 is 2000 requests a second'],
    [
      { scopes: { 'a.example': { slotDelay: 5 } } },
      'scopes."a.example".slotDelay is in milliseconds: 5 is 200',
    ],
    [{ delay: 0 }, undefined],
    [{ delay: 20 }, undefined],
  ]
  for (const [options, expected] of table) {
    const warnings: string[] = []
    const throttle = make(options)
    throttle.addEventListener('warning', ({ code, message }) => {
      if (code === 'units') warnings.push(message)
    })
    await undefined
    await undefined
    assert.equal(warnings.length, expected === undefined ? 0 : 1)
    assert.ok(warnings[0] === undefined || warnings[0].startsWith(expected!), warnings[0])
  }
})
