/**
 * How those who wait are woken: which timers are armed, who hears of what, and in
 * which order. A fake engine or a fake clock stands where a real one would hide the difference.
 */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, test } from 'node:test'
import { createThrottle, type Throttle, type ThrottleOptions, TimeoutError } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'
import { LONGEST_TIMEOUT } from '../../js/base/clock.js'
import { Aborts } from '../../js/core/aborts.js'
import { type Deadline, Deadlines } from '../../js/core/deadlines.js'
import { Driver } from '../../js/core/driver.js'
import type { Host } from '../../js/core/host.js'
import type { Waiter } from '../../js/core/waiting.js'
import { wakeOf } from '../../js/core/wake.js'
import { IDLE, WAIT } from '../../js/wasm/engine.js'
import { Dice } from './serve.js'

const slow = { delay: 1000, slotDelay: 0, jitter: false, concurrency: 100, backoff: false } as const

/** A clock that counts what is armed and what is cleared. */
class Counting extends FakeClock {
  readonly asked: number[] = []
  cleared = 0

  override setTimeout(wake: () => void, ms: number): unknown {
    this.asked.push(ms)
    return super.setTimeout(wake, ms)
  }

  override clearTimeout(handle: unknown): void {
    this.cleared++
    super.clearTimeout(handle)
  }
}

test('deadlines leave as a sorted list would, whatever is struck out', () => {
  const dice = new Dice(7)
  for (let round = 0; round < 300; round++) {
    const [deadlines, model, rung] = [new Deadlines(), new Map<Deadline, number>(), [] as number[]]
    for (let step = 0; step < 200; step++) {
      const at = dice.below(50)
      const kind = dice.below(4)
      if (kind < 2) {
        const deadline = deadlines.add(at, () => rung.push(at))
        model.set(deadline, at)
      } else if (kind === 2 && model.size > 0) {
        const gone = [...model.keys()][dice.below(model.size)]!
        deadlines.strike(gone)
        deadlines.strike(gone)
        model.delete(gone)
      } else {
        const due = deadlines.takeDue(at)
        const least = Math.min(...model.values())
        assert.equal(due?.at, least <= at ? least : undefined)
        if (due === undefined) continue
        assert.ok(due.isDone && model.delete(due))
        due.expire()
        assert.equal(rung.at(-1), due.at)
      }
      assert.equal(deadlines.next, Math.min(...model.values()))
    }
  }
})

/** Each look at a deadline is counted, for a test of time would flicker. */
test('to strike out all of many deadlines takes a few looks each, and leaves few of them behind', () => {
  const deadlines = new Deadlines()
  let looks = 0
  const all = Array.from({ length: 4000 }, (_, index) => {
    const deadline = deadlines.add(index, () => {})
    let isDone = false
    return Object.defineProperty(deadline, 'isDone', {
      get: () => {
        looks++
        return isDone
      },
      set: (value: boolean) => {
        isDone = value
      },
    })
  })
  for (const deadline of all) deadlines.strike(deadline)
  assert.ok(looks < 4 * all.length, `${looks} looks`)
  looks = 0
  assert.equal(deadlines.next, Number.POSITIVE_INFINITY)
  assert.ok(looks <= 34, `${looks} are still there`)
})

test('a clock is asked for one timer, for the earliest of all, in whole milliseconds from 1', () => {
  const clock = new Counting()
  const heard: string[] = []
  const sleeper = { wake: () => heard.push('drain'), grant() {}, giveBack() {} }
  const wake = wakeOf(clock, sleeper)
  wake.sleep(100.5, 0)
  assert.deepEqual([clock.asked, clock.nextAt], [[101], 101])
  wake.sleep(200, 0)
  assert.deepEqual(clock.asked, [101], 'one that is armed for earlier stays')
  wake.sleep(50, 0)
  assert.deepEqual([clock.asked, clock.cleared, clock.timers], [[101, 50], 1, 1])
  const alarm = wake.alarm(20, () => heard.push('alarm'))
  assert.deepEqual([clock.asked, clock.timers], [[101, 50, 20], 1])
  alarm.cancel()
  assert.deepEqual([clock.timers, clock.nextAt], [1, 20], 'too early does no harm')
  wake.sleep(Number.POSITIVE_INFINITY, 0)
  assert.equal(clock.timers, 0, 'no request waits: no timer stays')
  wake.sleep(-5, 0)
  wake.sleep(Number.POSITIVE_INFINITY, 0)
  wake.sleep(1e12, 0)
  assert.deepEqual(clock.asked.slice(3), [1, LONGEST_TIMEOUT])
  assert.deepEqual(heard, [])
})

