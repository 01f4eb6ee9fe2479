/**
 * No handle or option from JavaScript may panic the engine: a panic poisons the module for good. Random calls
 * with any numbers are in `tests/native/boundary.rs`.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigError, createThrottle } from 'autothrottle'
import { Engine } from 'autothrottle/engine'

const odd = [
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  -1,
  -0,
  0.5,
  1e18,
  -1e18,
  2 ** 53,
  2 ** 31,
  2 ** 32,
  Number.MIN_VALUE,
  Number.MAX_VALUE,
]

test('options of any kind are an error or a throttle, never a panic', () => {
  const cyclic: Record<string, unknown> = { delay: 1 }
  cyclic.defaults = cyclic
  const values = [
    ...odd,
    'x',
    '',
    true,
    [],
    [1],
    {},
    () => {},
    Symbol('s'),
    10n,
    new Date(0),
    /x/,
    new Map(),
    cyclic,
    new Uint8Array(3),
    Object.create(null),
  ]
  for (const value of values) {
    for (const options of [
      { defaults: value },
      { scopes: value },
      { scopes: { x: value } },
      { defaults: { delay: value, jitter: value, autothrottle: value, quota: value } },
      { seed: value, concurrency: value },
      { [Object.getPrototypeOf(Object(value)) === null ? 'bare' : String(value)]: 1 },
      { retry: value, robots: value, hints: value, getHints: value, getScopes: value, debug: value },
      { retry: { limit: value, statusCodes: [value], maxRetryAfter: value, longRetryAfter: value } },
      { robots: { userAgent: value, obey: value, maxDelay: value, rules: value } },
      { hints: { x: value, y: { resetUnit: value, limit: value } } },
    ]) {
      try {
        createThrottle(options as never)
      } catch (error) {
        assert.ok(error instanceof ConfigError, String(error))
      }
    }
  }
  createThrottle().stats()
})

test('an unknown ticket or handle changes nothing', () => {
  const engine = new Engine({ defaults: { delay: 0, slotDelay: 0 } })
  const scope = engine.scope('a')
  const ticket = engine.submit(0, [scope])
  assert.equal(engine.poll(0), ticket)
  engine.settle(0, ticket + 1, { status: 200 })
  engine.settle(0, ticket + 2 ** 32, { status: 200 })
  engine.cancel(0, 7)
  assert.equal(engine.inFlight, 1)
  assert.throws(() => engine.submit(0, [scope + 1]), TypeError)
  assert.throws(() => engine.submit(0, []), TypeError)
  assert.throws(() => engine.stats(99), TypeError)
  engine.settle(0, ticket, { status: 200 })
  assert.equal(engine.inFlight, 0)
})
