/** The engine's boundary: a call that makes no sense leaves it as it was, for the next call, too. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { ConfigError, createThrottle, type EngineOptions } from 'autothrottle'
import { Engine, IDLE, type Outcome, WAIT } from 'autothrottle/engine'
import { build } from '../../js/wasm/load/build.js'
import { inflate } from '../../js/wasm/load/inflate.js'
import { prepare, WasmEngine } from '../../js/wasm/load/load.js'
import deflated from '../../pkg/autothrottle.deflated.js'
import { check_driver_options, nearest, parse_crawl_delay, parse_hints } from '../../pkg/autothrottle.js'
import deflatedSimulator from '../../pkg/simulator.deflated.js'

const PLAIN = { defaults: { delay: 0, slotDelay: 0, concurrency: 9, jitter: false } } as const
const REFUSAL = { status: 429, headers: { 'retry-after': '100' } } as const

/** An engine with one request in flight. */
function sent(options: EngineOptions = PLAIN) {
  const engine = new Engine(options)
  const scope = engine.scope('a')
  const ticket = engine.submit(0, [scope])
  assert.equal(engine.poll(0), ticket)
  return { engine, scope, ticket }
}

/** Calls that are wrong, each with what it throws, if it does. */
const WRONG: readonly [string, unknown, unknown][] = [
  ['a bogus ticket', { ...REFUSAL }, -1],
  ['no ticket at all', { ...REFUSAL }, Number.NaN],
  ['a retry of a bogus ticket', { status: 200, retryDelay: 50 }, -1],
  ['a retry of a foreign ticket', { status: 503, retry: true }, 2 ** 40],
  ['single scopes of a bogus ticket', { status: 200, scopes: [{ scope: 0, delay: 100_000 }] }, -1],
  ['headers that are null', { status: 429, headers: null }, undefined],
  ['headers that are no pairs', { status: 429, headers: [[1, 2]] }, undefined],
  ['hints that are null', { status: 429, hints: null }, undefined],
  ['a status in words', { status: '429' }, undefined],
  ['a latency in words', { status: 200, latencyMs: '5' }, undefined],
  [
    'scopes that throw in the middle',
    {
      status: 200,
      *scopes() {
        yield { scope: 0, delay: 100_000 }
        throw new RangeError('in the middle')
      },
    },
    undefined,
  ],
]

for (const [what, outcome, bogus] of WRONG) {
  test(`${what}: nothing has changed, also not for the next call`, () => {
    const { engine, scope, ticket } = sent()
    const wrong = typeof (outcome as { scopes?: unknown }).scopes === 'function'
    const given = (wrong ? { ...(outcome as object), scopes: generated(outcome) } : outcome) as Outcome
    if (bogus === undefined) assert.throws(() => engine.settle(10, ticket, given))
    else engine.settle(10, bogus as number, given)
    assert.equal(engine.inFlight, 1, 'the slot is still taken')
    engine.settle(10, ticket, { status: 200 })
    assert.deepEqual([engine.inFlight, engine.waiting], [0, 0])
    assert.equal(engine.stats(scope).holdUntil, undefined)
    assert.equal(engine.stats(scope).backoffStep, 0)
    assert.equal(engine.poll(10), IDLE)
  })
}

function generated(outcome: unknown): Iterable<never> {
  return (outcome as { scopes: () => Iterable<never> }).scopes()
}

test('settle gives the end of a request, and the wait that the server asked for', () => {
  const { engine, ticket } = sent({ ...PLAIN, retry: { limit: 1, maxRetryAfter: 5000 } } as EngineOptions)
  assert.equal(engine.settle(5, 77, REFUSAL), 'unknown')
  assert.ok(Number.isNaN(engine.askedMs))
  assert.equal(engine.settle(5, ticket, { ...REFUSAL, retry: true }), 'too-long')
  assert.equal(engine.askedMs, 100_000)
  assert.equal(engine.settle(5, ticket, REFUSAL), 'unknown', 'each once')
  const ladder = { ...PLAIN.defaults, backoff: {} }
  const { engine: other, ticket: next } = sent({ defaults: ladder })
  assert.equal(other.settle(5, next, { status: 503, retry: true }), 'again')
  assert.deepEqual([other.waiting, other.inFlight], [1, 0])
  assert.equal(other.poll(5), WAIT)
  const at = other.wakeAt
  assert.equal(other.poll(at), next, 'its ticket waited anew')
  assert.equal(other.settle(at, next, { status: 200, retry: true }), 'over')
})

