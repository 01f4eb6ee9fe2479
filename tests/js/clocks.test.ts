/** Clocks and timers that misbehave. Whatever they do: no request early, no flood, no spin. */

import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import {
  type Clock,
  createThrottle,
  type Permit,
  type Snapshot,
  SnapshotError,
  type ThrottleOptions,
  TimeoutError,
} from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

const page = 'https://a.example/'
const plain = { delay: 1000, slotDelay: 0, jitter: false, concurrency: 100 } as const

/** A clock whose timers are changed on their way. */
class Bent extends FakeClock {
  armed = 0
  readonly asked: number[] = []
  readonly #bend: (ms: number) => number[]

  constructor(bend: (ms: number) => number[], start = 0) {
    super(start)
    this.#bend = bend
  }

  override setTimeout(wake: () => void, ms: number): unknown {
    this.armed++
    this.asked.push(ms)
    return this.#bend(ms).map((each) => super.setTimeout(wake, each))
  }

  override clearTimeout(handles: unknown): void {
    for (const handle of handles as unknown[]) super.clearTimeout(handle)
  }
}

async function sends(clock: Clock & FakeClock, count: number, span: number): Promise<number[]> {
  const throttle = createThrottle({ clock, defaults: plain })
  const times: number[] = []
  const take = () => throttle.run(page, () => void times.push(clock.now()))
  const done = Promise.all(Array.from({ length: count }, take))
  await clock.advance(span)
  await done
  return times
}

const gaps = (times: number[]) => times.slice(1).map((time, index) => time - times[index]!)

test('timers that fire a millisecond early', async () => {
  const clock = new Bent((ms) => [ms > 1 ? ms - 0.998 : ms])
  const times = await sends(clock, 10, 20_000)
  assert.ok(gaps(times).every((gap) => gap >= 1000))
  assert.ok(clock.armed <= 30, `armed ${clock.armed} times`)
})

test('timers that fire twice, the second time after having been replaced', async () => {
  const times = await sends(new Bent((ms) => [ms, ms, ms + 300]), 5, 20_000)
  assert.deepEqual(times, [0, 1000, 2000, 3000, 4000])
})

test('timers that fire though they were cleared: one is armed, not more and more', async () => {
  const live = new Set<object>()
  class Deaf extends FakeClock {
    override setTimeout(wake: () => void, ms: number): unknown {
      const timer = {}
      live.add(timer)
      return super.setTimeout(() => {
        live.delete(timer)
        wake()
      }, ms)
    }

    override clearTimeout(): void {}
  }
  const clock = new Deaf()
  const throttle = createThrottle({ clock, defaults: plain })
  const all = Promise.all(Array.from({ length: 20 }, () => throttle.run(page, () => {})))
  // Each of these alarms is earlier than the timer, which is armed anew and fires all the same.
  for (let count = 0; count < 20; count++)
    await throttle.run({ scopes: `${count}` }, () => {}, { requestTimeout: 500 - count })
  let most = 0
  for (let ms = 0; ms < 20_000; ms += 100) {
    await clock.advance(100)
    if (ms > 2000) most = Math.max(most, live.size)
  }
  await all
  assert.ok(most <= 2, `${most} at a time`)
})

test('a clock that starts at 0, at 1970 in Workers’ way, or between', async () => {
  for (const start of [0, 1_795_203_840_000, 12.345]) {
    const times = await sends(new Bent((ms) => [ms], start), 3, 5000)
    assert.ok(
      gaps(times).every((gap) => Math.abs(gap - 1000) <= 1),
      `${times}`,
    )
  }
})

test('a clock that stands still: one send, no spin', async () => {
  const clock = new FakeClock()
  let wakes = 0
  const timers: (() => void)[] = []
  const frozen: Clock = {
    now: () => 5,
    wallNow: () => 0,
    setTimeout: (wake) => timers.push(wake),
    clearTimeout: () => {},
  }
  const throttle = createThrottle({ clock: frozen, defaults: plain })
  const times: number[] = []
  for (let index = 0; index < 3; index++) void throttle.run(page, () => times.push(frozen.now()))
  await clock.advance(0)
  for (; wakes < 50; wakes++) {
    assert.equal(timers.length, wakes + 1, 'each wake-up arms one timer')
    timers[wakes]!()
    await clock.advance(0)
  }
  assert.deepEqual(times, [5])
})

