/** Many requests with a `timeout` of their own, in any order: each is given up at its own time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createThrottle, TimeoutError } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

const page = 'https://a.example/'

/** All numbers below `count`, in an order that looks like chance. */
const mixed = (count: number, step: number) => Array.from({ length: count }, (_, at) => (at * step) % count)

test('each request is given up at its own time, whatever the order of the timeouts', async () => {
  for (const [count, step] of [
    [31, 1],
    [31, 30],
    [31, 7],
    [64, 27],
    [100, 37],
  ] as const) {
    const clock = new FakeClock()
    const begun = clock.now()
    const throttle = createThrottle({ clock, defaults: { concurrency: 1, delay: 0, slotDelay: 0 } })
    const permit = await throttle.acquire(page)
    const ends: number[] = []
    const waiting = mixed(count, step).map(async (place) => {
      const timeout = 100 + 10 * place
      await assert.rejects(throttle.acquire(page, { timeout }), TimeoutError)
      ends.push(clock.now() - begun - timeout)
    })
    await clock.advance(100 + 10 * count)
    await Promise.all(waiting)
    assert.deepEqual(new Set(ends), new Set([0]), `${count} in steps of ${step}`)
    assert.equal(throttle.stats().waiting, 0)
    permit.settle({ status: 200 })
    assert.equal(clock.timers, 0)
  }
})

test('a timeout in the middle that is no longer needed leaves the others in order', async () => {
  const clock = new FakeClock()
  const begun = clock.now()
  const throttle = createThrottle({ clock, defaults: { concurrency: 1, delay: 0, slotDelay: 0 } })
  const permit = await throttle.acquire(page)
  const ends: number[] = []
  const leaving = new AbortController()
  const waiting = mixed(40, 17).map(async (place) => {
    const timeout = 100 + 10 * place
    const signal = place % 3 === 0 ? leaving.signal : null
    await throttle.acquire(page, { timeout, signal }).catch(() => ends.push(clock.now() - begun))
  })
  await clock.advance(50)
  leaving.abort()
  await clock.advance(1000)
  await Promise.all(waiting)
  const left = Array.from({ length: 40 }, (_, place) => place).filter((place) => place % 3 !== 0)
  assert.deepEqual(ends.slice(0, 14), Array(14).fill(50))
  assert.deepEqual(
    ends.slice(14),
    left.map((place) => 100 + 10 * place),
  )
  permit.settle({ status: 200 })
})