test('a request that cannot be sent twice is over, and no request was cancelled', () => {
  const once = { retry: true, replayable: false }
  for (const [asked, waits] of [
    [{}, 0],
    [{ 'retry-after': '2' }, 3000],
    [{ 'retry-after-ms': '70' }, 70],
  ] as const) {
    const { engine, ticket } = sent({ ...PLAIN, retry: { limit: 1 } } as EngineOptions)
    assert.equal(engine.settle(5, ticket, { status: 503, headers: asked, ...once }), 'not-replayable')
    assert.equal(engine.askedMs, waits, 'how long one in its place waits')
    assert.deepEqual([engine.waiting, engine.inFlight, engine.stats().cancelled], [0, 0, 0])
  }
  const { engine, ticket } = sent(PLAIN)
  assert.equal(engine.settle(5, ticket, { status: 404, ...once }), 'over')
})

test('notices: what answers changed, as objects', () => {
  const backoff = { maxHold: 300_000 }
  const { engine, ticket } = sent({ ...PLAIN, defaults: { ...PLAIN.defaults, delay: 10, backoff } })
  engine.watch(2)
  assert.equal(engine.hasNotices, false)
  engine.settle(10, ticket, { status: 429, headers: { 'retry-after': '3600' } })
  assert.equal(engine.hasNotices, true)
  const pace = { scope: 'a', delayMs: 1000, step: 1, holdUntil: 300_010 }
  assert.deepEqual(engine.takeNotices(), [
    { kind: 'backoff', ...pace },
    { kind: 'delay', ...pace },
    { kind: 'hold', ...pace, askedMs: 3_600_000 },
    { kind: 'answer', ...pace, isBad: true, delayBeforeMs: 10, inFlight: 0 },
    {
      kind: 'wait-capped',
      scope: 'a',
      setting: 'backoff.maxHold',
      path: 'backoff.maxHold',
      why: 'the server asked for 3600 s, and 300 s are kept',
    },
  ])
  assert.deepEqual(engine.takeNotices(), [])
})

test('find makes no scope, and a scope that there is not yet allows everything', () => {
  const engine = new Engine(PLAIN)
  assert.equal(engine.find('a'), -1)
  assert.equal(engine.scopes, 0)
  assert.deepEqual(engine.peek(7, [-1]), { at: 7, reason: undefined, scope: undefined })
  const scope = engine.scope('b')
  engine.hold(7, scope, 100)
  assert.equal(engine.find('b'), scope)
  assert.deepEqual(engine.peek(7, [-1, scope]), { at: 107, reason: 'hold', scope: 'b' })
  engine.pause(7)
  assert.deepEqual(engine.peek(7, [-1]), { at: Number.POSITIVE_INFINITY, reason: 'paused', scope: undefined })
  assert.throws(() => engine.peek(7, []), TypeError)
})

test('names that are no strings and numbers that are none are errors', () => {
  const engine = new Engine(PLAIN)
  const scope = engine.scope('a')
  const five = '5' as unknown as number
  for (const name of [5, null, undefined, {}, Symbol('a')]) {
    assert.throws(() => engine.scope(name as unknown as string), TypeError)
  }
  assert.equal(engine.scopes, 1)
  assert.throws(() => engine.submit(five, [scope]), TypeError)
  for (const options of [{ cost: five }, { priority: five }, { delay: five }, { cost: [five] }]) {
    assert.throws(() => engine.submit(0, [scope], options), TypeError)
  }
  assert.throws(() => engine.submit(0, [`${scope}` as unknown as number]), TypeError)
  assert.equal(engine.waiting, 0)
})

test('a scope called __proto__ is in stats and snapshots', () => {
  const engine = new Engine(PLAIN)
  const name = '__proto__'
  engine.hold(0, engine.scope(name), 5000)
  const { scopes } = engine.stats()
  assert.deepEqual(Object.keys(scopes), [name])
  assert.equal(Object.getPrototypeOf(scopes), Object.prototype)
  const snapshot = JSON.parse(JSON.stringify(engine.snapshot(0, 1e12)))
  assert.deepEqual(Object.keys(snapshot.scopes), [name])
  const next = new Engine(PLAIN)
  next.restore(snapshot, 100, 1e12)
  assert.equal(next.stats(next.scope(name), 100).holdUntil, 5100)
})