test('a wait of forty days is kept, and no timer is asked for more than 2³¹−1 ms', async () => {
  const days = 40 * 86_400_000
  const clock = new Bent((ms) => [ms])
  const throttle = createThrottle({ clock, defaults: plain })
  throttle.scope('a.example').hold(days)
  const times: number[] = []
  const done = throttle.run(page, () => void times.push(clock.now()))
  await clock.advance(days - 1)
  assert.deepEqual(times, [])
  await clock.advance(1)
  await done
  assert.deepEqual(times, [days])
  assert.ok(clock.armed <= 3)
  assert.ok(clock.asked.every((ms) => ms <= 2 ** 31 - 1))
})

/** Timers that fire 0.3 ms late, and a loop that goes round in 0.05 ms. */
class Turning extends Bent {
  turns = 0

  constructor() {
    super((ms) => [ms + 0.3])
  }

  setImmediate(wake: () => void): void {
    this.turns++
    FakeClock.prototype.setTimeout.call(this, wake, 0.05)
  }
}

async function turned(delay: number, scopes: readonly string[], count = 21) {
  const clock = new Turning()
  const throttle = createThrottle({ clock, maxInFlight: 100, defaults: { ...plain, delay } })
  const times = new Map<string, number[]>(scopes.map((scope) => [scope, []]))
  const one = (scope: string) =>
    throttle.run({ scopes: scope }, () => void times.get(scope)!.push(clock.now()))
  const done = Promise.all(Array.from({ length: count }, () => scopes.map(one)).flat())
  await clock.advance(count * (delay + 2))
  await done
  return { all: [...times.values()].map(gaps), turns: clock.turns }
}

test('a gap from 10 to below 100 ms is met by turns of the loop, any other by timers alone', async () => {
  for (const delay of [10, 16.7, 90]) {
    const { all, turns } = await turned(delay, ['x'])
    // The first two show how often the scope sends.
    const each = all[0]!.slice(2)
    assert.ok(
      each.every((gap) => gap > delay - 1e-9 && gap < delay + 0.06),
      `${each}`,
    )
    assert.ok(turns > 0 && turns <= 20 * 21, `${turns} turns: a millisecond for each gap at most`)
  }
  for (const delay of [9, 100, 1000]) {
    const { all, turns } = await turned(delay, ['x'])
    assert.ok(all[0]!.every((gap) => gap > delay - 1e-9 && gap < delay + 1.4))
    assert.equal(turns, 0)
  }
})

test('many scopes in turn are woken by timers alone, however near each other they are', async () => {
  const { all, turns } = await turned(40, ['a', 'b', 'c'])
  assert.ok(all.flat().every((gap) => gap > 40 - 1e-9))
  assert.equal(turns, 0)
  const clock = new Turning()
  const throttle = createThrottle({ clock, maxInFlight: 100, defaults: { ...plain, delay: 200 } })
  const run = (scopes: string) => [1, 2, 3].map(() => throttle.run({ scopes }, () => {}))
  const ones = run('a')
  await clock.advance(50)
  const others = run('b')
  await clock.advance(500)
  await Promise.all([...ones, ...others])
  assert.equal(clock.turns, 0, 'each sends every 200 ms, both together every 50')
})

test('turns end where the clock stands still, where no request waits any more, and with an earlier wake-up', async () => {
  const clock = new Turning()
  let frozen = 0
  const turn = clock.setImmediate.bind(clock)
  clock.setImmediate = (wake) => {
    if (frozen === 0) return turn(wake)
    assert.ok(++frozen < 5, 'no spin')
    queueMicrotask(wake)
  }
  const throttle = createThrottle({ clock, maxInFlight: 100, defaults: { ...plain, delay: 20 } })
  const sent: number[] = []
  const controller = new AbortController()
  const run = (scopes: string, signal: AbortSignal | null = null) =>
    throttle.run({ scopes }, () => void sent.push(clock.now()), { signal })
  const first = Promise.all([run('x'), run('x'), run('x')])
  const aborted = run('x', controller.signal)
  await clock.advance(60)
  assert.equal(sent.length, 3)
  const before = clock.turns
  assert.ok(before > 0)
  controller.abort(new Error('no'))
  await assert.rejects(aborted, /no/)
  await first
  await clock.advance(100)
  assert.equal(clock.turns, before, 'no request waits')
  assert.equal(clock.timers, 0)
  frozen = 1
  const last = Promise.all([run('x'), run('x'), run('x'), run('x'), run('x')])
  await clock.advance(200)
  await last
  assert.ok(frozen > 1, 'it was tried')
  assert.ok(gaps(sent).every((gap) => gap > 20 - 1e-9))
})

