/**
 * A whole throttle that is shared, in virtual time: what users see of it.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createThrottle,
  ScopeDownError,
  type Throttle,
  type ThrottleOptions,
  type WarningEvent,
} from 'autothrottle'
import { Permit } from '../../js/core/permit.js'
import { SharedHost } from '../../js/shared/host.js'
import { type Peer, SharedError } from '../../js/shared/transport.js'
import { after, Process, throttles, World } from './shared/world.js'

const FREE = { delay: 0, slotDelay: 0, jitter: false, concurrency: 10 }

/** Asks again and again, until it is refused. */
async function loop(throttle: Throttle, seen = { sent: 0, failed: [] as unknown[] }): Promise<void> {
  try {
    for (;;) await throttle.run({ scopes: 'x' }, () => seen.sent++)
  } catch (error) {
    seen.failed.push(error)
  }
}

test('a process that waits for nothing but its group may end: those timers keep no process', () => {
  const process = new Process(new World(1), 0)
  const shared = process.shared('wait')
  let idle: { hasRef(): boolean } | undefined
  const open: typeof shared.open = (given) => {
    idle = given.idleClock.setTimeout(() => {}, 1) as NodeJS.Timeout
    return shared.open({ ...given, clock: process.clock })
  }
  createThrottle({ shared: { ...shared, open } as typeof shared })
  assert.equal(idle?.hasRef(), false)
})

test('budgets of a server are known to all of a group: one that is used up keeps no other back', async () => {
  const { world, all } = throttles(2, { defaults: { ...FREE, concurrency: 4 } })
  const [user, search] = ['https://api.github.com/user', 'https://api.github.com/search/code?q=1']
  const told = (resource: string, left: number) => ({
    ...{ 'x-ratelimit-resource': resource, 'x-ratelimit-remaining': `${left}` },
    'x-ratelimit-reset': '600',
  })
  const ask = (throttle: Throttle, url: string, status = 200, headers: Record<string, string> = {}) =>
    after(
      world,
      5000,
      throttle.run(url, () => ({ status, headers })).then(({ status }) => status),
    )
  const [one, two] = all as [Throttle, Throttle]
  assert.equal(await ask(one, user, 200, told('core', 4000)), 200)
  assert.equal(await ask(one, search, 403, told('search', 0)), 403)
  for (const throttle of [one, two, one, two]) assert.equal(await ask(throttle, user), 200)
  for (const throttle of all) assert.equal(await ask(throttle, search), 'waits')
})

// Workers before February 2026 cut what is less, and their clock stood still until the next timer.
test('timers of a group are whole milliseconds', async () => {
  const { world, all, processes } = throttles(2, { defaults: { ...FREE, delay: 33.3 } })
  const asked = new Set<number>()
  for (const { clock } of processes) {
    const { setTimeout } = clock
    const arm = (wake: () => void, ms: number) => {
      asked.add(ms)
      return setTimeout(wake, ms)
    }
    Object.assign(clock, { setTimeout: arm })
  }
  const seen = { sent: 0, failed: [] }
  for (const throttle of all) void loop(throttle, seen)
  await world.run(3000)
  assert.ok(seen.sent >= 60, `${seen.sent} sent`)
  assert.deepEqual(
    [...asked].filter((ms) => !Number.isInteger(ms)),
    [],
  )
})

test('a way that refuses whatever is asked of it leaves no rejection without a reader', async () => {
  const unread: unknown[] = []
  const hear = (reason: unknown) => unread.push(reason)
  process.on('unhandledRejection', hear)
  const refuse = () => Promise.reject(new Error('no way'))
  for (const compete of [refuse, async () => ({ epoch: 1, stored: undefined, isFirst: true })]) {
    const says = { toLeader() {}, toMember() {}, toAll() {}, reconnect() {} }
    const asks = { compete, renew: refuse, release: refuse, close: refuse }
    const way = { leaseMs: 1500, open: (peer: Peer) => peer.opened(), ...says, ...asks }
    const world = new World(1)
    const settings = { offline: 'divide' as const, members: 1, random: () => 0.5, id: '0'.repeat(32) }
    const shared: ThrottleOptions['shared'] = {
      open: (context) => new SharedHost(way, context, settings),
    }
    const throttle = createThrottle({ ...FREE, clock: new Process(world, 0).clock, shared })
    const permit = throttle.acquire({ scopes: 'x' })
    await world.run(20_000)
    ;(await permit).settle({ status: 200 })
    throttle.close()
    await world.run(5000)
    await new Promise((resolve) => setImmediate(resolve))
  }
  process.off('unhandledRejection', hear)
  assert.deepEqual(unread, [])
})

