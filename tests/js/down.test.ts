/** Failing fast: hosts that are down, waits that are known to be in vain, stalls that a listener hears of. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createThrottle, ScopeDownError, type ThrottleOptions, TimeoutError } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

const page = 'https://a.example/page'
const refused = () => Promise.reject(Object.assign(new TypeError('fetch failed'), { code: 'ECONNREFUSED' }))

function make(options: ThrottleOptions, answer: () => Promise<Response>) {
  const clock = new FakeClock()
  let sent = 0
  const fetch = (async () => {
    sent++
    return answer()
  }) as typeof globalThis.fetch
  return { clock, throttle: createThrottle({ clock, fetch, seed: 1, ...options }), sent: () => sent }
}

test('fifty requests to a dead host with retries are over in two minutes', async () => {
  const { clock, throttle, sent } = make({ downAfter: 60_000, retry: { limit: 3 } }, refused)
  const errors: unknown[] = []
  for (let count = 0; count < 50; count++) throttle.fetch(page).catch((error) => errors.push(error))
  await clock.advance(120_000)
  assert.equal(errors.length, 50)
  const down = errors.filter((error) => error instanceof ScopeDownError)
  assert.ok(down.length >= 45 && sent() < 20, `${down.length} down, ${sent()} sent`)
  assert.match(String(down[0]), /^ScopeDownError: a\.example is down: no answer has come for \d+ s$/)
  const { waiting, inFlight } = throttle.stats()
  assert.deepEqual([waiting, inFlight], [0, 0])
})

test('while a host is down one request at a time looks, and an answer ends it', async () => {
  let isUp = false
  const answer = () => (isUp ? Promise.resolve(new Response('ok')) : refused())
  const { clock, throttle, sent } = make(
    { delay: 30_000, jitter: false, downAfter: 50_000, retry: { limit: 3 } },
    answer,
  )
  const all = Promise.allSettled(Array.from({ length: 5 }, () => throttle.fetch(page)))
  await clock.advance(125_000)
  await all
  await assert.rejects(throttle.fetch(page), ScopeDownError, 'its pace does not let it go')
  await clock.advance(400_000)
  const before = sent()
  const probe = throttle.fetch(page).catch((error) => error)
  await assert.rejects(throttle.fetch(page), ScopeDownError, 'another one looks')
  assert.equal((await probe).code, 'ECONNREFUSED', 'it is not sent again')
  assert.equal(sent(), before + 1)
  isUp = true
  await clock.advance(400_000)
  assert.equal((await throttle.fetch(page)).status, 200)
  const next = throttle.fetch(page)
  await clock.advance(400_000)
  assert.equal((await next).status, 200)
})

test('a timeout that a known hold outlasts is refused at once', async () => {
  const { clock, throttle } = make({ delay: 0 }, async () => new Response('ok'))
  throttle.scope('a.example').hold(10_000)
  for (const ask of [
    () => throttle.fetch(page, { throttle: { timeout: 5000 } }),
    () => throttle.run(page, () => 1, { timeout: 5000 }),
    () => throttle.acquire({ scopes: ['b', 'a.example'] }, { timeout: 5000 }),
  ])
    await assert.rejects(ask, (error: TimeoutError) => {
      assert.ok(error instanceof TimeoutError && !error.isSent)
      assert.match(error.message, /would be held for 10000 ms, longer than its timeout \(5000 ms\) allows/)
      return true
    })
  assert.deepEqual([clock.now(), throttle.stats().waiting], [0, 0])
  const patient = throttle.fetch(page, { throttle: { timeout: 10_001 } })
  await clock.advance(10_000)
  assert.equal((await patient).status, 200)
})

test('a stall is told after two minutes, to who listens or else as a warning', async () => {
  for (const isHeard of [true, false]) {
    const { clock, throttle } = make({}, async () => new Response('', { status: 503 }))
    const told: string[] = []
    const tell = (what: string) => told.push(`${what} at ${clock.now() < 400_000}`)
    if (isHeard) throttle.addEventListener('stall', ({ scope }) => tell(`stall ${scope}`))
    throttle.addEventListener('warning', ({ code, scope }) => tell(`${code} ${scope}`))
    const all = Promise.all(Array.from({ length: 12 }, () => throttle.fetch(page)))
    await clock.advance(3_600_000)
    await all
    assert.deepEqual(told, ['stall a.example at true'])
  }
})
