/**
 * Hints of servers, through WebAssembly: the same vectors as natively, and what the throttle makes of them.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createThrottle, ManagerError, type ThrottleOptions } from 'autothrottle'
import { Engine, parseHints, parseRobots } from 'autothrottle/engine'
import { FakeClock } from 'autothrottle/testing'

const vectors = new URL('../vectors/', import.meta.url)
const lines = (name: string) =>
  readFileSync(new URL(name, vectors), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
const camel = (key: string) => key.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())

/** Everything that is expected is there; what is not mentioned may be anything. */
function agrees(got: unknown, want: unknown): boolean {
  if (Array.isArray(want)) {
    return (
      Array.isArray(got) &&
      got.length === want.length &&
      want.every((each, index) => agrees(got[index], each))
    )
  }
  if (typeof want === 'object' && want !== null) {
    return Object.entries(want).every(([key, value]) =>
      agrees((got as Record<string, unknown>)[camel(key)], value),
    )
  }
  return got === want
}

interface Case {
  name: string
  headers: Record<string, string | string[]>
  now_epoch_ms: number
  status: number
  expect: object
}

test('all header vectors, as plain objects and as Headers', () => {
  const cases: Case[] = lines('headers.jsonl')
  assert.ok(cases.length > 150, 'a part of the file is missing')
  for (const { name, headers, now_epoch_ms: wallNowMs, status, expect } of cases) {
    const plain = parseHints(headers, { status, wallNowMs })
    assert.ok(agrees(plain, expect), `${name}: got ${JSON.stringify(plain)}, want ${JSON.stringify(expect)}`)
    const joined = new Headers()
    for (const [key, value] of Object.entries(headers)) {
      for (const each of [value].flat()) joined.append(key, each)
    }
    const fetched = parseHints(joined, { status, wallNowMs })
    assert.ok(agrees(fetched, expect), `${name} as Headers: ${JSON.stringify(fetched)}`)
  }
})

interface Robots {
  name: string
  ua: string
  expect: number | null
  text: string
  filler?: [string, number]
  utf16?: boolean
}

test('all robots.txt vectors', () => {
  const cases: Robots[] = lines('robots.jsonl')
  assert.equal(cases.length, 55)
  for (const { name, ua, expect, text, filler: [filler, times] = ['', 0], utf16 } of cases) {
    const whole = text.replace('…', filler.repeat(times))
    const bytes = utf16 ? Buffer.from(`\ufeff${whole}`, 'utf16le') : Buffer.from(whole)
    const want = expect === null ? null : { crawlDelayMs: expect * 1000 }
    assert.deepEqual(parseRobots(bytes, ua), want, name)
  }
  assert.deepEqual(parseRobots('User-agent: *\nCrawl-delay: 2', 'any'), { crawlDelayMs: 2000 })
  assert.equal(Object.hasOwn(Object.prototype, 'crawlDelayMs'), false)
})

/** A throttle over a script of responses. */
function make(answers: (() => Response | Promise<Response>)[], options: ThrottleOptions = {}) {
  const clock = new FakeClock()
  const times: number[] = []
  const fetch = async () => {
    times.push(clock.now())
    return (answers.shift() ?? (() => new Response('ok')))()
  }
  const plain = { delay: 0, slotDelay: 0, jitter: false, backoff: { jitter: false } } as const
  const throttle = createThrottle({ clock, fetch, defaults: plain, ...options })
  return { clock, times, throttle }
}

const page = 'https://a.example/page'
const refusal =
  (headers: Record<string, string>, status = 429) =>
  () =>
    new Response('no', { status, headers })

test('a header map reads a dialect, and renames fields', async () => {
  const { clock, times, throttle } = make(
    [refusal({ 'X-Wait': '7000' }), refusal({ 'x-left': '0', 'x-more-in': '3000' }, 200)],
    {
      hints: {
        'a.example': {
          retryAfter: 'x-wait',
          retryAfterUnit: 'ms',
          remaining: 'X-Left',
          reset: 'x-more-in',
          resetUnit: 'ms',
        },
      },
    },
  )
  const all = Promise.all([1, 2, 3].map(() => throttle.fetch(page)))
  await clock.advance(20_000)
  await all
  assert.deepEqual(times, [0, 7000, 10_000])
})

