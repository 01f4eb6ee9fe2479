/** `retry` of `run`, `wrap` and `map`, and costs that are corrected for each scope. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ConfigError, createThrottle, type ThrottleOptions } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

const page = 'https://a.example/'

function make(statuses: number[], options: ThrottleOptions = {}) {
  const clock = new FakeClock()
  const at: number[] = []
  const send = async () => {
    at.push(clock.now())
    const status = statuses.shift() ?? 200
    return new Response('x', { status, headers: status === 429 ? { 'retry-after': '2' } : {} })
  }
  const throttle = createThrottle({ clock, fetch: send, rate: 10, backoff: { jitter: false }, ...options })
  const warned: string[] = []
  throttle.addEventListener('warning', ({ message }) => warned.push(message))
  return { clock, throttle, at, send, warned }
}

test('the function is called again, not before the server allows it, in its place by age', async () => {
  for (const how of ['result', 'error', 'permit.fetch', 'nested'] as const) {
    const { clock, throttle, at, send } = make([429, 503])
    const works = {
      result: send,
      error: async () => {
        const response = await send()
        if (!response.ok) throw Object.assign(new Error('refused'), { response })
        return response
      },
      'permit.fetch': ({ fetch }: { fetch: (url: string, init: RequestInit) => Promise<Response> }) =>
        fetch(page, { method: 'POST' }),
      nested: () => throttle.fetch(page),
    }
    const got = throttle.run(page, works[how], { retry: { limit: 2 } })
    await clock.advance(20_000)
    assert.equal((await got).status, 200, how)
    assert.equal(at.length, 3, how)
    assert(at[1]! >= 2000, how)
  }
})

test('wrap and map take it too; true is the retry of the throttle', async () => {
  const { clock, throttle, at, send, warned } = make([503, 503, 503], { retry: { limit: 1 } })
  const wrapped = throttle.wrap(send, page, { retry: true })()
  await clock.advance(20_000)
  assert.equal((await wrapped).status, 503)
  const mapped = throttle.map([page], send, { retry: { limit: 3 } }).next()
  await clock.advance(20_000)
  assert.equal(((await mapped).value as Response).status, 200)
  assert.equal(at.length, 4)
  assert.deepEqual(warned, [])
})

test('an own retry that makes no sense is refused', async () => {
  const { throttle } = make([])
  const wrong: [unknown, RegExp][] = [
    [true, /retry: want retry of the throttle, which true means, or \{ limit \}; got true/],
    [3, /retry: want true or \{ limit: 3 \}; got 3/],
    [{ limit: -1 }, /retry\.limit: want a whole number from 0; got -1/],
    [{ limit: 1, statusCodes: [500] }, /retry\.statusCodes/],
  ]
  for (const [retry, message] of wrong) {
    await assert.rejects(
      throttle.run(page, () => 1, { retry } as object),
      message,
    )
    assert.throws(() => throttle.map([], () => 1, { retry } as object), message)
  }
})

test('the retry of the throttle says where it would have had an effect', async () => {
  const { clock, throttle, at, send, warned } = make([503, 503], { retry: { limit: 5 } })
  const all = Promise.all([throttle.run(page, send), throttle.run(page, send)])
  await clock.advance(20_000)
  await all
  assert.equal(at.length, 2)
  assert.equal(warned.length, 1)
  assert.match(warned[0]!, /retry has no effect on functions of run, wrap and map: \{ retry: true \}/)
})

test('M1: a cost for each scope; one number where they were to cost different ones is refused', async () => {
  const scopes = { rpm: { quota: 60 }, tpm: { quota: 10_000 } }
  const throttle = createThrottle({ clock: new FakeClock(), delay: 0, slotDelay: 0, scopes })
  const target = { scopes: { rpm: 1, tpm: 500 } }
  const left = () => [throttle.scope('rpm').stats.quotaLeft, throttle.scope('tpm').stats.quotaLeft]
  const first = await throttle.acquire(target)
  first.settle({ status: 200, cost: { tpm: 300 } })
  assert.deepEqual(left(), [59, 9700])

  throttle.scope('rpm').reset()
  throttle.scope('tpm').reset()
  const second = await throttle.acquire({ scopes: { rpm: 1, tpm: 500 } }, { priority: 1 })
  assert.throws(
    () => second.settle({ status: 200, cost: 300 }),
    ({ code, message }: ConfigError) =>
      code === 'ERR_CONFIG' && /cost: want a map, .*\{ "tpm": 300 \}; got 300/.test(message),
  )
  assert.equal(throttle.stats().inFlight, 0)
  const third = await throttle.acquire({ scopes: ['rpm', 'tpm'] })
  assert.throws(
    () => third.settle({ cost: { tpn: 1 } }),
    /cost\.tpn: want a scope of the request \(rpm, tpm\)/,
  )
  const fourth = await throttle.acquire({ scopes: ['rpm', 'tpm'] })
  fourth.settle({ status: 200, cost: 2 })
})
