/** What a request costs: a rate that counts it, and what is known of it only after the answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigError, CostExceedsQuotaError, createThrottle } from '../../js/index.js'
import { FakeClock } from '../../js/testing.js'

const TOKENS = { limit: 30_000, per: 60_000, burst: 30_000 }

function throttleOf(options: object) {
  const clock = new FakeClock()
  return { clock, throttle: createThrottle({ clock, jitter: false, ...options }) }
}

/** When a request of this cost leaves. */
async function leaves(made: ReturnType<typeof throttleOf>, scopes: Record<string, number>): Promise<number> {
  const waiting = made.throttle.acquire({ scopes })
  await made.clock.advance(120_000)
  const permit = await waiting
  permit.settle()
  return permit.sentAt
}

test('a rate is a bucket of cost that refills evenly', async () => {
  const made = throttleOf({ scopes: { tokens: { rate: TOKENS } } })
  const { throttle } = made
  throttle.acquire({ scopes: { tokens: 20_000 } })
  throttle.acquire({ scopes: { tokens: 10_000 } })
  assert.equal(throttle.peek({ scopes: { tokens: 15_000 } }).at, 30_000)
  assert.equal(throttle.peek({ scopes: { tokens: 0 } }).reason, undefined, 'what costs nothing never waits')
  await assert.rejects(throttle.acquire({ scopes: { tokens: 30_001 } }), (error: CostExceedsQuotaError) => {
    assert.ok(error instanceof CostExceedsQuotaError)
    assert.equal(error.path, 'scopes.tokens.rate')
    return true
  })
  assert.equal(await leaves(made, { tokens: 500 }), 1000)
})

for (const when of ['before', 'after'] as const)
  test(`a cost is corrected ${when} the permit is settled`, async () => {
    const made = throttleOf({ scopes: { tokens: { rate: TOKENS }, calls: { delay: 0 } } })
    const { throttle } = made
    const permit = await throttle.acquire({ scopes: { tokens: 1000, calls: 1 } })
    if (when === 'after') permit.settle({ status: 200 })
    const { adjust } = permit
    adjust({ tokens: 20_000 })
    adjust({ tokens: 31_000 })
    assert.equal(throttle.peek({ scopes: { tokens: 500 } }).at, 3000, '1500 are missing')
    if (when === 'before') permit.settle({ status: 200, cost: { tokens: 30_000 } })
    else adjust({ tokens: 30_000 })
    assert.equal(throttle.peek({ scopes: { tokens: 500 } }).at, 1000, 'told twice, counted once')
    adjust({ tokens: 0 })
    assert.equal(throttle.peek({ scopes: { tokens: 30_000 } }).reason, undefined)
    assert.throws(() => adjust({ other: 1 }), ConfigError)
    assert.throws(() => adjust({ tokens: -1 }), ConfigError)
    assert.throws(() => adjust(1), /cost: want a map/)
  })

test('a settled cost is where a later correction begins', async () => {
  const { throttle } = throttleOf({ scopes: { tokens: { rate: TOKENS } } })
  const permit = await throttle.acquire({ scopes: { tokens: 1000 } })
  permit.settle({ status: 200, cost: 20_000 })
  permit.adjust(25_000)
  assert.equal(throttle.peek({ scopes: { tokens: 5000 } }).reason, undefined)
  assert.equal(throttle.peek({ scopes: { tokens: 5001 } }).reason, 'rate')
})

test('what sent its request with `fetch` is corrected through its permit', async () => {
  const answers = [429, 200]
  const made = throttleOf({
    retry: { limit: 1, statusCodes: [429] },
    getScopes: () => ({ tokens: 1000 }),
    fetch: async () => new Response(null, { status: answers.shift()! }),
    scopes: { tokens: { rate: TOKENS, backoff: { minDelay: 1 } } },
  })
  const { throttle, clock } = made
  const run = throttle.run('https://a.example/', async ({ fetch, adjust }) => {
    const { status } = await fetch('https://a.example/')
    adjust({ tokens: 29_000 })
    return status
  })
  await clock.advance(5000)
  assert.equal(await run, 200)
  assert.equal(answers.length, 0)
  const { at } = throttle.peek({ scopes: { tokens: 30_000 } })
  assert.ok(at >= 58_000, `29,000 are there again 58 s later: ${at}`)
})