test('alarms ring when they are due and not before, and one that is cancelled never', async () => {
  const clock = new Counting()
  const rung: string[] = []
  const sleeper = {
    wake: () => wake.sleep(Number.POSITIVE_INFINITY, clock.now()),
    grant() {},
    giveBack() {},
  }
  const wake = wakeOf(clock, sleeper)
  for (const ms of [30, 10, 20]) wake.alarm(ms, () => rung.push(`${ms} at ${clock.now()}`))
  wake.alarm(15, () => rung.push('never')).cancel()
  await clock.advance(9)
  assert.deepEqual(rung, [])
  await clock.advance(100)
  assert.deepEqual(rung, ['10 at 10', '20 at 20', '30 at 30'])
  assert.equal(clock.timers, 0)
})

test('with timers of their own, a waiter looks when it may leave, at the latest every 50 ms', async () => {
  const clock = Object.assign(new Counting(), { isPerRequest: true })
  const throttle = createThrottle({ clock, defaults: slow })
  const times: number[] = []
  const work = () => throttle.run({ scopes: 'x' }, () => void times.push(clock.now()))
  const all = [work(), work()]
  await clock.advance(999)
  assert.equal(times.length, 1)
  assert.ok(clock.asked.every((ms) => ms === 50) && clock.asked.length === 20, `${clock.asked}`)
  await clock.advance(1)
  await Promise.all(all)
  assert.deepEqual([times, clock.timers], [[0, 1000], 0])
  const soon = createThrottle({ clock, defaults: { ...slow, delay: 7.5 } })
  const both = [soon.run({ scopes: 'x' }, () => {}), soon.run({ scopes: 'x' }, () => {})]
  clock.asked.length = 0
  await clock.advance(10)
  await Promise.all(both)
  assert.ok(clock.asked.every((ms) => ms >= 1 && ms <= 8))
  const { asked } = clock
  soon.run({ scopes: 'y' }, () => new Promise(() => {}), { requestTimeout: 1e12 }).catch(() => {})
  await clock.advance(0)
  assert.equal(asked.at(-1), LONGEST_TIMEOUT)
})

test('with timers of their own, an abort ends the waiter’s timer, and its place is free', async () => {
  const clock = Object.assign(new Counting(), { isPerRequest: true })
  const throttle = createThrottle({ clock, defaults: { delay: 0, slotDelay: 0, concurrency: 1 } })
  const first = await throttle.acquire({ scopes: 'x' })
  const leaving = new AbortController()
  const gone = throttle.acquire({ scopes: 'x' }, { signal: leaving.signal })
  const next = throttle.acquire({ scopes: 'x' })
  await clock.advance(20)
  assert.equal(clock.timers, 2)
  first.settle()
  leaving.abort('late')
  await assert.rejects(gone, (reason) => reason === 'late')
  assert.equal(clock.timers, 1, 'its timer went with it')
  await clock.advance(50)
  const { sentAt } = await next
  assert.deepEqual([clock.timers, throttle.stats().waiting], [0, 0])
  assert.ok(sentAt <= 50)
})

test('with timers of their own, what is answered in time leaves no timer', async () => {
  const clock = Object.assign(new Counting(), { isPerRequest: true })
  const throttle = createThrottle({ clock, defaults: slow, requestTimeout: 60_000 })
  assert.equal(await throttle.run({ scopes: 'x' }, () => 7), 7)
  assert.equal(clock.timers, 0)
})

test('with timers of their own, one that is sent again at once does not go on looking', async () => {
  const clock = Object.assign(new Counting(), { isPerRequest: true })
  const statuses = [503, 200]
  const throttle = createThrottle({
    clock,
    fetch: async () => new Response('', { status: statuses.shift()! }),
    defaults: { delay: 0, slotDelay: 0, jitter: false },
    backoff: false,
    retry: { limit: 1 },
  })
  const page = throttle.fetch('https://a.example/')
  await clock.advance(10_000)
  assert.deepEqual([(await page).status, clock.timers], [200, 0])
})