test('the globals are heard, also those that a test replaces after the throttle was made, and gives back', async () => {
  const throttle = createThrottle({ defaults: plain })
  const fake = new FakeClock(1_000_000)
  const real = { performance, setTimeout, clearTimeout }
  const { now, setTimeout: arm, clearTimeout: disarm } = fake
  Object.assign(globalThis, {
    performance: { now: now.bind(fake) },
    setTimeout: arm.bind(fake),
    clearTimeout: disarm.bind(fake),
  })
  try {
    const sent: number[] = []
    const all = Promise.all([1, 2].map(() => throttle.run(page, () => void sent.push(fake.now()))))
    await fake.advance(1001)
    await all
    assert.deepEqual(gaps(sent), [1000])
  } finally {
    Object.assign(globalThis, real)
  }
})

test('where a timer belongs to its request, each waiter wakes itself, and none is told by another', async () => {
  const clock = Object.assign(new FakeClock(), { isPerRequest: true })
  const throttle = createThrottle({
    clock,
    defaults: { delay: 200, slotDelay: 0, concurrency: 1, jitter: false },
  })
  const permits: Permit[] = []
  const want = async () => void permits.push(await throttle.acquire({ scopes: 'x' }))
  const all = Promise.all([want(), want(), want()])
  const late = assert.rejects(throttle.acquire({ scopes: 'x' }, { maxWait: 300 }), TimeoutError)
  await clock.advance(150)
  assert.equal(permits.length, 1)
  assert.ok(clock.timers >= 3, 'a timer for each who waits')
  permits[0]!.settle({ status: 200 })
  await clock.advance(250)
  await late
  permits[1]!.settle({ status: 200 })
  await clock.advance(300)
  await all
  assert.deepEqual(
    permits.map(({ sentAt }) => sentAt),
    [0, 200, 450], // its slot was free at 400, and its own timer woke it 50 ms later
  )
  permits[2]!.settle()
  assert.equal(clock.timers, 0)
})

test('a request that ended without a word gives its place back', async () => {
  class Mortal extends FakeClock {
    readonly isPerRequest = true
    isDead = false
    override setTimeout(wake: () => void, ms: number): unknown {
      return this.isDead ? undefined : super.setTimeout(wake, ms)
    }
  }
  const clock = new Mortal()
  const throttle = createThrottle({
    clock,
    defaults: { delay: 0, slotDelay: 0, concurrency: 1, jitter: false },
  })
  const first = await throttle.acquire({ scopes: 'x' })
  clock.isDead = true
  void throttle.acquire({ scopes: 'x' }) // its request ends, and its timer with it
  clock.isDead = false
  first.settle({ status: 200 })
  const waiting = throttle.acquire({ scopes: 'x' })
  const gone = new AbortController()
  const aborted = assert.rejects(throttle.acquire({ scopes: 'x' }, { signal: gone.signal }))
  gone.abort()
  await aborted
  await clock.advance(9000)
  assert.equal(throttle.stats().inFlight, 1, 'granted to one who is gone')
  await clock.advance(2000)
  assert.equal((await waiting).sentAt >= 10_000, true)
})

// The learned state survives the process, on another clock. `tests/native/snapshot.rs` checks its content.

const options: ThrottleOptions = {
  defaults: { delay: 100, slotDelay: 0, jitter: false, autothrottle: { startDelay: 5000 } },
}

/**
 * Takes a snapshot as a file would carry it, and goes on `offline` ms later on a clock that starts anywhere.
 */
function moved(snapshot: Snapshot, clock: FakeClock, offline: number, start = 3) {
  const next = new FakeClock(start, clock.wallNow() + offline)
  return {
    clock: next,
    throttle: createThrottle({ ...options, clock: next, snapshot: JSON.parse(JSON.stringify(snapshot)) }),
  }
}

