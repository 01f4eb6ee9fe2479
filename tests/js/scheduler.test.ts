/**
 * How one request comes in and ends, without a server to wait for: wrong options, permits, timeouts, closing,
 * managers that throw. Whatever happens, the slot comes back.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ClosedError,
  createThrottle,
  ManagerError,
  type Permit,
  type SendEvent,
  TimeoutError,
  type WarningEvent,
} from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

const slow = { delay: 1000, slotDelay: 0, jitter: false, concurrency: 100, backoff: false } as const

test('a permit: settled once, and at the end of its block', async () => {
  const throttle = createThrottle({ clock: new FakeClock(), defaults: { delay: 0, slotDelay: 0 } })
  const permit = await throttle.acquire({ scopes: 'x' })
  assert.deepEqual([permit.isSettled, permit.scopes, permit.target], [false, ['x'], { scopes: 'x' }])
  permit[Symbol.dispose]()
  assert.deepEqual([permit.isSettled, throttle.stats().settled], [true, 1])
  permit.settle({ status: 429 })
  permit[Symbol.dispose]()
  assert.deepEqual([throttle.stats().settled, throttle.scope('x').stats.backoffStep], [1, 0])
})

test('a requestTimeout of run’s: the slot comes back, and what is done in time leaves no timer', async () => {
  const clock = new FakeClock()
  const free = { delay: 0, slotDelay: 0, jitter: false, backoff: {} } as const
  const throttle = createThrottle({ clock, requestTimeout: 500, defaults: free })
  assert.equal(await throttle.run({ scopes: 'x' }, () => 7), 7)
  assert.equal(clock.timers, 0)
  const hangs = throttle.run({ scopes: 'x' }, () => new Promise(() => {}))
  hangs.catch((error: TimeoutError) => assert.ok(error.isSent))
  const longer = throttle.run({ scopes: 'y' }, () => new Promise(() => {}), { requestTimeout: 800 })
  const late = assert.rejects(hangs, TimeoutError)
  await clock.advance(499)
  assert.equal(throttle.stats().inFlight, 2)
  await clock.advance(1)
  await late
  assert.deepEqual([throttle.stats().inFlight, throttle.scope('x').stats.backoffStep], [1, 1])
  const later = assert.rejects(longer, TimeoutError)
  await clock.advance(300)
  await later
  assert.deepEqual([throttle.stats().inFlight, clock.timers], [0, 0])
})

test('idle waits for what waits, flies, or is on its way in, and tells all who asked', async () => {
  const clock = new FakeClock()
  let answer = (_: string) => {}
  const throttle = createThrottle({
    clock,
    defaults: slow,
    getScopes: () => new Promise<string>((resolve) => (answer = resolve)),
  })
  const rested: string[] = []
  const ask = (name: string) => throttle.idle().then(() => rested.push(name))
  await ask('at once')
  const run = throttle.run('https://a.example/', () => {})
  void ask('one')
  void ask('two')
  await clock.advance(10)
  assert.deepEqual(rested, ['at once'], 'a hook thinks')
  answer('x')
  await run
  await clock.advance(0)
  assert.deepEqual(rested, ['at once', 'one', 'two'])
})

test('a closed throttle takes in nothing, ends what waits, and waits for what flies', async () => {
  const clock = new FakeClock()
  const throttle = createThrottle({ clock, defaults: { ...slow, concurrency: 1 } })
  const flying = await throttle.acquire({ scopes: 'x' })
  const waiting = assert.rejects(throttle.acquire({ scopes: 'x' }), ClosedError)
  let isLeft = false
  const left = throttle[Symbol.asyncDispose]().then(() => {
    isLeft = true
  })
  await waiting
  await assert.rejects(throttle.acquire({ scopes: 'y' }), ClosedError)
  await clock.advance(0)
  assert.ok(!isLeft)
  flying.settle()
  await left
  throttle.close('again')
  assert.deepEqual([throttle.stats().inFlight, throttle.stats().waiting, clock.timers], [0, 0, 0])
})

test('an abort before is the reason, and nothing was asked for', async () => {
  const throttle = createThrottle({ clock: new FakeClock(), defaults: slow })
  const signal = AbortSignal.abort('before')
  await assert.rejects(throttle.acquire({ scopes: 'x' }, { signal }), (reason) => reason === 'before')
  assert.deepEqual([throttle.stats().sent, throttle.stats().waiting], [0, 0])
})

test('many who wait are a warning, once, from the threshold on', async () => {
  const clock = new FakeClock()
  const throttle = createThrottle({ clock, warnThreshold: 3, defaults: slow })
  const warned: string[] = []
  throttle.addEventListener('warning', ({ code, message }: WarningEvent) => {
    if (code === 'many-waiting') warned.push(message)
  })
  const all: Promise<void>[] = []
  for (let count = 0; count < 3; count++) all.push(throttle.run({ scopes: 'x' }, () => {}))
  assert.deepEqual(warned, [], 'one was sent, two wait')
  for (let count = 0; count < 3; count++) all.push(throttle.run({ scopes: 'x' }, () => {}))
  assert.deepEqual(warned, ['3 requests wait: pull work with throttle.map'])
  await clock.advance(10_000)
  await Promise.all(all)
})

test('a manager that throws at a send is told to who asked, and the slot comes back', async () => {
  const clock = new FakeClock()
  const broken = new Error('broken')
  let isBroken = true
  const throttle = createThrottle({
    clock,
    defaults: { delay: 0, slotDelay: 0 },
    scopes: {
      x: {
        manager: {
          onSend() {
            if (isBroken) throw broken
          },
        },
      },
    },
  })
  const sends: unknown[] = []
  throttle.addEventListener('send', (event: SendEvent) => sends.push(event))
  await assert.rejects(
    throttle.acquire({ scopes: 'x' }),
    (error) => error instanceof ManagerError && error.cause === broken,
  )
  assert.deepEqual([throttle.stats().inFlight, sends.length], [0, 0])
  isBroken = false
  const permit: Permit = await throttle.acquire({ scopes: 'x' })
  assert.deepEqual([throttle.stats().inFlight, sends.length], [1, 1])
  permit.settle()
})

test('a manager that throws at the send of one who waited is told to that one, and the next one leaves', async () => {
  const clock = new FakeClock()
  let sends = 0
  const onSend = () => {
    if (++sends === 2) throw new Error('broken')
  }
  const throttle = createThrottle({
    clock,
    defaults: { delay: 1000, slotDelay: 0, jitter: false },
    scopes: { x: { manager: { onSend } } },
  })
  const all = Promise.allSettled([1, 2, 3].map((each) => throttle.run({ scopes: 'x' }, () => each)))
  await clock.advance(5000)
  const [first, second, third] = await all
  assert.deepEqual(
    [first, third].map((each) => each?.status),
    ['fulfilled', 'fulfilled'],
  )
  assert.ok(second?.status === 'rejected' && second.reason instanceof ManagerError)
  assert.deepEqual([throttle.stats().inFlight, throttle.stats().waiting], [0, 0])
})

test('several scopes at once: each keeps a slot, and a peek says when without asking', async () => {
  const clock = new FakeClock()
  const throttle = createThrottle({ clock, defaults: slow })
  const permit = await throttle.acquire({ scopes: ['x', 'y'] })
  assert.deepEqual(permit.scopes, ['x', 'y'])
  assert.deepEqual([throttle.scope('x').stats.inFlight, throttle.scope('y').stats.inFlight], [1, 1])
  assert.equal(throttle.peek({ scopes: ['y'] }).at, 1000)
  assert.equal(throttle.peek({ scopes: ['z'] }).at, 0)
  assert.equal(throttle.stats().waiting, 0)
  permit.settle()
  const hooked = createThrottle({ clock, getScopes: async () => 'x' })
  assert.throws(() => hooked.peek('https://a.example/'), /peek: with getScopes, want \{ scopes \}/)
})

test('idle is told also where a hook fails, and nothing was ever sent', async () => {
  const broken = new Error('broken')
  let fail = (_: unknown) => {}
  const throttle = createThrottle({
    clock: new FakeClock(),
    getScopes: () => new Promise<string>((_, reject) => (fail = reject)),
  })
  const run = assert.rejects(throttle.run('https://a.example/', () => {}))
  const idle = throttle.idle()
  fail(broken)
  await run
  await idle
  assert.equal(throttle.stats().sent, 0)
})

test('a peek knows what a request will cost', async () => {
  const clock = new FakeClock()
  const quota = { limit: 5, window: 1000, strict: true }
  const throttle = createThrottle({ clock, defaults: { delay: 0, slotDelay: 0, quota } })
  await throttle.run({ scopes: 'x' }, () => {}, { cost: 3 })
  const at = (cost?: number) => throttle.peek({ scopes: 'x' }, cost === undefined ? {} : { cost }).at
  assert.deepEqual([at(), at(2), at(3)], [0, 0, 1000])
  assert.equal(throttle.peek({ scopes: { x: 4 } }, { cost: 1 }).at, 1000, 'a target names its own')
})
