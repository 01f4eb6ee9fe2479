/**
 * What is known of the store's clock, from samples of which each is off by half its way at most; and what the
 * transport asks the store for.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { COMPETE, RELEASE, RENEW } from '../../js/shared/redis/scripts.js'
import type { Store } from '../../js/shared/redis/store.js'
import { StoreClock } from '../../js/shared/redis/store-clock.js'
import { RedisTransport } from '../../js/shared/redis/transport.js'

test('the quickest of the last sixteen answers counts', () => {
  const clock = new StoreClock()
  assert.equal(clock.offsetMs, undefined)
  // The store is 1000 ms ahead. A slow way there makes it look further behind.
  clock.sample(0, 40, 1000 + 35)
  assert.equal(clock.offsetMs, 1015)
  clock.sample(100, 102, 1000 + 101)
  assert.equal(clock.offsetMs, 1000)
  clock.sample(200, 240, 1000 + 205)
  assert.equal(clock.offsetMs, 1000)
  // The quick one is forgotten after sixteen others.
  for (let at = 300; at < 1800; at += 100) clock.sample(at, at + 20, 1000 + at + 11)
  assert.equal(clock.offsetMs, 1001)
})

test('a clock that was set is believed at once', () => {
  const clock = new StoreClock()
  for (let at = 0; at < 1000; at += 100) clock.sample(at, at + 2, 1000 + at + 1)
  clock.sample(1000, 1002, 61_000 + 1001)
  assert.equal(clock.offsetMs, 61_000)
  clock.sample(1100, 1102, -59_000 + 1101)
  assert.equal(clock.offsetMs, -59_000)
})

test('a clock that drifts is no clock that was set', () => {
  const clock = new StoreClock()
  for (let at = 0; at < 100_000; at += 500) {
    clock.sample(at, at + 2, 1000 + at * 1.0001 + 1)
    assert.ok(Math.abs(clock.offsetMs! - (1000 + at * 0.0001)) < 2, String(clock.offsetMs))
  }
})

test('a grant is made ahead by one and a half slow round trips, and by 5 ms at least', () => {
  const clock = new StoreClock()
  assert.equal(clock.leadMs, 5)
  const far = new StoreClock()
  for (let at = 0; at < 16; at++) far.sample(at * 100, at * 100 + 50 + (at % 4), at * 100 + 25)
  assert.equal(far.leadMs, 1.5 * 53)
})

test('commands that waited for a connection do not put grants farther ahead', () => {
  const clock = new StoreClock()
  const sample = (at: number, tripMs: number) => clock.sample(at, at + tripMs, at + tripMs / 2)
  for (let at = 0; at < 16; at++) sample(at * 500, 1)
  // A store that was away for some seconds: what waited is answered at once when it is back.
  for (const [at, tripMs] of [
    [8000, 1400],
    [8500, 900],
    [9000, 400],
  ] as const)
    sample(at, tripMs)
  assert.equal(clock.leadMs, 5)
  // A way that has become slow is one soon.
  for (let at = 20; at < 30; at++) sample(at * 500, 100)
  assert.equal(clock.leadMs, 150)
  for (let at = 30; at < 40; at++) sample(at * 500, 1)
  assert.equal(clock.leadMs, 5)
})

test('a lease that is given to a process that has closed meanwhile is given back', async () => {
  const asked: { script: string; args: readonly string[]; answer: (what: unknown) => void }[] = []
  const store: Store = {
    isCluster: false,
    publish: async () => 1,
    run: (script, _, args) => {
      if (script !== COMPETE && script !== RELEASE) return Promise.resolve(['1', '0'])
      return new Promise((answer) => asked.push({ script, args, answer }))
    },
    subscriber: async () => {
      return { isSharded: false, subscribe: async () => {}, unsubscribe: async () => {}, close: () => {} }
    },
  }
  const transport = new RedisTransport(store, 'crawl')
  const clock = { now: () => 0, wallNow: () => 0, setTimeout: () => 0, clearTimeout: () => {} }
  const heard = { heard: () => {}, gone: () => {}, vacant: () => {}, fenced: () => {}, deaf: () => {} }
  transport.open({ id: 'me', clock, ...heard })
  const lease = transport.compete(0)
  while (asked.length === 0) await undefined
  const closed = transport.close()
  assert.deepEqual(
    asked.map(({ script, args }) => [script, args[0]]),
    [
      [COMPETE, 'me'],
      [RELEASE, 'me'],
    ],
  )
  for (const { answer } of asked) answer(['1', '', '0'])
  await closed
  assert.equal(await lease, undefined)
  assert.equal(await transport.compete(0), undefined)
  assert.equal(asked.length, 2, 'nothing more is asked')
})

/** A store that answers each question, and connections of which the test says what they carry. */
function silent(won: readonly string[]) {
  const clock = { at: 5000 }
  const ears: ((text: string) => void)[][] = []
  const store: Store = {
    isCluster: false,
    publish: async () => 1,
    run: async (script) => (script === COMPETE ? won : script === RENEW ? 1 : ['1', '0']),
    subscriber: async () => {
      const own: ((text: string) => void)[] = []
      ears.push(own)
      const subscribe = async (_: string, hear: (text: string) => void) => void own.push(hear)
      return { isSharded: false, subscribe, unsubscribe: async () => {}, close: () => {} }
    },
  }
  const idle = { now: () => clock.at, wallNow: () => 0, setTimeout: () => 0, clearTimeout: () => {} }
  let deaf = 0
  const nothing = () => {}
  const told = { heard: nothing, gone: nothing, vacant: nothing, fenced: nothing, deaf: () => deaf++ }
  const transport = new RedisTransport(store, 'x')
  transport.open({ id: 'p', clock: idle, ...told })
  return { clock, ears, transport, deaf: () => deaf }
}

test('a member whose connection carries nothing makes it anew, and one that hears does not', async () => {
  for (const isHeard of [false, true]) {
    const { clock, ears, transport, deaf } = silent([])
    for (let asked = 0; asked < 8; asked++) {
      if (isHeard) ears[0]?.[0]?.('')
      await transport.compete(0)
      clock.at += 500
    }
    assert.deepEqual([ears.length, deaf()], isHeard ? [1, 0] : [2, 1])
  }
})

test('a writer that does not hear itself for two leases gives up', async () => {
  for (const isHeard of [false, true]) {
    const { clock, ears, transport, deaf } = silent(['1', '', '0'])
    const lease = await transport.compete(0)
    const renewed: boolean[] = []
    for (let beat = 0; beat < 7; beat++) {
      if (isHeard) ears[0]?.[0]?.('')
      renewed.push(await transport.renew(lease!, undefined))
      clock.at += 500
    }
    assert.deepEqual(renewed, [...Array(6).fill(true), isHeard])
    assert.equal(deaf(), isHeard ? 0 : 1)
    await transport.compete(0)
    assert.equal(ears.length, isHeard ? 1 : 2)
  }
})