describe('every method that the module shows', () => {
  test('each method of the module is called once and answers', () => {
    prepare()
    const defaults = { delay: 0, slotDelay: 0, quota: 5, jitter: false }
    const engine = new WasmEngine({ defaults, retry: { limit: 2 } })
    const called = new Set<string>()
    const seen = new Proxy(engine, {
      get(target, name) {
        called.add(String(name))
        const value = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    const [a, b] = [seen.scope_of('a'), seen.intern('b')]
    assert.deepEqual([seen.find('b'), seen.find('c'), seen.scopes], [b, -1, 2])
    assert.equal(seen.keepAlive(b), true)
    const both = Float64Array.of(a, b)
    const one = Float64Array.of(1)
    const first = seen.submit_one(0, a, 1, 0, 0)
    const second = seen.submit_again(0, both, one, 0, 0, 0)
    assert.deepEqual([seen.poll(0), seen.waiting, seen.inFlight], [first, 1, 1])
    assert.deepEqual([seen.poll(0), seen.wakeAt, seen.reason], [-2, Infinity, 'concurrency'])
    assert.equal(seen.reasonScope, 'a')
    seen.watch(2)
    assert.equal(seen.settle_plain(1, first, 200, 1, 1, 0), 1 + 8 * Number(seen.hasNotices))
    assert.equal(seen.hasNotices, true)
    assert.equal(seen.take_notices().length, 1)
    assert.equal(seen.poll(1), second)
    const told = Float64Array.of(429, 1, 1, 0, 50)
    assert.equal(seen.settle_with(2, second, told, 'retry-after: 3\n', NaN), 2)
    assert.equal(seen.askedMs, 3000)
    seen.prioritize(2, second, 5)
    seen.sentAt(2, second)
    assert.equal(seen.wantsRoute(second, false), false)
    seen.route(2, second, 'GET', 'https://a/b')
    seen.cancel(2, second)
    assert.equal(seen.waiting, 0)
    seen.reset(2, a)
    seen.reset(2, b)
    seen.hold(2, b, 10)
    assert.equal(seen.peek_at(2, Float64Array.of(b), one), 12)
    const third = seen.send_at_once(20, a, 1, 0)
    assert.ok(third >= 0)
    seen.settle_plain(20, third, 200, 1, 1, 0)
    const fourth = seen.send_many_at_once(21, both, one, 0)
    assert.ok(fourth >= 0)
    seen.settle_plain(21, fourth, 200, 1, 1, 0)
    const fifth = seen.send_at_once(22, a, 1, 0)
    assert.ok(fifth >= 0)
    assert.equal(seen.send_at_once(22, a, 1, 0), -1)
    assert.equal(seen.settle_plain(22, first, NaN, NaN, NaN, 0), 8 * Number(seen.hasNotices), 'it is over')
    assert.equal(seen.settle_lines(22, first, 200, 1, 'retry-after: 3\n', NaN), Number(seen.hasNotices))
    assert.equal(seen.send_at_once(22, a, 6, 0), -4)
    assert.deepEqual([seen.refused_scope, seen.refused_path], ['a', 'defaults.quota'])
    assert.ok(Number.isNaN(seen.refused_ms))
    seen.pause(22, b)
    seen.resume(22, b)
    seen.resume(22)
    seen.configure_scope(22, b, { delay: 7 })
    assert.ok(seen.adjust_cost(22, b, 21, 1, 2))
    assert.ok(!seen.adjust_cost(22, b, 21, 1, -1))
    assert.equal(seen.stats_of(22, b).delayMs, 7)
    assert.equal(seen.crawl_delay(22, a, 500), 0)
    assert.equal(seen.stats_of(22).scopes.a.delayMs, 500)
    assert.equal(seen.warnThreshold, 500)
    assert.deepEqual([seen.retries('put'), seen.retries('POST')], [2, 0])
    const adopted = seen.adopt_sent(22, both, one, 0, 0, 5)
    assert.deepEqual([adopted >= 0, seen.inFlight], [true, 2])
    assert.ok(seen.submit_again(22, both, one, 0, 0, 7) >= 0)
    const snapshot = seen.snapshot(22, 1e12)
    seen.release(a)
    seen.restore_from(snapshot, 22, 1e12)
    assert.equal(seen.stats_of(22, seen.find('a')).delayMs, 500)
    assert.equal(nearest('dellay', 'rate\ndelay'), 'delay')
    assert.throws(() => check_driver_options({ debug: 1, fetch: () => 1 }))
    assert.equal(parse_hints('retry-after: 3\n', 429, NaN, 0).delayMs, 3000)
    assert.equal(parse_crawl_delay(new TextEncoder().encode('User-agent: *\nCrawl-delay: 2'), 'bot'), 2000)
    const all = Object.getOwnPropertyNames(Object.getPrototypeOf(engine))
    const missing = all.filter(
      (name) => !called.has(name) && !['constructor', 'free', '__destroy_into_raw'].includes(name),
    )
    assert.deepEqual(missing, [])
    engine.free()
  })

  test('however the modules travel, they arrive whole', () => {
    const { autothrottle, simulator } = build.modules
    for (const [bytes, want] of [
      [inflate(deflated), autothrottle],
      [inflate(deflatedSimulator), simulator],
    ] as const)
      assert.equal(createHash('sha256').update(bytes).digest('hex'), want)
  })
})

/**
 * No handle or option from JavaScript may panic the engine: a panic poisons the module for good. Random
 * calls with any numbers are in `tests/native/boundary.rs`.
 */

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