test('a crawl goes on at the learned pace, also on a clock that starts at 0', async () => {
  const clock = new FakeClock(50_000)
  const throttle = createThrottle({ ...options, clock })
  for (let index = 0; index < 12; index++) {
    const done = throttle.run(page, () => {
      clock.jump(300)
      return { status: 200 }
    })
    await clock.advance(6000)
    await done
  }
  const learned = throttle.scope('a.example').stats.delayMs
  assert.ok(learned > 300 && learned < 303, `${learned}`)
  const last = throttle.acquire(page)
  await clock.advance(0)
  ;(await last).settle()
  await clock.advance(100)
  const { throttle: next, clock: other } = moved(throttle.snapshot(), clock, 50, 0)
  assert.equal(next.scope('a.example').stats.delayMs, learned)
  const peek = next.peek(page)
  assert.equal(peek.reason, 'delay')
  assert.ok(Math.abs(peek.at - (learned - 150)) < 0.01, 'the last send is remembered, offline time counts')
  assert.ok(peek.at > other.now())
})

test('a bad snapshot is an error that names every problem', () => {
  const good = { version: 1, wallMs: 5, scopes: {} }
  const wrong: [unknown, string][] = [
    [null, ''],
    [[], ''],
    [{}, 'version'],
    [{ ...good, wallMs: Number.NaN }, 'wallMs'],
    [{ ...good, scopes: { 'a.example': 1 } }, 'scopes."a.example"'],
    [{ ...good, scopes: { a: { rests: [1, Number.POSITIVE_INFINITY] } } }, 'scopes.a.rests[1]'],
    [{ ...good, scopes: { a: { what: 1 } } }, 'scopes.a.what'],
  ]
  for (const [snapshot, path] of wrong) {
    assert.throws(
      () => createThrottle({ snapshot: snapshot as Snapshot }),
      (error: SnapshotError) => {
        assert.ok(error instanceof SnapshotError, String(error))
        assert.equal(error.code, 'ERR_SNAPSHOT')
        assert.equal(error.path, path, error.message)
        return true
      },
    )
  }
  assert.throws(
    () => createThrottle({ snapshot: { version: 2, scopes: { a: 1 } } as never }),
    /version: .*\nscopes\.a: /,
  )
})

test('clock.run lets as much time pass as work needs, and tells work that will never be done', async () => {
  const clock = new FakeClock()
  const answers = [new Response('', { status: 429, headers: { 'retry-after': '30' } })]
  const fetch = async () => answers.pop() ?? new Response('ok')
  const throttle = createThrottle({ ...plain, clock, fetch, retry: { limit: 1 } })
  const pages = [1, 2, 3].map(async (each) => (await throttle.fetch(`${page}${each}`)).text())
  assert.deepEqual(await clock.run(Promise.all(pages)), ['ok', 'ok', 'ok'])
  assert.ok(clock.now() >= 30_000 && clock.now() < 40_000, `${clock.now()}`)
  await assert.rejects(clock.run(Promise.reject(new RangeError('its own'))), /its own/)
  throttle.pause()
  const stuck = throttle.acquire(page)
  await assert.rejects(clock.run(stuck, 600_000), /not done after 600000 ms/)
  await assert.rejects(new FakeClock().run(stuck), /although no timer is armed/)
  await assert.rejects(clock.run(stuck, -1), TypeError)
  throttle.close()
  await assert.rejects(stuck)
})

test('timers and dates that node:test mocks move a throttle, though performance.now stands still', async () => {
  const turn = globalThis.setImmediate
  const later = () => new Promise<void>((done) => turn(() => done()))
  const times: number[] = []
  const throttle = createThrottle({ ...plain, fetch: async () => new Response('ok') })
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000_000 })
  try {
    const start = Date.now()
    throttle.addEventListener('send', () => times.push(Date.now() - start))
    const all = Promise.all([1, 2, 3].map((each) => throttle.fetch(`${page}${each}`)))
    for (let at = 0; at < 2000; at += 100) {
      await later()
      mock.timers.tick(100)
    }
    await later()
    assert.deepEqual(times, [0, 1000, 2000])
    await all
  } finally {
    mock.timers.reset()
    throttle.close()
  }
})

test('a clock that cannot say the date fails that answer of fetch and keeps no slot', async () => {
  let isBroken = false
  class Dateless extends FakeClock {
    override wallNow(): number {
      if (isBroken) throw new Error('no date')
      return super.wallNow()
    }
  }
  const answer = async () =>
    new Response('', { headers: { 'ratelimit-remaining': '9', 'ratelimit-reset': '5' } })
  const throttle = createThrottle({
    clock: new Dateless(),
    fetch: answer,
    defaults: { delay: 0, concurrency: 1 },
  })
  isBroken = true
  await assert.rejects(throttle.fetch(page), /no date/)
  isBroken = false
  assert.equal((await throttle.fetch(page)).status, 200)
  assert.equal(throttle.stats().inFlight, 0)
})