test('a request that leaves takes its listener along', async () => {
  const clock = new FakeClock()
  const throttle = createThrottle({ clock, defaults: slow })
  const { signal } = new AbortController()
  const all = [1, 2, 3].map(() => throttle.run({ scopes: 'x' }, () => {}, { signal }))
  await clock.advance(0)
  assert.equal(getEventListeners(signal, 'abort').length, 1)
  await clock.advance(5000)
  await Promise.all(all)
  assert.equal(getEventListeners(signal, 'abort').length, 0)
})

/** An engine that gives what the test says, and writes down what it hears. */
function scripted(tickets: number[]) {
  const heard: string[] = []
  const engine = {
    wakeAt: 70,
    poll: (now: number) => {
      heard.push(`poll ${now}`)
      return tickets.shift() ?? IDLE
    },
    cancel: (now: number, ticket: number) => void heard.push(`cancel ${ticket} ${now}`),
  }
  return { engine: engine as unknown as Host, heard, tickets }
}

function waiter(
  ticket: number,
  scopes: string[],
  heard: string[],
  signal: AbortSignal | null = null,
): Waiter {
  return {
    ticket,
    id: 1,
    scopes,
    cost: 1,
    target: { scopes },
    signal,
    method: undefined,
    alarm: undefined,
    grant: (at) => void heard.push(`grant ${ticket} ${at}`),
    fail: (error) => void heard.push(`fail ${ticket} ${(error as Error).message ?? error}`),
    abort: (reason) => void heard.push(`abort ${ticket} ${reason}`),
  }
}

test('the driver asks until none may leave, sleeps as long as it is told, and says that it rests', () => {
  const { engine, heard, tickets } = scripted([])
  const clock = new Counting()
  const driver = new Driver(engine, clock, () => heard.push('rest'))
  driver.changed()
  assert.deepEqual(heard.splice(0), ['rest'], 'no request waits, so none is asked for')
  const [a, b] = [waiter(1, ['x'], heard), waiter(2, ['y'], heard)]
  driver.add(a, undefined)
  driver.add(b, undefined)
  tickets.push(1, 9)
  driver.changed()
  assert.deepEqual(heard.splice(0), ['poll 0', 'grant 1 0', 'poll 0', 'poll 0', 'rest'])
  driver.refuse(1, new Error('gone'))
  assert.deepEqual(heard, [], 'it left before')
  driver.refuse(2, new Error('refused'))
  assert.deepEqual(heard.splice(0), ['fail 2 refused'])
})

test('the driver sleeps until the engine says, and without an end where it has nothing to wait for', () => {
  const clock = new Counting()
  const { engine, heard, tickets } = scripted([WAIT])
  const driver = new Driver(engine, clock, () => {})
  driver.drain()
  assert.deepEqual([clock.asked, clock.nextAt], [[70], 70])
  driver.drain()
  assert.deepEqual([clock.timers, heard], [0, ['poll 0', 'poll 0']])
  tickets.push(WAIT)
  driver.drain()
  assert.equal(clock.timers, 1)
  tickets.push(IDLE)
  driver.drain()
  assert.equal(clock.timers, 0)
})

test('a request that is submitted while others leave is polled for in the same drain, once', () => {
  const { engine, heard, tickets } = scripted([1])
  const driver = new Driver(engine, new FakeClock(), () => heard.push('rest'))
  const first = waiter(1, ['x'], heard)
  driver.add(
    {
      ...first,
      grant: (at) => {
        first.grant(at)
        tickets.unshift(IDLE, 2)
        driver.add(waiter(2, ['x'], heard), undefined)
        driver.drain()
      },
    },
    undefined,
  )
  driver.drain()
  assert.deepEqual(heard, ['poll 0', 'grant 1 0', 'poll 0', 'poll 0', 'grant 2 0', 'poll 0', 'rest'])
})

test('a drain that throws is over: the next one asks', () => {
  const { engine, heard, tickets } = scripted([1])
  const driver = new Driver(engine, new FakeClock(), () => {})
  const broken = new Error('broken')
  driver.add(
    {
      ...waiter(1, ['x'], heard),
      grant() {
        throw broken
      },
    },
    undefined,
  )
  assert.throws(() => driver.drain(), broken)
  tickets.push(2)
  driver.add(waiter(2, ['x'], heard), undefined)
  driver.drain()
  assert.ok(heard.includes('grant 2 0'))
})

