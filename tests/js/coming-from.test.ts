/**
 * The tables of `docs/coming-from.md`: each line plays on both sides. Where both cells make a limiter, sixty
 * jobs start at the same moments; a line of calls has its case below. The other libraries run on Node's
 * mocked timers, which move by a millisecond, so they start some of them late.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mock, test } from 'node:test'
import type { ThrottleOptions } from 'autothrottle'
import * as autothrottle from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'
import Bottleneck from 'bottleneck'
import pLimit from 'p-limit'
import PQueue from 'p-queue'
import pThrottle from 'p-throttle'

const page = readFileSync(new URL('../../docs/coming-from.md', import.meta.url), 'utf8')
const tables = page.slice(0, page.indexOf('## Scrapy'))
const lines = [...tables.matchAll(/^\| (?!-)(.+?) \| (.+) \|$/gm)]
  .map(([, theirs, ours]) => [theirs!, ours!] as const)
  .filter(([, ours]) => ours !== 'here')

const url = 'https://api.example/'
const turn = globalThis.setImmediate
/** Lets promises run. */
const settle = () => new Promise<void>((done) => turn(() => done()))

type Sleep = (ms: number) => Promise<void>
/** Calls a job when the limiter says so. */
type Schedule = (job: () => Promise<unknown>) => unknown
type Play = (now: () => number, sleep: Sleep) => void

/** Plays for so long on Node's mocked timers. */
async function mocked(ms: number, play: Play): Promise<void> {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: 1_000_000 })
  try {
    play(
      () => Date.now() - 1_000_000,
      (span) => new Promise((done) => setTimeout(done, span)),
    )
    for (let at = 0; at < ms; at++) {
      await settle()
      mock.timers.tick(1)
    }
    await settle()
  } finally {
    mock.timers.reset()
  }
}

/** Makes a throttle as a cell has it. */
function made(clock: FakeClock, code: string): autothrottle.Throttle {
  const createThrottle = (options: ThrottleOptions) =>
    autothrottle.createThrottle({ ...options, clock, seed: 1 })
  return new Function('createThrottle', `return ${code}`)(createThrottle)
}

/** Plays for so long on a clock that is moved. */
async function moved(ms: number, play: (clock: FakeClock) => void): Promise<void> {
  const clock = new FakeClock()
  play(clock)
  await clock.advance(ms)
}

const later = (clock: FakeClock, ms: number) => new Promise<void>((done) => clock.setTimeout(done, ms))

/** The limiter that the code of another library's cell makes. */
function limiter(code: string): Schedule {
  const names = { PQueue, pLimit, pThrottle, Bottleneck }
  const theirs = new Function(...Object.keys(names), `return ${code}`)(...Object.values(names))
  if (theirs instanceof PQueue) return (job) => theirs.add(job)
  if (theirs instanceof Bottleneck) return (job) => theirs.schedule(job)
  if (code.startsWith('pThrottle')) return theirs((job: () => Promise<unknown>) => job())
  return theirs
}

/** When sixty jobs start that take so long. A setting that the others bound may be told to have no effect. */
async function both(theirs: string, ours: string, latency: number, ms: number, isBound = false) {
  const starts: [number[], number[]] = [[], []]
  await mocked(ms, (now, sleep) => {
    const schedule = limiter(theirs)
    const job = async () => {
      starts[0].push(now())
      await sleep(latency)
    }
    for (let each = 0; each < 60; each++) schedule(job)
  })
  await moved(ms, (clock) => {
    const throttle = made(clock, ours)
    throttle.addEventListener('warning', ({ message }) => assert.ok(isBound, message))
    const since = clock.now()
    const job = async () => {
      starts[1].push(clock.now() - since)
      await later(clock, latency)
      return { status: 200 }
    }
    for (let each = 0; each < 60; each++) throttle.run(url, job)
  })
  return starts
}

/** A bucket that fills by two each second, and one that fills by one each half. */
const SHOP = [...tables.matchAll(/^const \w+ = ((?:new Bottleneck|createThrottle)\(\{\n.*?^\}\))/gms)].map(
  ([, code]) => code!,
)

const isMade = ([theirs]: readonly [string, string]) => /^`(?:new |p[LT]\w+\()[^`]*`$/.test(theirs)
const pairs = lines.filter(isMade).map((line) => line.map((cell) => cell.replaceAll('`', '')))