test('one slot for three; who ends lets others go, and the statistics say how old they are', async () => {
  const { world, all } = throttles(3, { defaults: { ...FREE, concurrency: 1 } })
  const [a, b, c] = all as [Throttle, Throttle, Throttle]
  const permit = await after(world, 300, a.acquire({ scopes: 'x' }))
  assert.ok(typeof permit === 'object')
  let [second, third] = [false, false]
  b.run({ scopes: 'x' }, () => (second = true))
  await world.run(200)
  c.run({ scopes: 'x' }, () => (third = true))
  await world.run(1000)
  assert.deepEqual([second, third], [false, false])
  assert.equal(a.stats().scopes.x?.waiting, 2)
  assert.equal(b.stats().scopes.x?.inFlight, 1)
  assert.equal(a.stats().ageMs, 0)
  const { ageMs = Number.NaN } = b.stats()
  assert.ok(ageMs > 0 && ageMs <= 600, `${ageMs}`)
  permit.settle({ status: 200 })
  await world.run(200)
  assert.deepEqual([second, third], [true, true])
})

test('an answer in one process holds all; each hears of it, in its own time', async () => {
  const { world, all, processes } = throttles(2, { defaults: FREE })
  const [a, b] = all as [Throttle, Throttle]
  await after(world, 300, a.acquire({ scopes: 'x' }))
  const heard: number[] = []
  for (const [index, throttle] of all.entries())
    throttle.addEventListener('hold', ({ holdUntil = Number.NaN }) => {
      heard.push(Math.round(holdUntil - processes[index]!.clock.now()))
    })
  const permit = await after(world, 100, b.acquire({ scopes: 'x' }))
  assert.ok(typeof permit === 'object')
  permit.settle({ status: 429, headers: { 'retry-after': '5' } })
  await world.run(50)
  assert.equal(heard.length, 2)
  assert.ok(
    heard.every((ms) => ms > 5900 && ms <= 6060),
    `${heard}`,
  )
  assert.equal(await after(world, 5500, a.acquire({ scopes: 'x' })), 'waits')
  const { holdUntil = Number.NaN } = b.scope('x').stats
  assert.ok(holdUntil > b.now() && holdUntil < b.now() + 600, 'its own instant')
})

test('the last answer of a process that leaves reaches the others', async () => {
  const { world, all } = throttles(2, { defaults: FREE })
  world.way = [2, 0]
  const [a, b] = all as [Throttle, Throttle]
  await after(world, 300, a.acquire({ scopes: 'x' }))
  const permit = await after(world, 300, b.acquire({ scopes: 'x' }))
  assert.ok(typeof permit === 'object')
  permit.settle({ status: 429, headers: { 'retry-after': '5' } })
  b[Symbol.asyncDispose]()
  await world.run(100)
  assert.equal(await after(world, 4000, a.acquire({ scopes: 'x' })), 'waits')
})

test('a retry waits where its request is, and keeps its place', async () => {
  const { world, all } = throttles(2, { defaults: FREE, retry: { limit: 2 } })
  const [a] = all as [Throttle, Throttle]
  await after(world, 300, a.acquire({ scopes: 'x' }))
  const answers = [new Response('', { status: 503, headers: { 'retry-after': '2' } }), new Response('ok')]
  const at: number[] = []
  const send = async () => {
    at.push(world.now)
    return answers.shift()!
  }
  const fetching = createThrottle({
    defaults: FREE,
    retry: { limit: 2 },
    fetch: send as typeof fetch,
    clock: world.processes[1]!.clock,
    shared: world.processes[1]!.shared(),
  })
  const response = await after(world, 6000, fetching.fetch('https://a.example/'))
  assert.ok(typeof response === 'object')
  assert.equal(await response.text(), 'ok')
  const waited = at[1]! - at[0]!
  assert.ok(waited >= 3000 && waited < 3200, `${waited}`)
})

test('a function that is called late, while others wait, is no trouble to a group', async () => {
  const { world, all, processes } = throttles(2, { defaults: { ...FREE, concurrency: 2, delay: 100 } })
  const [a] = all as [Throttle, Throttle]
  const sentAt: number[] = []
  const clock = processes[0]!.clock
  const work = () => a.run({ scopes: 'x' }, (permit) => void sentAt.push(permit.sentAt - clock.now()))
  const done = Promise.all([work(), work(), work()])
  a.addEventListener('send', () => (world.now += 7), { once: true })
  await after(world, 2000, done)
  assert.deepEqual(sentAt, [0, 0, 0])
})

