/**
 * Every method that the module shows is wired: what it forwards to is tested natively
 * (`tests/native/boundary.rs`).
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { build } from '../../js/wasm/load/build.js'
import { inflate } from '../../js/wasm/load/inflate.js'
import { load, loadFunctions } from '../../js/wasm/load/load.js'
import deflated from '../../pkg/autothrottle.deflated.js'
import deflatedSimulator from '../../pkg/simulator.deflated.js'

test('each method of the module is called once and answers', () => {
  const WasmEngine = load()
  const engine = new WasmEngine({ defaults: { delay: 0, slotDelay: 0, quota: 5, jitter: false } })
  const called = new Set<string>()
  const seen = new Proxy(engine, {
    get(target, name) {
      called.add(String(name))
      const value = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  const [a, b] = [seen.scope('a'), seen.intern('b')]
  assert.deepEqual([seen.find('b'), seen.find('c'), seen.scopes(), seen.name(a)], [b, -1, 2, 'a'])
  assert.equal(seen.keep_alive(b), true)
  const both = Float64Array.of(a, b)
  const one = Float64Array.of(1)
  const first = seen.submit(0, a, 1, 0, 0)
  const second = seen.submit_many(0, both, one, 0, 0)
  assert.deepEqual([seen.poll(0), seen.waiting(), seen.in_flight()], [first, 1, 1])
  assert.deepEqual([seen.poll(0), seen.wake_at, seen.reason, seen.reason_scope], [-2, Infinity, 2, a])
  seen.watch(2)
  assert.equal(seen.settle(1, first, 200, 1, 1, 0), 1)
  assert.equal(seen.has_notices, true)
  assert.equal(seen.take_notices().length, 1)
  assert.equal(seen.poll(1), second)
  const more = Float64Array.of(NaN, 50, NaN, NaN, NaN, NaN, NaN)
  assert.equal(seen.settle_with(2, second, 429, 1, 1, 0, 'retry-after: 3\n', more), 2)
  assert.equal(seen.asked_ms, 3000)
  seen.prioritize(2, second, 5)
  seen.left(2, second)
  seen.route(2, second, 'GET', 'https://a/b')
  seen.cancel(2, second)
  assert.equal(seen.waiting(), 0)
  seen.reset(2, a)
  seen.reset(2, b)
  seen.hold(2, b, 10)
  assert.equal(seen.peek(2, Float64Array.of(b), one), 12)
  const third = seen.send_at_once(20, a, 1, 0)
  assert.ok(third >= 0)
  seen.settle(20, third, 200, 1, 1, 0)
  const fourth = seen.send_many_at_once(21, both, one, 0)
  assert.ok(fourth >= 0)
  seen.settle(21, fourth, 200, 1, 1, 0)
  const fifth = seen.send_at_once(22, a, 1, 0)
  assert.ok(fifth >= 0)
  assert.equal(seen.send_at_once(22, a, 1, 0), -1)
  assert.equal(seen.send_at_once(22, a, 6, 0), -4)
  assert.deepEqual([seen.refused_scope, seen.refused_path], ['a', 'defaults.quota'])
  assert.ok(Number.isNaN(seen.refused_ms))
  seen.pause(22, b)
  seen.resume(22, b)
  seen.pause_all(false)
  seen.configure(22, b, { delay: 7 })
  assert.ok(seen.adjust(22, b, 21, 1, 2))
  assert.ok(!seen.adjust(22, b, 21, 1, -1))
  assert.equal(seen.scope_stats(22, b).delayMs, 7)
  assert.equal(seen.crawl_delay(22, a, 500), 0)
  assert.equal(seen.stats(22).scopes.a.delayMs, 500)
  assert.equal(seen.warn_threshold(), 500)
  const adopted = seen.adopt(22, both, one, 0, 0, 5)
  assert.deepEqual([adopted >= 0, seen.in_flight()], [true, 2])
  assert.ok(seen.submit_again(22, both, one, 0, 0, 7) >= 0)
  const snapshot = seen.snapshot(22, 1e12)
  seen.release(a)
  seen.restore(snapshot, 22, 1e12)
  assert.equal(seen.scope_stats(22, seen.find('a')).delayMs, 500)
  assert.ok(WasmEngine.reasons().includes('hold'))
  const { check_driver_options, nearest, parse_hints, parse_crawl_delay } = loadFunctions()
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