test('failing all of a scope leaves the others, and a timeout ends one', async () => {
  const { engine, heard } = scripted([])
  const clock = new FakeClock()
  const driver = new Driver(engine, clock, () => {})
  for (const [ticket, scopes] of [
    [1, ['x']],
    [2, ['y', 'x']],
    [3, ['y']],
  ] as const)
    driver.add(waiter(ticket, [...scopes], heard), undefined)
  driver.failAll(new Error('over'), 'x')
  assert.deepEqual(heard.splice(0), ['cancel 1 0', 'cancel 2 0', 'poll 0', 'fail 1 over', 'fail 2 over'])
  driver.failAll(new Error('all'))
  assert.deepEqual(heard.splice(0), ['cancel 3 0', 'poll 0', 'fail 3 all'])
  driver.add(waiter(4, ['y'], heard), 40)
  await clock.advance(39)
  assert.ok(!heard.join().includes('fail'))
  await clock.advance(1)
  assert.match(heard.join(), /cancel 4 40,fail 4 .*40 ms/)
  heard.length = 0
  await clock.advance(1000)
  assert.deepEqual([heard, clock.timers], [[], 0])
})

test('one listener serves all who wait with a signal, and goes with the last of them', async () => {
  const [aborts, controller] = [new Aborts(), new AbortController()]
  const { signal } = controller
  const listeners = () => getEventListeners(signal, 'abort').length
  const heard: unknown[] = []
  const member = (name: string) => ({ abort: (reason: unknown) => heard.push([name, reason]) })
  const [a, b, c] = [member('a'), member('b'), member('c')]
  aborts.remove(signal, a)
  aborts.add(signal, a)
  aborts.add(signal, b)
  assert.equal(listeners(), 1)
  aborts.remove(signal, a)
  aborts.remove(signal, a)
  assert.equal(listeners(), 1)
  aborts.remove(signal, b)
  assert.equal(listeners(), 0)
  aborts.remove(signal, b)
  for (const each of [a, b, c]) aborts.add(signal, each)
  aborts.remove(signal, b)
  controller.abort('why')
  assert.deepEqual(heard, [
    ['a', 'why'],
    ['c', 'why'],
  ])
  assert.equal(listeners(), 0)
  await assert.rejects(aborts.race(new Promise(() => {}), AbortSignal.abort('early')), (reason) => {
    return reason === 'early'
  })
  const calm = new AbortController()
  assert.equal(await aborts.race(Promise.resolve(3), calm.signal), 3)
  await assert.rejects(aborts.race(Promise.reject(new Error('no')), calm.signal), /no/)
  assert.equal(await aborts.race(Promise.resolve(4), null), 4)
  await assert.rejects(aborts.race(Promise.reject(new Error('no')), null), /no/)
  assert.equal(getEventListeners(calm.signal, 'abort').length, 0)
})

test('a gap is counted from when a function was called, however long the loop that asked for it took', async () => {
  const clock = new FakeClock()
  const throttle = createThrottle({ clock, defaults: { ...slow, delay: 10 } })
  const starts: number[] = []
  for (let index = 0; index < 4; index++) {
    void throttle.run('https://a.example', (permit) => {
      assert.equal(permit.sentAt, clock.now())
      starts.push(clock.now())
    })
    clock.jump(7)
  }
  await clock.advance(60)
  assert.deepEqual(starts, [28, 38, 48, 58])
})

test('one that is called late makes the next one later, by run, acquire and fetch', async () => {
  const clock = new FakeClock()
  const starts: number[] = []
  const send = async () => {
    starts.push(clock.now())
    return new Response()
  }
  const throttle = createThrottle({ clock, fetch: send, defaults: { ...slow, delay: 10 } })
  const late = 'https://late.example'
  const ways = {
    run: (url: string) => throttle.run(url, send),
    fetch: (url: string) => throttle.fetch(url),
    acquire: async (url: string) => {
      await throttle.acquire(url)
      await send()
    },
  }
  for (const [name, way] of Object.entries(ways)) {
    const url = `https://${name}.example`
    await Promise.all([throttle.run(late, () => {}), way(url)])
    starts.length = 0
    // A call before it takes four milliseconds.
    void throttle.run(late, () => clock.jump(4))
    for (let index = 0; index < 3; index++) void way(url)
    await clock.advance(100)
    const gaps = starts.slice(1).map((at, index) => at - starts[index]!)
    assert.deepEqual(gaps, [10, 10], `${name}: ${starts}`)
  }
})

