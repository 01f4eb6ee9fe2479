/**
 * The draft's examples, as files that people can run: each does what it says, against a fake clock; and each
 * runs by itself.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { FakeClock } from 'autothrottle/testing'
import { costCapped } from '../../examples/cost-capped.js'
import { everyLevel, oneScope } from '../../examples/domains.js'
import { perEndpoint } from '../../examples/endpoints.js'
import { RetryPolicy, withRetryPolicy } from '../../examples/retry-policy.js'
import { scrapingApi } from '../../examples/scraping-api.js'

/** A fetch that answers after `latency`, and what it was asked. */
function server(clock: FakeClock, answer: (url: string) => Response = () => new Response('ok'), latency = 0) {
  const calls: [url: string, at: number][] = []
  let [flying, most] = [0, 0]
  const fetch = async (input: RequestInfo | URL) => {
    calls.push([String(input), clock.now()])
    most = Math.max(most, ++flying)
    if (latency > 0) await new Promise<void>((resolve) => clock.setTimeout(resolve, latency))
    flying--
    return answer(String(input))
  }
  return { fetch, calls, most: () => most }
}

test('alternative domains: one scope', async () => {
  const clock = new FakeClock()
  const { fetch, calls } = server(clock)
  const throttle = oneScope({ clock, fetch, defaults: { jitter: false } })
  const all = ['https://toscrape.com/', 'https://books.toscrape.com/', 'https://other.example/'].map((url) =>
    throttle.fetch(url),
  )
  await clock.advance(1000)
  await Promise.all(all)
  assert.deepEqual(
    calls.map(([, at]) => at),
    [0, 0, 1000],
  )
})

test('alternative domains: 24 and 16 at a time, but never 40', async () => {
  const clock = new FakeClock()
  const { fetch, most } = server(clock, undefined, 100)
  const throttle = everyLevel({ clock, fetch })
  const get = (name: string) =>
    Array.from({ length: 40 }, () => throttle.fetch(`https://${name}.toscrape.com/`))
  const all = [...get('books'), ...get('quotes')]
  await clock.advance(50)
  const { scopes } = throttle.stats()
  assert.equal(scopes['toscrape.com']?.inFlight, 32)
  assert.ok(scopes['books.toscrape.com']!.inFlight <= 24 && scopes['quotes.toscrape.com']!.inFlight <= 16)
  await clock.advance(1000)
  await Promise.all(all)
  assert.equal(most(), 32)
})

test('endpoints: the slow one waits five seconds, the fast one 80 ms, and neither for the other', async () => {
  const clock = new FakeClock()
  const { fetch, calls } = server(clock)
  const throttle = perEndpoint({ clock, fetch })
  const all = ['slow', 'fast', 'fast', 'slow', 'fast'].map((name) =>
    throttle.fetch(`https://api.toscrape.com/${name}-endpoint`),
  )
  await clock.advance(5000)
  await Promise.all(all)
  const times = (name: string) => calls.filter(([url]) => url.includes(name)).map(([, at]) => at)
  assert.deepEqual(
    [times('slow'), times('fast')],
    [
      [0, 5000],
      [0, 80, 160],
    ],
  )
})

test('scraping API: a target that fails backs off alone, an API that fails alone', async () => {
  const clock = new FakeClock()
  const upstream = (status: number) =>
    new Response('', { headers: { 'x-upstream-status-code': String(status) } })
  let api = 200
  const answer = (url: string) =>
    api === 200
      ? upstream(url.includes('busy') ? 503 : 200)
      : new Response('', { status: api, headers: { 'retry-after': '7' } })
  const { fetch } = server(clock, answer)
  const throttle = scrapingApi({ clock, fetch })
  const get = (target: string) =>
    throttle.fetch(`https://api.toscrape.com/?url=${encodeURIComponent(target)}`)
  const steps = () =>
    ['api.toscrape.com', 'busy.example', 'calm.example'].map((name) => throttle.scope(name).stats.backoffStep)
  const both = [get('https://busy.example/'), get('https://calm.example/')]
  await clock.advance(100)
  await Promise.all(both)
  assert.deepEqual(steps(), [0, 1, 0])
  api = 429
  const refused = get('https://calm.example/')
  await clock.advance(1000)
  await refused
  assert.deepEqual(steps(), [1, 1, 0])
  assert.equal(throttle.scope('calm.example').stats.holdUntil, undefined, 'the Retry-After was not for it')
  assert.ok(throttle.scope('api.toscrape.com').stats.holdUntil! >= clock.now() + 7000 - 1000)
})

test('cost-capped: what it really cost counts, and the window bounds it', async () => {
  const clock = new FakeClock()
  const { fetch, calls } = server(clock, () => new Response('', { headers: { 'x-actual-cost': '7' } }))
  const throttle = costCapped({ clock, fetch })
  const get = () => throttle.fetch('https://api.toscrape.com/?browser')
  await Promise.all([get(), get()])
  assert.equal(throttle.scope('cost').stats.quotaLeft, 6)
  const more = Promise.all([get(), get()])
  await clock.advance(60_000)
  await more
  assert.deepEqual(
    calls.map(([, at]) => at),
    [0, 0, 0, 60_000],
  )
})

test('retry policy: 20 to 40 s twice, then 30 s and up to 2ⁿ, ten minutes at most; errors 3 to 7 s, up to 55 s', async () => {
  const event = { scope: 'x', at: 0, error: undefined, latency: undefined }
  for (const [random, refused, failed] of [
    [0, [20, 20, 30, 30, 30], [3, 6, 12, 24, 48, 55]],
    [1, [40, 40, 38, 46, 62], [7, 14, 28, 55, 55, 55]],
  ] as const) {
    const policy = new RetryPolicy(() => random)
    const after = (status: number | undefined) => {
      policy.onBad({ ...event, status })
      return policy.delay / 1000
    }
    assert.deepEqual(
      refused.map(() => after(429)),
      refused,
    )
    for (let n = 0; n < 20; n++) after(503)
    assert.equal(after(503), random === 0 ? 30 : 600)
    assert.deepEqual(
      failed.map(() => after(undefined)),
      failed,
    )
    policy.onGood()
    assert.equal(policy.delay, 0)
  }
  const clock = new FakeClock()
  const answers = [429, 429, 200, 200]
  const { fetch, calls } = server(clock, () => new Response('', { status: answers.shift() ?? 200 }))
  const throttle = withRetryPolicy({ clock, fetch }, () => 0.5)
  const all = [throttle.fetch('https://api.zyte.example/1'), throttle.fetch('https://api.zyte.example/2')]
  await clock.advance(120_000)
  await Promise.all(all)
  assert.deepEqual(
    calls.map(([url, at]) => [url.slice(-1), at]),
    [
      ['1', 0],
      ['1', 30_000],
      ['1', 60_000],
      ['2', 60_000],
    ],
  )
})

test('each runs by itself and ends', () => {
  const root = fileURLToPath(new URL('../..', import.meta.url))
  for (const name of [
    'domains',
    'endpoints',
    'scraping-api',
    'cost-capped',
    'retry-policy',
    'api-client',
    'llm',
    'shared',
  ]) {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ['--import', 'tsx', `examples/${name}.ts`],
      { cwd: root, encoding: 'utf8', timeout: 60_000 },
    )
    assert.equal(status, 0, `${name}: ${stderr}`)
    assert.ok(stdout.length > 5, `${name} says something`)
  }
})