test('a refusal is an error of its own request', async () => {
  const options = { maxWaiting: 1, defaults: { ...FREE, concurrency: 1, quota: 3 } }
  const { world, all } = throttles(2, options)
  const [a, b] = all as [Throttle, Throttle]
  await after(world, 300, a.acquire({ scopes: 'x' }))
  assert.throws(() => b.scope('x').configure({ delay: -1 }), { code: 'ERR_CONFIG' })
  await assert.rejects(after(world, 100, b.acquire({ scopes: 'x' }, { cost: 4 })), {
    code: 'ERR_COST_EXCEEDS_QUOTA',
    scope: 'x',
    path: 'defaults.quota',
  })
  const waits = b.acquire({ scopes: 'x' })
  waits.catch(() => {})
  await world.run(50)
  await assert.rejects(after(world, 100, b.acquire({ scopes: 'x' })), { code: 'ERR_QUEUE_FULL' })
  await assert.rejects(after(world, 100, b.acquire({ scopes: 'x' }, { cost: Number.NaN })), TypeError)
  await assert.rejects(after(world, 500, b.acquire({ scopes: 'y' }, { maxWait: 0 })), { code: 'ERR_TIMEOUT' })
  b.close()
  await assert.rejects(after(world, 100, waits), { code: 'ERR_CLOSED' })
})

test('settings, pauses and holds of any process count for all', async () => {
  const { world, all } = throttles(3, { defaults: FREE })
  const [a, b, c] = all as [Throttle, Throttle, Throttle]
  await after(world, 300, a.acquire({ scopes: 'x' }))
  b.scope('x').configure({ delay: 700 })
  c.scope('y').pause()
  await world.run(1000)
  const at: number[] = []
  for (const throttle of [b, c, b, c]) throttle.run({ scopes: 'x' }, () => at.push(world.now))
  assert.equal(await after(world, 4000, b.acquire({ scopes: 'y' })), 'waits')
  const gaps = at.slice(1).map((each, index) => Math.round(each - at[index]!))
  assert.ok(gaps.length === 3 && gaps.every((gap) => gap >= 699 && gap < 760), `${gaps}`)
  b.scope('y').resume()
  assert.equal(typeof (await after(world, 200, c.acquire({ scopes: 'y' }))), 'object')
})

test('a process that closes hands over at once, with all that was learned', async () => {
  const { world, all } = throttles(2, { defaults: { ...FREE, quota: { limit: 2, window: 60_000 } } })
  const [a, b] = all as [Throttle, Throttle]
  await after(
    world,
    300,
    a.run({ scopes: 'x' }, () => 1),
  )
  await after(
    world,
    700,
    b.run({ scopes: 'x' }, () => 1),
  )
  const closed = a[Symbol.asyncDispose]()
  assert.equal(await after(world, 500, closed), undefined)
  assert.equal(await after(world, 3000, b.acquire({ scopes: 'x' })), 'waits', 'the quota is used up')
  assert.equal(b.stats().ageMs, 0)
  assert.ok(b.snapshot().scopes.x, 'it is in the snapshot too')
})