for (const [theirs, ours] of pairs)
  test(theirs!, async () => {
    for (const latency of [50, 1500]) {
      const [first, second] = await both(theirs!, ours!, latency, 8000)
      assert.ok(first.length >= 5, `${first.length} start`)
      for (const [index, at] of first.entries()) {
        if (at > 7800) break
        const differs = Math.abs(second[index]! - at)
        assert.ok(differs <= 60, `job ${index}: ${at} there, ${second[index]} here, at ${latency} ms`)
      }
      assert.ok(Math.abs(first.length - second.length) <= 5)
    }
  })

const FREE = { delay: 0, jitter: false, backoff: false } as const
const free = (clock: FakeClock, options: ThrottleOptions = {}) =>
  autothrottle.createThrottle({ clock, ...FREE, ...options })
const none = async () => {}

/** A line of calls: what comes out on both sides, by how the line begins. */
const CALLS: Record<string, () => Promise<[theirs: unknown, ours: unknown]>> = {
  async 'queue.add(fn, { priority: 1 })'() {
    const orders: [string[], string[]] = [[], []]
    await mocked(2000, (_, sleep) => {
      const queue = new PQueue({ concurrency: 1 })
      for (const [name, priority] of [['a'], ['b'], ['c', 1]] as const)
        queue.add(() => sleep(orders[0].push(name)), { priority })
    })
    await moved(2000, (clock) => {
      const throttle = free(clock)
      for (const [name, priority = 0] of [['a'], ['b'], ['c', 1]] as const)
        throttle.run(url, () => later(clock, orders[1].push(name)), { priority })
    })
    assert.deepEqual(orders[1], ['a', 'c', 'b'])
    return orders
  },
  async 'queue.pause()'() {
    const started: [number, number] = [0, 0]
    await mocked(100, (_, sleep) => {
      const queue = new PQueue()
      queue.pause()
      queue.add(async () => started[0]++)
      sleep(50).then(() => {
        assert.equal(started[0]++, 0)
        queue.start()
      })
    })
    await moved(100, (clock) => {
      const throttle = free(clock)
      throttle.pause()
      throttle.run(url, async () => started[1]++)
      later(clock, 50).then(() => {
        assert.equal(started[1]++, 0)
        throttle.resume()
      })
    })
    assert.equal(started[1], 2)
    return started
  },
  async 'queue.size'() {
    let theirs: unknown
    let ours: unknown
    await mocked(10, (_, sleep) => {
      const queue = new PQueue({ concurrency: 2 })
      for (let each = 0; each < 5; each++) queue.add(() => sleep(50))
      theirs = [queue.size, queue.pending]
    })
    await moved(10, (clock) => {
      const throttle = free(clock, { concurrency: 2 })
      for (let each = 0; each < 5; each++) throttle.run(url, () => later(clock, 50))
      const { waiting, inFlight } = throttle.stats()
      ours = [waiting, inFlight]
    })
    return [theirs, ours]
  },
  async 'await queue.onIdle()'() {
    const idle: [number, number] = [0, 0]
    await mocked(500, (now, sleep) => {
      const queue = new PQueue({ concurrency: 1 })
      for (let each = 0; each < 3; each++) queue.add(() => sleep(100))
      queue.onIdle().then(() => {
        idle[0] = now()
      })
    })
    await moved(500, (clock) => {
      const throttle = free(clock, { concurrency: 1 })
      const since = clock.now()
      for (let each = 0; each < 3; each++) throttle.run(url, () => later(clock, 100))
      throttle.idle().then(() => {
        idle[1] = clock.now() - since
      })
    })
    return idle
  },
  async timeout() {
    const names: [string, string] = ['', '']
    await mocked(200, (_, sleep) => {
      new PQueue({ timeout: 100 })
        .add(() => sleep(1000))
        .catch(({ name }) => {
          names[0] = name
        })
    })
    await moved(200, (clock) => {
      const run = free(clock, { requestTimeout: 100 }).run(url, () => later(clock, 1000))
      run.catch(({ name }) => {
        names[1] = name
      })
    })
    assert.equal(names[1], 'TimeoutError')
    return names
  },
  async 'limit.activeCount'() {
    let ours: unknown
    const limit = pLimit(2)
    const all = [1, 2, 3].map(() => limit(settle))
    await Promise.resolve()
    const theirs = [limit.activeCount, limit.pendingCount]
    await moved(10, (clock) => {
      const throttle = free(clock, { concurrency: 2 })
      for (let each = 0; each < 3; each++) throttle.run(url, () => later(clock, 50))
      const { waiting, inFlight } = throttle.stats()
      ours = [inFlight, waiting]
    })
    await Promise.all(all)
    return [theirs, ours]
  },
  async 'limit.map(items, fn)'() {
    const theirs = await pLimit(2).map([1, 2, 3], async (item) => item * 2)
    const ours: number[] = []
    await moved(10, async (clock) => {
      const throttle = free(clock, { getScopes: () => 'jobs' })
      const requests = [1, 2, 3].map((item) => ({ item, scopes: 'jobs' }))
      for await (const result of throttle.map(requests, async ({ item }) => item * 2)) ours.push(result)
    })
    return [theirs, ours]
  },
  async 'pThrottle({ limit: 2, interval: 1000, strict: true })'() {
    const code = 'pThrottle({ limit: 2, interval: 1000, strict: true })'
    const [theirs, ours] = await both(code, 'createThrottle({ rate: 2 })', 50, 8000)
    assert.deepEqual([theirs[1], ours[1]], [0, 500])
    return [theirs.slice(2, 15), ours.slice(2, 15)]
  },
  async 'weight: (points)'() {
    const starts: [number[], number[]] = [[], []]
    await mocked(3000, (now) => {
      const options = { limit: 4, interval: 1000, weight: (points: number) => points }
      const run = pThrottle(options)((_: number) => starts[0].push(now()))
      for (const points of [2, 2, 2, 2]) run(points)
    })
    await moved(3000, (clock) => {
      const throttle = free(clock, { quota: { limit: 4, window: 1000 } })
      const since = clock.now()
      for (const cost of [2, 2, 2, 2])
        throttle.run(url, async () => void starts[1].push(clock.now() - since), { cost })
    })
    return starts
  },
  async onDelay() {
    const delayed: [number, number] = [0, 0]
    await mocked(3000, () => {
      const run = pThrottle({ limit: 2, interval: 1000, onDelay: () => delayed[0]++ })(none)
      for (let each = 0; each < 5; each++) run()
    })
    await moved(3000, (clock) => {
      const throttle = free(clock, { quota: { limit: 2, window: 1000 }, concurrency: 100 })
      for (let each = 0; each < 5; each++) {
        if (throttle.peek(url).at > throttle.now()) delayed[1]++
        throttle.run(url, none)
      }
    })
    return delayed
  },
  async 'schedule({ weight: 2 }, fn)'() {
    const starts: [number[], number[]] = [[], []]
    await mocked(2600, (now) => {
      const reservoir = { reservoir: 4, reservoirRefreshAmount: 4, reservoirRefreshInterval: 1000 }
      const limiter = new Bottleneck(reservoir)
      for (const weight of [2, 2, 2, 2]) limiter.schedule({ weight }, async () => starts[0].push(now()))
    })
    await moved(2600, (clock) => {
      const throttle = free(clock, { quota: { limit: 4, window: 1000 } })
      const since = clock.now()
      for (const cost of [2, 2, 2, 2])
        throttle.run(url, async () => void starts[1].push(clock.now() - since), { cost })
    })
    const seconds = (all: number[]) => all.map((at) => Math.floor(at / 1000))
    return [seconds(starts[0]), seconds(starts[1])]
  },
  async 'schedule({ priority: 0 }, fn)'() {
    const orders: [number[], number[]] = [[], []]
    await mocked(2000, (_, sleep) => {
      const limiter = new Bottleneck({ maxConcurrent: 1 })
      for (const priority of [5, 5, 9, 0])
        limiter.schedule({ priority }, () => sleep(orders[0].push(priority) * 10))
    })
    await moved(2000, (clock) => {
      const throttle = free(clock, { concurrency: 1 })
      for (const priority of [5, 5, 9, 0])
        throttle.run(url, () => later(clock, orders[1].push(priority) * 10), { priority: 9 - priority })
    })
    assert.deepEqual(new Set(orders[1].slice(1, 2)), new Set([0]))
    // Bottleneck sorts also the first, which is here on its way.
    return [orders[0].filter((each) => each !== 5), orders[1].filter((each) => each !== 5)]
  },
  async highWater() {
    const lost: [number, number] = [0, 0]
    await mocked(2000, (_, sleep) => {
      const limiter = new Bottleneck({
        maxConcurrent: 1,
        highWater: 2,
        strategy: Bottleneck.strategy.OVERFLOW,
      })
      for (let each = 0; each < 5; each++) limiter.schedule(() => sleep(10)).catch(() => lost[0]++)
    })
    await moved(2000, (clock) => {
      const throttle = free(clock, { concurrency: 1, maxWaiting: 2 })
      for (let each = 0; each < 5; each++)
        throttle
          .run(url, () => later(clock, 10))
          .catch(({ code }) => {
            if (code === 'ERR_QUEUE_FULL') lost[1]++
          })
    })
    return lost
  },
  async Group() {
    const starts: [number[], number[]] = [[], []]
    const hosts = ['a.example', 'b.example', 'a.example', 'b.example']
    await mocked(3000, (now) => {
      const group = new Bottleneck.Group({ minTime: 1000 })
      for (const host of hosts) group.key(host).schedule(async () => starts[0].push(now()))
    })
    await moved(3000, (clock) => {
      const throttle = free(clock, { delay: 1000 })
      const since = clock.now()
      for (const host of hosts)
        throttle.run(`https://${host}/`, async () => void starts[1].push(clock.now() - since))
    })
    const seconds = (all: number[]) => all.map((at) => Math.floor(at / 1000))
    return [seconds(starts[0]), seconds(starts[1])]
  },
  async "'failed' event"() {
    const starts: [number[], number[]] = [[], []]
    const refused = () => {
      const headers = { 'retry-after': '2' }
      throw Object.assign(new Error('429'), { status: 429, headers, response: { status: 429, headers } })
    }
    await mocked(9000, (now) => {
      const limiter = new Bottleneck()
      limiter.on('failed', (_, { retryCount }) => (retryCount < 2 ? 2000 : undefined))
      limiter.schedule(async () => void (starts[0].push(now()) < 3 && refused()))
    })
    await moved(9000, (clock) => {
      const throttle = free(clock)
      const since = clock.now()
      const job = async () => void (starts[1].push(clock.now() - since) < 3 && refused())
      throttle.run(url, job, { retry: { limit: 2 } })
    })
    // Never before the two seconds are over, and at most one more.
    for (const [index, at] of starts[1].entries()) {
      const gap = at - (starts[1][index - 1] ?? at - 2000)
      assert.ok(gap >= 2000 && gap <= 3100, `${gap}`)
    }
    return [starts[0].length, starts[1].length]
  },
}

