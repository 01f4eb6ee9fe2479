/** Many items through one throttle: order, errors, the end of it, and memory. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createThrottle, type Permit, type ThrottleOptions } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

function make(
  defaults: ThrottleOptions['defaults'] = { delay: 100, slotDelay: 0, concurrency: 2, jitter: false },
) {
  const clock = new FakeClock()
  const throttle = createThrottle({ clock, concurrency: 1000, defaults })
  const after = <T>(ms: number, value: T) =>
    new Promise<T>((resolve) => void clock.setTimeout(() => resolve(value), ms))
  return { clock, throttle, after }
}

const target = () => ({ scopes: 'x' })

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

test('in the order of the items, or as they come', async () => {
  for (const [ordered, want] of [
    [true, [0, 1, 2, 3]],
    [false, [1, 0, 3, 2]],
  ] as const) {
    const { clock, throttle, after } = make()
    const work = (item: number) => after(item % 2 === 0 ? 150 : 10, item)
    const all = collect(throttle.map([0, 1, 2, 3], work, { target, ordered }))
    await clock.advance(2000)
    assert.deepEqual(await all, want)
  }
})

test('an endless async source is pulled as fast as it can be sent, and closed when the caller leaves', async () => {
  const { clock, throttle } = make()
  let [pulled, isClosed] = [0, false]
  async function* endless() {
    try {
      for (;;) yield `https://a.example/${pulled++}`
    } finally {
      isClosed = true
    }
  }
  const seen: string[] = []
  const loop = (async () => {
    for await (const url of throttle.map(endless(), (url) => url, { buffer: 10 })) {
      seen.push(url)
      if (seen.length === 5) break
    }
  })()
  await clock.advance(250)
  assert.equal(seen.length, 3)
  assert.ok(pulled <= 15, `${pulled} were pulled`)
  await clock.advance(1000)
  await loop
  assert.ok(isClosed)
  assert.deepEqual([throttle.stats().waiting, throttle.stats().inFlight], [0, 0], 'what waited has left')
})

test('an error ends it, is left out, or is told, as chosen', async () => {
  const work = async (item: number) => {
    if (item === 1) throw new RangeError('one')
    return item
  }
  const first = make()
  const thrown = assert.rejects(collect(first.throttle.map([0, 1, 2, 3], work, { target })), RangeError)
  await first.clock.advance(2000)
  await thrown
  assert.deepEqual([first.throttle.stats().waiting, first.throttle.stats().inFlight], [0, 0])
  const second = make()
  const left = collect(second.throttle.map([0, 1, 2], work, { target, errors: 'skip' }))
  await second.clock.advance(2000)
  assert.deepEqual(await left, [0, 2])
  const third = make()
  const told = collect(third.throttle.map([0, 1], work, { target, errors: 'settle' }))
  await third.clock.advance(2000)
  assert.deepEqual(
    (await told).map((result) => (result.status === 'fulfilled' ? result.value : result.reason.message)),
    [0, 'one'],
  )
  const fourth = make()
  function* broken() {
    yield 0
    throw new TypeError('the source')
  }
  const failed = assert.rejects(collect(fourth.throttle.map(broken(), work, { target })), /the source/)
  await fourth.clock.advance(2000)
  await failed
})

test('an abort ends it with the reason, and what is in flight hears of it', async () => {
  const { clock, throttle } = make()
  const controller = new AbortController()
  let heard: unknown
  const work = (_: number, { signal }: Permit) =>
    new Promise<never>((_, reject) => {
      signal.addEventListener('abort', () => {
        heard = signal.reason
        reject(signal.reason)
      })
    })
  const all = assert.rejects(
    collect(throttle.map([1, 2, 3], work, { target, signal: controller.signal })),
    /enough/,
  )
  await clock.advance(50)
  controller.abort(new Error('enough'))
  await all
  assert.match(String(heard), /enough/)
  assert.deepEqual([throttle.stats().waiting, throttle.stats().inFlight], [0, 0])
})

test('a hundred thousand items: memory stays flat', async () => {
  const { throttle } = make({ delay: 0, slotDelay: 0, concurrency: 50, jitter: false })
  const items = Number(process.env.ITEMS ?? 100_000)
  function* many() {
    for (let item = 0; item < items; item++) yield item
  }
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const used = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  let [sum, most] = [0, 0]
  const start = used()
  for await (const item of throttle.map(many(), async (item) => item, { target })) {
    sum += item
    if (item % 10_000 === 0) most = Math.max(most, used() - start)
  }
  assert.equal(sum, (items * (items - 1)) / 2)
  assert.ok(most < 5e6, `${(most / 1e6).toFixed(1)} MB`)
})
