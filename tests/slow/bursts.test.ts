/**
 * No burst, whatever the machine does: random limits, and a clock that misbehaves. It stands still for five
 * seconds (a blocked event loop), goes back, or strays. Or it jumps an hour: a machine slept, and its timers
 * then all fire late and together. The typed settings hold over all windows of the clock: gaps, quotas,
 * slots. `ORDERS=2000 node --import tsx --test tests/slow/bursts.test.ts` tries as many.
 *
 * A limit that is kept on average would make up for what was not sent while the loop was blocked.
 */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { createThrottle, type ThrottleOptions } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'
import { Dice } from '../js/serve.js'

const ORDERS = Number(process.env.ORDERS ?? 30)
const COUNT = 80

/** The typed settings, and what they mean for the instants of all sends, in milliseconds. */
interface Typed {
  readonly options: ThrottleOptions
  /** At most `limit` in any window of this length, both ends counted. */
  readonly most: number
  readonly windowMs: number
  readonly slots: number
}

function typed(dice: Dice): Typed {
  const slots = 1 + dice.below(4)
  const rated = { jitter: false, concurrency: slots } as const
  const plain = { ...rated, slotDelay: 0 } as const
  const windowMs = [100, 1000, 3333.3, 10_000][dice.below(4)]!
  const limit = 1 + dice.below(9)
  const kinds: [ThrottleOptions, number, number][] = [
    [{ defaults: { ...plain, delay: windowMs } }, 1, windowMs],
    [{ defaults: { ...plain, delay: 0, slotDelay: windowMs } }, slots, windowMs],
    // A late timer is made up for by one gap at most.
    [{ defaults: { ...rated, rate: { limit, window: windowMs } } }, limit + 1, windowMs],
    [{ defaults: { ...rated, rate: { limit, window: windowMs, burst: 3 } } }, limit + 3, windowMs],
    [{ defaults: { ...plain, delay: 0, quota: { limit, window: windowMs, strict: true } } }, limit, windowMs],
    // Two windows touch.
    [{ defaults: { ...plain, delay: 0, quota: { limit, window: windowMs } } }, 2 * limit, windowMs],
    [{ defaults: { ...plain, autothrottle: true, delay: windowMs } }, 1, windowMs],
  ]
  const [options, most, span] = kinds[dice.below(kinds.length)]!
  return { options: { ...options, maxInFlight: 100, backoff: false }, most, windowMs: span, slots }
}

/** The clock's mishaps between two looks. */
const MISHAPS: Record<string, (clock: FakeClock, dice: Dice) => void> = {
  'the loop is blocked for five seconds': (clock) => clock.jump(5000),
  'the machine sleeps for an hour': (clock) => clock.jump(3_600_000),
  'the clock goes back': (clock, dice) => clock.jump(-dice.below(20_000)),
  'the clock strays': (clock, dice) => clock.jump(dice.below(40) - 20),
}

for (const [name, mishap] of Object.entries(MISHAPS))
  test(`${name}: no server gets a burst, and nothing is left behind`, async () => {
    for (let seed = 1; seed <= ORDERS; seed++) {
      const dice = new Dice(seed)
      const { options, most, windowMs, slots } = typed(dice)
      const clock = new FakeClock(1e7)
      const throttle = createThrottle({ clock, ...options })
      const sends: number[] = []
      // The engine's clock stands still until one that went back has caught up.
      let [latest, flying, mostFlying] = [0, 0, 0]
      const done = Promise.all(
        Array.from({ length: COUNT }, () =>
          throttle.run({ scopes: 'x' }, async () => {
            latest = Math.max(latest, clock.now())
            sends.push(latest)
            mostFlying = Math.max(mostFlying, ++flying)
            await new Promise<void>((resolve) => clock.setTimeout(resolve, 20))
            flying--
          }),
        ),
      )
      for (let look = 0; sends.length < COUNT || flying > 0; look++) {
        assert.ok(look < 10_000, `seed ${seed}: ${sends.length} of ${COUNT}`)
        await clock.advance(dice.below(2 * windowMs))
        if (look < 50 && dice.below(3) === 0) mishap(clock, dice)
      }
      await done
      const what = `seed ${seed}, ${JSON.stringify(options)}`
      assert.ok(mostFlying <= slots, `${what}: ${mostFlying} at a time`)
      for (const [index, from] of sends.entries()) {
        const beyond = sends[index + most]
        if (beyond === undefined) break
        // A microsecond is what a double of milliseconds may be off by.
        assert.ok(beyond - from >= windowMs - 0.001, `${what}: ${most + 1} in ${beyond - from} ms`)
      }
      assert.deepEqual([throttle.stats().waiting, throttle.stats().inFlight, clock.timers], [0, 0, 0], what)
    }
  })

test('waits that are aborted, together or one by one, leave nothing', async () => {
  const clock = new FakeClock()
  const throttle = createThrottle({ clock, warnThreshold: 1e6, defaults: { delay: 300_000, jitter: false } })
  await throttle.run({ scopes: 'x' }, () => {})
  for (let round = 0; round < 20; round++) {
    const shared = new AbortController()
    const each = Array.from({ length: 1000 }, (_, index) => (index % 2 ? new AbortController() : shared))
    const waits = each.map(({ signal }) =>
      throttle.acquire({ scopes: `${signal === shared.signal}` }, { signal }),
    )
    const also = each.map(({ signal }) => throttle.acquire({ scopes: 'x' }, { signal }))
    for (const controller of new Set(each)) controller.abort()
    const ended = await Promise.allSettled([...waits, ...also])
    assert.ok(ended.filter(({ status }) => status === 'fulfilled').length <= 2)
    for (const result of ended) if (result.status === 'fulfilled') result.value.settle()
    for (const { signal } of each) assert.equal(getEventListeners(signal, 'abort').length, 0)
    assert.deepEqual([throttle.stats().waiting, throttle.stats().inFlight, clock.timers], [0, 0, 0])
  }
})