const calls = lines.filter((line) => !isMade(line)).map(([theirs]) => theirs.replaceAll('`', ''))
for (const line of calls)
  test(line, async () => {
    const found = Object.keys(CALLS).find((begin) => line.startsWith(begin))
    assert.ok(found, 'it has a case')
    const [theirs, ours] = await CALLS[found]!()
    assert.deepEqual(ours, theirs)
  })

test('each case is a line', () => {
  assert.equal(calls.length, Object.keys(CALLS).length)
  assert.ok(pairs.length >= 10)
})

test('Shopify: a bucket and a gap', async () => {
  assert.equal(SHOP.length, 2)
  for (const latency of [50, 1500]) {
    const [theirs, ours] = await both(SHOP[0]!, SHOP[1]!, latency, 40_000, latency > 1000)
    assert.deepEqual([theirs.length, ours.length], [60, 60])
    for (const [index, at] of theirs.entries())
      assert.ok(Math.abs(ours[index]! - at) <= 600, `job ${index}: ${at} there, ${ours[index]} here`)
  }
})

test('a bucket of five and five a second lets nine leave in the first second, a window five', async () => {
  const within = async (ours: string) => {
    const [, starts] = await both('new PQueue({ concurrency: 1 })', ours, 50, 3000)
    return starts.filter((at) => at < 1000).length
  }
  assert.equal(await within('createThrottle({ rate: { limit: 5, window: 1000, burst: 5 } })'), 9)
  assert.equal(await within('createThrottle({ quota: { limit: 5, window: 1000 }, concurrency: 100 })'), 5)
  assert.equal(await within('createThrottle({ rate: 5 })'), 5)
})