test('a first fetch that holds the event loop makes the next request later', async () => {
  for (const way of ['run', 'run in time', 'fetch']) {
    const clock = new FakeClock()
    const starts: number[] = []
    const send = async () => {
      starts.push(clock.now())
      if (starts.length === 2) clock.jump(34)
      return new Response()
    }
    const throttle = createThrottle({ clock, fetch: send, defaults: { ...slow, delay: 10 } })
    const url = 'https://a.example'
    for (let index = 0; index < 4; index++)
      void (way === 'fetch'
        ? throttle.fetch(url)
        : throttle.run(url, send, way === 'run' ? {} : { requestTimeout: 1000 }))
    await clock.advance(100)
    assert.deepEqual(starts, [0, 10, 54, 64], way)
  }
})

test('a gap counts from the send, also where it is late and no request waits for the next', async () => {
  const url = 'https://a.example/'
  const ways: [string, (throttle: Throttle, send: () => void) => Promise<unknown>][] = [
    ['run', (throttle, send) => throttle.run(url, () => ({ status: 200, at: send() }))],
    [
      'acquire',
      async (throttle, send) => {
        const permit = await throttle.acquire(url)
        send()
        permit.settle({ status: 200 })
      },
    ],
  ]
  const paces: ThrottleOptions[] = [
    { delay: 100, slotDelay: 0, jitter: false },
    { delay: 0, scopes: { 'a.example': { delay: 100, jitter: false } } },
  ]
  for (const [name, way] of ways)
    for (const pace of paces) {
      const clock = new FakeClock()
      const throttle = createThrottle({ clock, defaults: { concurrency: 5 }, ...pace })
      const sent: number[] = []
      const send = () => sent.push(clock.now())
      const first = way(throttle, send)
      clock.jump(80) // a loop that is busy right after the call
      await first
      await clock.advance(25)
      const second = way(throttle, send)
      await clock.advance(100)
      await second
      assert.deepEqual(sent, [80, 180], `${name} ${JSON.stringify(pace)}`)
    }
})

test('a host that backs off is one with a pace: without one, a late start is not looked at', async () => {
  const clock = new FakeClock()
  const throttle = createThrottle({ clock, defaults: { delay: 0, concurrency: 5, backoff: { jitter: 0 } } })
  const sent: number[] = []
  const call = (status: number) =>
    throttle.run('https://a.example/', () => {
      sent.push(clock.now())
      return { status }
    })
  await call(429)
  await clock.advance(1000)
  const late = call(200)
  clock.jump(500)
  await late
  await clock.advance(600)
  const next = call(200)
  await clock.advance(1000)
  await next
  assert.deepEqual(sent, [0, 1500, 2500])
})

describe('requests with a `maxWait` of their own, in any order', () => {
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
      const started = clock.now()
      const throttle = createThrottle({ clock, defaults: { concurrency: 1, delay: 0, slotDelay: 0 } })
      const permit = await throttle.acquire(page)
      const ends: number[] = []
      const waiting = mixed(count, step).map(async (place) => {
        const maxWait = 100 + 10 * place
        await assert.rejects(throttle.acquire(page, { maxWait }), TimeoutError)
        ends.push(clock.now() - started - maxWait)
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
    const started = clock.now()
    const throttle = createThrottle({ clock, defaults: { concurrency: 1, delay: 0, slotDelay: 0 } })
    const permit = await throttle.acquire(page)
    const ends: number[] = []
    const leaving = new AbortController()
    const waiting = mixed(40, 17).map(async (place) => {
      const maxWait = 100 + 10 * place
      const signal = place % 3 === 0 ? leaving.signal : null
      await throttle.acquire(page, { maxWait, signal }).catch(() => ends.push(clock.now() - started))
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
})