test('hints in a body come from a hook, perhaps later; what it throws rejects its request only', async () => {
  const body = { errors: [{ message: 'Throttled' }], retryInMs: 4000 }
  const getHints = async (response: Response) => {
    const said = await response.clone().text()
    if (said === 'boom') throw new RangeError('boom')
    if (said === 'ok') return undefined
    return { delayMs: (JSON.parse(said) as typeof body).retryInMs }
  }
  const { clock, times, throttle } = make([() => Response.json(body), () => new Response('boom')], {
    getHints,
  })
  const all = Promise.allSettled([1, 2, 3].map(() => throttle.fetch(page)))
  await clock.advance(20_000)
  const [first, second, third] = await all
  assert.deepEqual(times, [0, 4000, 4000])
  assert.equal(first?.status === 'fulfilled' && (await first.value.json()).retryInMs, 4000)
  assert.ok(second?.status === 'rejected' && second.reason instanceof ManagerError)
  assert.ok(second.reason.cause instanceof RangeError)
  assert.equal(third?.status, 'fulfilled')
  assert.equal(throttle.stats().inFlight, 0)
})

test('an hour off: dates are read against the server', async () => {
  for (const hours of [-1, 1]) {
    const now = Date.UTC(2026, 10, 20, 19, 44, 0)
    const date = { Date: 'Fri, 20 Nov 2026 19:44:00 GMT' }
    const { clock, times, throttle } = make([
      refusal({ ...date, 'Retry-After': 'Fri, 20 Nov 2026 19:44:37 GMT' }),
      refusal({ ...date, 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '1795203850' }),
    ])
    clock.setWall(now + hours * 3_600_000)
    const all = Promise.all([1, 2, 3].map(() => throttle.fetch(page)))
    await clock.advance(100_000)
    await all
    assert.deepEqual(times, [0, 38_000, 38_000 + 11_000], 'to the second, and the one that servers cut off')
  }
})

test('wrong header maps, retries and robots are listed with everything else', () => {
  assert.throws(
    () =>
      createThrottle({
        hints: { 'a.example': { resetUnit: 'm', rest: 'x' } },
        retry: { limit: 0, longRetryAfter: 'no', tries: 1 },
        robots: { userAgent: '', rule: 1 },
        getHints: 3,
        defaults: { delay: -1 },
      } as never),
    (error: { problems: { path: string }[] }) => {
      const paths = error.problems.map(({ path }) => path)
      assert.deepEqual(paths, [
        'robots.userAgent',
        'robots.rule',
        'hints."a.example".resetUnit',
        'hints."a.example".rest',
        'getHints',
        'defaults.delay',
        'retry.limit',
        'retry.longRetryAfter',
        'retry.tries',
      ])
      return true
    },
  )
})

test('the wall time is asked for only where header fields tell of time or limits', () => {
  const engine = new Engine({ defaults: { delay: 0, slotDelay: 0, jitter: false } })
  const scope = engine.scope('a')
  let asked = 0
  const wallNowMs = () => {
    asked++
    return Date.UTC(2026, 0, 1)
  }
  const answer = (headers: Record<string, string>) => {
    const ticket = engine.sendAtOnce(0, [scope])
    engine.settle(0, ticket, { status: 429, headers, wallNowMs })
    engine.reset(0, scope)
    return engine.askedMs
  }
  assert.ok(Number.isNaN(answer({ server: 'nginx' })))
  assert.equal(asked, 0)
  assert.equal(answer({ 'retry-after': 'Thu, 01 Jan 2026 00:00:07 GMT' }), 7000)
  assert.equal(asked, 1)
})
