/**
 * Processes that share a limit when the way to the others is broken: what all of them send together.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Throttle } from 'autothrottle'
import { after, throttles } from './shared/throttles.js'
import type { World } from './shared/world.js'

const FREE = { delay: 0, slotDelay: 0, jitter: false, concurrency: 10 }

/** Each asks again and again, four at a time. Gives the instants at which requests left. */
function load(world: World, all: readonly Throttle[], cost = 1): number[] {
  const sent: number[] = []
  const work = async () => {
    sent.push(world.now)
    await new Promise((done) => world.after(50, undefined, () => done(undefined)))
  }
  const loop = async (throttle: Throttle) => {
    for (;;) await throttle.run({ scopes: 'x' }, work, { cost })
  }
  for (const throttle of all) for (let each = 0; each < 4; each++) loop(throttle)
  return sent
}

/** The most that left within any span of so long. */
function most(sent: readonly number[], ms: number): number {
  return Math.max(0, ...sent.map((from, first) => sent.findLastIndex((at) => at < from + ms) - first + 1))
}

test('who never heard of the others waits, and says so; together they go on at the limit', async () => {
  const { world, processes, all } = throttles(8, { defaults: { ...FREE, delay: 50 } }, { offline: 'divide' })
  const warned: string[] = []
  for (const throttle of all)
    throttle.addEventListener('warning', ({ code, message }) => warned.push(`${code}: ${message}`))
  for (const process of processes) process.cut(20_000)
  const sent = load(world, all)
  await world.run(19_000)
  assert.deepEqual(sent, [])
  assert.equal(warned.length, 8)
  assert.match(warned[0]!, /^shared-offline: .*waits, since it never reached the others; set `members`/)
  await world.run(21_000)
  assert.ok(sent.length > 0.95 * 400, `${sent.length} in 20 s of 20/s`)
  assert.ok(most(sent, 1000) <= 21, `${most(sent, 1000)} in a second`)
})

test('who is told how many there are goes on with its part', async () => {
  const options = { defaults: { ...FREE, delay: 50, concurrency: 8 } }
  const { world, processes, all } = throttles(8, options, { offline: 'divide', members: 8 })
  for (const process of processes) process.cut(60_000)
  const sent = load(world, all)
  await world.run(10_000)
  const from = sent.length
  await world.run(20_000)
  const rate = (sent.length - from) / 20
  assert.ok(rate > 18 && rate <= 21, `${rate}/s of 20/s`)
})

for (const strict of [false, true])
  test(`a quota of 80 stays 80 while the way is broken${strict ? ', strict' : ''}`, async () => {
    const quota = { limit: 80, window: 60_000, strict }
    const { world, processes, all } = throttles(4, { defaults: { ...FREE, quota } }, { offline: 'divide' })
    // Forty are used when the way breaks.
    let used = 0
    for (let each = 0; each < 40; each++) all[each % 4]!.run({ scopes: 'x' }, () => used++)
    await world.run(2000)
    assert.equal(used, 40)
    const began = world.now
    for (const process of processes) process.cut(170_000)
    // For the rest of its lease the writer may use all that is left.
    await world.run(2000)
    const sent = load(world, all)
    await world.run(50_000)
    // A strict one has no parts: it waits, but for what the writer used in the rest of its lease.
    const least = strict ? 0 : 36
    assert.ok(sent.length >= least && sent.length <= 40, `${sent.length} of the 40 that were left`)
    await world.run(100_000)
    assert.ok(most(sent, 60_000) <= (strict ? 80 : 120), `${most(sent, 60_000)} in a minute`)
    assert.ok(sent.length > (strict ? -1 : 150), `${sent.length} in ${world.now - began} ms`)
    // No debt lasts longer than a window.
    await world.run(20_000)
    const back = sent.length
    await world.run(125_000)
    assert.ok(sent.length - back >= 150, `${sent.length - back} in the two minutes after`)
  })

test('what costs more than a part of a quota waits for the way, and is no error', async () => {
  const { world, processes, all } = throttles(
    4,
    { defaults: { ...FREE, quota: 8, window: 1000 } },
    { offline: 'divide' },
  )
  for (const throttle of all)
    await after(
      world,
      300,
      throttle.run({ scopes: 'x' }, () => 1),
    )
  await world.run(1000)
  for (const process of processes) process.cut(20_000)
  const sent = load(world, all, 5)
  // The writer's lease lasts for a moment.
  await world.run(2000)
  sent.length = 0
  await world.run(17_000)
  assert.deepEqual(sent, [])
  await world.run(20_000)
  assert.ok(sent.length > 10, `${sent.length}`)
})

test('stats().shared says who decides, and an event each change', async () => {
  const { world, processes, all } = throttles(2, { defaults: { ...FREE, delay: 50 } }, { offline: 'divide' })
  const moves: string[][] = all.map((throttle) => {
    const seen: string[] = []
    throttle.addEventListener('shared', ({ shared }) => {
      const { writer, members, offlineSince } = shared
      seen.push(`${writer} ${members} ${offlineSince === undefined ? 'on' : 'off'}line`)
    })
    return seen
  })
  assert.equal(all[0]!.stats().shared?.epoch, 0)
  load(world, all)
  await world.run(3000)
  const writer = processes.findIndex(({ id }) => id === world.store.holder)
  const member = 1 - writer
  const { shared } = all[member]!.stats()
  const told = { writer: processes[writer]!.id, isWriter: false, epoch: 1, members: 2, debtMs: 0 }
  const { lastHeardAt = Number.NaN, leadMs, roundTripMs = Number.NaN } = shared!
  assert.deepEqual(shared, { ...told, leadMs, roundTripMs, lastHeardAt, offlineSince: undefined })
  assert.ok(roundTripMs >= 4 && roundTripMs < 30, `${roundTripMs}`)
  assert.ok(leadMs >= 0 && leadMs < 60, `${leadMs}`)
  assert.ok(all[writer]!.stats().shared!.leadMs >= 1)
  const agoMs = processes[member]!.clock.now() - lastHeardAt
  assert.ok(agoMs >= 0 && agoMs <= 600, `${agoMs}`)
  assert.equal(all[writer]!.stats().shared?.isWriter, true)
  assert.equal(moves[member]!.at(-1), `${processes[writer]!.id} 2 online`)
  for (const process of processes) process.cut(20_000)
  await world.run(10_000)
  for (const throttle of all) assert.ok((throttle.stats().shared?.offlineSince ?? 0) > 0)
  for (const seen of moves) assert.match(seen.at(-1)!, / 2 offline$/)
  await world.run(20_000)
  for (const seen of moves) assert.match(seen.at(-1)!, / 2 online$/)
  for (const seen of moves) assert.ok(seen.length < 12, String(seen))
})