test('the way is broken: divided, waiting or failing; and together again', async () => {
  for (const offline of ['divide', 'wait', 'fail'] as const) {
    const { world, all, processes } = throttles(2, { defaults: { ...FREE, delay: 100 } }, { offline })
    const warnings: string[] = []
    for (const throttle of all)
      throttle.addEventListener('warning', ({ code }: WarningEvent) => {
        if (code.startsWith('group')) warnings.push(code)
      })
    const seen = { sent: 0, failed: [] as unknown[] }
    for (const throttle of all) loop(throttle, seen)
    await world.run(2000)
    for (const process of processes) process.cut(10_000)
    await world.run(8000)
    const before = seen.sent
    await world.run(1000)
    assert.equal(seen.sent > before, offline === 'divide')
    const codes = seen.failed.map((error) => error instanceof SharedError && error.code)
    assert.deepEqual(codes, offline === 'fail' ? ['ERR_SHARED_OFFLINE', 'ERR_SHARED_OFFLINE'] : [])
    assert.deepEqual(warnings, ['group-offline', 'group-offline'])
    await world.run(5000)
    const back = seen.sent
    await world.run(5000)
    if (offline !== 'fail') assert.ok(seen.sent - back > 45, `${offline}: ${seen.sent - back} after it`)
    assert.deepEqual(warnings.slice(2), ['group-online', 'group-online'])
  }
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
  for (const throttle of all) loop(throttle)
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

test('options of sharing that make no sense are an error when the throttle is made', () => {
  const shared = { open: () => assert.fail('not before the options are right') }
  assert.throws(() => createThrottle({ shared: 5 as never }), /shared: want what local\(\)/)
  assert.throws(
    () => createThrottle({ shared, manager: () => ({}) } as ThrottleOptions),
    /no manager beside it/,
  )
  assert.throws(
    () => createThrottle({ shared, scopes: { x: { manager: {} } } } as ThrottleOptions),
    /no manager beside it/,
  )
})

test('a look at a scope leaves no name behind', async () => {
  const process = new Process(new World(1), 0)
  const shared = process.shared('wait')
  const hosts: { scopes: number }[] = []
  const open: typeof shared.open = (given) => {
    const host = shared.open({ ...given, clock: process.clock })
    hosts.push(host)
    return host
  }
  const throttle = createThrottle({ shared: { ...shared, open } as typeof shared })
  throttle.acquire({ scopes: 'asked' }).catch(() => {})
  for (let n = 0; n < 100; n++) {
    throttle.peek({ scopes: ['asked', `never asked ${n}`] })
    throttle.scope(`never asked ${n}`).stats
  }
  assert.equal(hosts[0]!.scopes, 1)
  throttle.close()
})

test('a scope that is down is an error of its type in each process, for early and late requests', async () => {
  const { world, all } = throttles(2, { defaults: FREE, downAfter: 2000 })
  const refused = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const ask = (n: number) =>
    after(world, 70_000, all[n % 2]!.acquire({ scopes: 'x' })).catch((error) => error)
  let given: unknown
  for (let n = 0; !(given instanceof ScopeDownError); n++) {
    assert.ok(n < 10, String(given))
    given = await ask(n)
    if (given instanceof Permit) given.settle({ error: refused })
  }
  // One looks whether the server is back.
  const probe = await ask(0)
  assert.ok(probe instanceof Permit, String(probe))
  for (const throttle of all)
    await assert.rejects(after(world, 500, throttle.acquire({ scopes: 'x' })), (error) => {
      assert.ok(error instanceof ScopeDownError, String(error))
      assert.equal(error.scope, 'x')
      return error.forMs >= 2000
    })
  probe.settle()
})

test('functions that hold what calls inside them wait for: the slots come back, and it is told', async () => {
  const two = { maxInFlight: 2, defaults: { ...FREE, concurrency: 2 } }
  const { world, all } = throttles(2, { ...two, fetch: async () => new Response('x') })
  const warned: string[] = []
  for (const throttle of all) throttle.addEventListener('warning', ({ code }) => warned.push(code))
  await world.run(500)
  const nested = all.map((throttle, index) =>
    throttle.run({ scopes: 'jobs' }, async () => {
      const { status } = await throttle.fetch(`https://b.example/${index}`)
      return status
    }),
  )
  await world.run(5000)
  assert.deepEqual(warned, [])
  assert.deepEqual(await after(world, 30_000, Promise.all(nested)), [200, 200])
  assert.deepEqual([...new Set(warned)], ['nested'])
  // A wait for anything but a slot is no reason.
  all[0]!.scope('c.example').hold(60_000)
  warned.length = 0
  const held = all[0]!.run({ scopes: 'jobs' }, async () => (await all[0]!.fetch('https://c.example/')).status)
  assert.equal(await after(world, 30_000, held), 'waits')
  assert.equal(all[0]!.stats().inFlight, 1)
  assert.equal(await after(world, 40_000, held), 200)
  assert.deepEqual(warned, [])
})

test('wait-capped, stall and unheard are told in a group as they are in one process', async () => {
  const { world, all } = throttles(2, { defaults: FREE })
  const [a, b] = all as [Throttle, Throttle]
  const told: [string, WarningEvent['code'], string | undefined][] = []
  for (const [name, throttle] of [
    ['a', a],
    ['b', b],
  ] as const)
    throttle.addEventListener('warning', ({ code, scope }) => told.push([name, code, scope]))
  const settle = async (throttle: Throttle, target: string, outcome: object) => {
    const permit = await after(world, 5000, throttle.acquire(target))
    assert.ok(permit instanceof Permit, String(permit))
    permit.settle(outcome)
    await world.run(500)
  }
  // The process that an answer came in at tells of its hold.
  await settle(b, 'https://cut.example/', { status: 429, headers: { 'retry-after': '100000' } })
  assert.deepEqual(
    told.filter(([, code]) => code === 'wait-capped').map(([, , scope]) => scope),
    ['cut.example'],
  )
  for (let silent = 0; silent < 25; silent++) await settle(a, 'https://deaf.example/', {})
  assert.deepEqual(
    told.filter(([, code]) => code === 'no-status'),
    [['a', 'no-status', 'deaf.example']],
  )
  for (let minute = 0; minute < 4; minute++) {
    for (const throttle of all) {
      const permit = await after(world, 60_000, throttle.acquire('https://bad.example/'))
      if (permit instanceof Permit) permit.settle({ status: 503 })
    }
    await world.run(20_000)
  }
  assert.ok(
    told.some(([, code, scope]) => code === 'stall' && scope === 'bad.example'),
    JSON.stringify(told),
  )
})
