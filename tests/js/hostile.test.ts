/** No number, handle or option from JavaScript may panic the engine: a panic poisons the module for good. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigError, createThrottle } from 'autothrottle'
import { Engine, IDLE, WAIT } from 'autothrottle/engine'
import { Dice } from './dice.js'

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

test('200,000 calls with any numbers at all', () => {
  for (let seed = 1; seed <= 4; seed++) {
    const { next } = new Dice(seed)
    const pick = <T>(list: readonly T[]) => list[Math.floor(next() * list.length)]!
    const engine = new Engine({
      seed,
      maxWaiting: 200,
      defaults: {
        delay: 5,
        concurrency: 3,
        autothrottle: true,
        quota: [5, { limit: 9, window: 50, strict: true }],
      },
    })
    const handles = ['a', 'b', 'c'].map((name) => engine.scope(name))
    const tickets: number[] = []
    let clock = 0
    const any = () => (next() < 0.3 ? pick(odd) : next() * 1e4)
    const now = () => {
      if (next() < 0.1) return pick(odd)
      clock += next() * 20
      return clock
    }
    const scope = () => (next() < 0.1 ? any() : pick(handles))
    const ticket = () => (next() < 0.2 || tickets.length === 0 ? any() : pick(tickets))
    for (let call = 0; call < 50_000; call++) {
      try {
        switch (Math.floor(next() * 10)) {
          case 0:
          case 1:
            tickets.push(
              engine.submit(now(), next() < 0.5 ? [scope()] : [scope(), scope()], {
                cost: next() < 0.5 ? any() : next() * 3,
                priority: any(),
                delay: next() < 0.7 ? 0 : any(),
              }),
            )
            break
          case 2:
          case 3:
          case 4:
            for (let at = now(), answer = engine.poll(at); answer >= 0; answer = engine.poll(at))
              tickets.push(answer)
            break
          case 5:
            engine.settle(now(), ticket(), { status: any(), latencyMs: any(), cost: any() })
            break
          case 6:
            if (next() < 0.5) engine.cancel(now(), ticket())
            else engine.prioritize(now(), ticket(), any())
            break
          case 7:
            engine.hold(now(), scope(), next() * 30)
            break
          case 8:
            engine.peek(now(), [scope()], { cost: any() })
            engine.stats(scope())
            break
          default:
            if (next() < 0.5) engine.reset(now(), scope())
            else engine.configure(now(), scope(), { delay: any(), concurrency: any(), quota: any() })
        }
      } catch (error) {
        assert.ok(!(error instanceof WebAssembly.RuntimeError), `seed ${seed}, call ${call}: ${error}`)
        assert.ok(error instanceof Error, `seed ${seed}, call ${call}: ${String(error)}`)
      }
      if (tickets.length > 500) tickets.splice(0, 250)
    }
    assert.ok([WAIT, IDLE].includes(engine.poll(clock)) || engine.poll(clock) >= 0)
  }
})

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
