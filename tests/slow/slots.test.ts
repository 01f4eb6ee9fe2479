/**
 * No slot is ever lost: whatever a hook, a body, a fetch, a caller or an outcome does, at rest no request
 * waits and none is in flight. The cases that were seen, and a property over random orders of all of them:
 * `ORDERS=100 RUNS=10000 node --import tsx --test tests/slow/slots.test.ts`.
 */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import {
  createThrottle,
  type Permit,
  type PermitOutcome,
  type ThrottleOptions,
  TimeoutError,
} from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'
import { Dice, serve } from '../js/serve.js'
import { free, isAtRest, never, page, unpaced } from '../js/unpaced.js'

/** No answer makes it slower. */
const make = (options: ThrottleOptions, answer?: Parameters<typeof unpaced>[1]) =>
  unpaced({ backoff: false, ...options }, answer)

/** A body that says little, and what happens when it is let go of. */
const body = (cancel: () => unknown) => new ReadableStream({ cancel: () => cancel() as Promise<void> })

test('an async hook and a server that resets after the headers of a 503: all slots come back', async () => {
  let count = 0
  const url = await serve((_, response) => {
    if (++count % 2 === 0) return void response.end('ok')
    response.writeHead(503, { 'content-length': '100' })
    response.write('begin', () => response.destroy())
  })
  const throttle = createThrottle({
    maxInFlight: 100,
    defaults: { ...free, concurrency: 100 },
    backoff: false,
    retry: { limit: 3 },
    getHints: () => new Promise((resolve) => setTimeout(resolve, 5, undefined)),
  })
  await Promise.allSettled(Array.from({ length: 100 }, async () => (await throttle.fetch(url)).text()))
  isAtRest(throttle)
})

test('a body that fails, throws or never answers when it is let go of holds no other request up', async () => {
  const cancels = [
    () => Promise.reject(new Error('reset')),
    never,
    () => {
      throw new Error('reset')
    },
  ]
  for (const cancel of cancels) {
    const statuses = [503, 302, 200]
    const answer = () =>
      new Response(body(cancel), { status: statuses.shift()!, headers: { location: '/next' } })
    const { clock, throttle } = make({ retry: { limit: 1 }, redirects: 'throttle' }, answer)
    const fetched = throttle.fetch(page)
    await clock.advance(100)
    assert.equal((await fetched).status, 200)
    isAtRest(throttle)
  }
})

test('a hook that clones and does not read: the retry goes on', async () => {
  const statuses = [503, 200]
  const answer = () => new Response(body(never), { status: statuses.shift()! })
  const { clock, throttle } = make(
    { retry: { limit: 1 }, getHints: (response) => void response.clone() },
    answer,
  )
  const fetched = throttle.fetch(page)
  await clock.advance(100)
  assert.equal((await fetched).status, 200)
  isAtRest(throttle)
})

test('an abort is heard at once, also while a hook runs or getScopes does', async () => {
  const slow = (clock: () => FakeClock) => () =>
    new Promise<undefined>((resolve) => void clock().setTimeout(() => resolve(undefined), 1500))
  for (const hook of [
    'getHints',
    'getResponseDelay',
    'getResponseBackoff',
    'getErrorBackoff',
    'getScopes',
  ] as const) {
    const later = slow(() => made.clock)
    const answer = () => {
      if (hook === 'getErrorBackoff')
        throw Object.assign(new TypeError('fetch failed'), { code: 'ECONNRESET' })
      return new Response('', { status: 503 })
    }
    const made = make({ retry: { limit: 1 }, [hook]: later }, answer)
    const controller = new AbortController()
    const reason = new Error('enough')
    const fetched = made.throttle.fetch(page, { signal: controller.signal })
    const heard = fetched.then(
      () => 'answered',
      (error) => (error === reason ? made.clock.now() : error),
    )
    await made.clock.advance(10)
    controller.abort(reason)
    await made.clock.advance(0)
    assert.equal(await heard, 10, hook)
    isAtRest(made.throttle)
    await made.clock.advance(5000)
    isAtRest(made.throttle)
  }
  const { clock, throttle } = make({
    getScopes: () => new Promise((resolve) => void clock.setTimeout(() => resolve('x'), 1500)),
  })
  const controller = new AbortController()
  const aborted = assert.rejects(throttle.acquire(page, { signal: controller.signal }), /enough/)
  controller.abort(new Error('enough'))
  await aborted
  assert.equal(clock.now(), 0)
})

test('an outcome that makes no sense is an error, and the slot comes back', async () => {
  const wrong: [unknown, RegExp][] = [
    [{ status: 200, headers: null }, /headers: want Headers/],
    [{ status: 200, headers: [[1, 2]] }, /headers: want Headers/],
    [{ status: 200, headers: 'retry-after: 5' }, /headers: want Headers/],
    [{ status: 7 }, /status: want/],
    [{ status: '200' }, /status: want/],
    [{ status: 429, scopes: ['elsewhere'] }, /no scope of the request/],
    [null, /outcome/],
    [
      {
        status: 200,
        headers: {
          get 'retry-after'() {
            throw new Error('hostile')
          },
        },
      },
      /hostile/,
    ],
  ]
  for (const [outcome, message] of wrong) {
    const { throttle } = make({})
    const permit = await throttle.acquire(page)
    assert.throws(() => permit.settle(outcome as PermitOutcome), message)
    assert.equal(permit.isSettled, true)
    isAtRest(throttle)
  }
})

test('a fetch that gives nonsense, a response without a body, hooks that give null', async () => {
  for (const nonsense of [undefined, null, 7, 'ok']) {
    const { throttle } = make({ retry: { limit: 2 } }, () => nonsense)
    await assert.rejects(throttle.fetch(page), /fetch gave .*want a Response/)
    isAtRest(throttle)
  }
  for (const release of ['headers', 'body'] as const) {
    const bare = { status: 200, headers: new Headers() }
    const { throttle } = make({ release }, () => bare)
    assert.equal(await throttle.fetch(page), bare)
    isAtRest(throttle)
  }
  const nothing = make({
    getHints: () => null as never,
    getResponseBackoff: () => null,
    getResponseDelay: () => null,
  })
  assert.equal((await nothing.throttle.fetch(page)).status, 200)
  isAtRest(nothing.throttle)
})

test('requestTimeout counts from the send, is a failure by timeout, and gives the slot back', async () => {
  const signals: AbortSignal[] = []
  const answer = ({ signal }: RequestInit) => {
    signals.push(signal!)
    return never()
  }
  const defaults = { ...free, concurrency: 1, backoff: { jitter: false } } as const
  const clock = new FakeClock()
  const fetch = (async (_: unknown, init: RequestInit) => answer(init)) as typeof globalThis.fetch
  const throttle = createThrottle({ clock, fetch, requestTimeout: 1000, defaults })
  const [first, second] = [throttle.fetch(page), throttle.fetch(page, { throttle: { requestTimeout: 500 } })]
  const both = [assert.rejects(first, TimeoutError), assert.rejects(second, TimeoutError)]
  await clock.advance(999)
  assert.deepEqual([throttle.stats().inFlight, throttle.stats().waiting], [1, 1])
  await clock.advance(1)
  await both[0]
  assert.ok(signals[0]!.aborted && signals[0]!.reason instanceof TimeoutError, 'fetch is aborted')
  assert.equal(throttle.scope('a.example').stats.backoffStep, 1, 'backoff hears of it')
  await clock.advance(10_000)
  await both[1]
  isAtRest(throttle)
  assert.equal(clock.timers, 0)
  const run = assert.rejects(throttle.run({ scopes: 'x' }, never, { requestTimeout: 50 }), {
    code: 'ERR_TIMEOUT',
  })
  await clock.advance(50)
  await run
  const fine = throttle.run({ scopes: 'y' }, () => 7, { requestTimeout: 50 })
  await clock.advance(0)
  assert.deepEqual([await fine, clock.timers], [7, 0])
  isAtRest(throttle)
  await assert.rejects(
    throttle.run({ scopes: 'x' }, never, { requestTimeout: Number.NaN }),
    /requestTimeout: want/,
  )
  await assert.rejects(
    throttle.fetch(page, { throttle: { requestTimeout: -1 } }),
    /throttle\.requestTimeout: want/,
  )
})

test('requestTimeout: the caller’s abort still reaches fetch, and what comes late is let go of', async () => {
  let isCancelled = false
  const cancel = () => {
    isCancelled = true
  }
  const late = new Response(new ReadableStream({ cancel }))
  let answerLate = (_: Response) => {}
  const { clock, throttle } = make(
    { requestTimeout: 100 },
    () =>
      new Promise((resolve) => {
        answerLate = resolve
      }),
  )
  const gone = assert.rejects(throttle.fetch(page), TimeoutError)
  await clock.advance(100)
  await gone
  answerLate(late)
  await clock.advance(0)
  assert.equal(isCancelled, true)
  const controller = new AbortController()
  const hearing = make(
    { requestTimeout: 100 },
    ({ signal }) =>
      new Promise((_, reject) => signal!.addEventListener('abort', () => reject(signal!.reason))),
  )
  const aborted = assert.rejects(hearing.throttle.fetch(page, { signal: controller.signal }), /enough/)
  await hearing.clock.advance(10)
  controller.abort(new Error('enough'))
  await aborted
  isAtRest(hearing.throttle)
})

test('a permit that is collected as garbage gives its slot back, with one warning', async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const { throttle } = make({})
  const warnings: string[] = []
  throttle.addEventListener('warning', ({ code, message }) => warnings.push(`${code}: ${message}`))
  await (async () => void (await throttle.acquire(page)))()
  assert.equal(throttle.stats().inFlight, 1)
  for (let turn = 0; turn < 50 && throttle.stats().inFlight > 0; turn++) {
    collect()
    await new Promise((resolve) => setImmediate(resolve))
  }
  isAtRest(throttle)
  assert.match(warnings.join(), /^permit-lost: a permit for a\.example was collected as garbage/)
})

test('one signal for many requests: one listener, and no warning of a leak', async () => {
  const warnings: Error[] = []
  const hear = (warning: Error) => warnings.push(warning)
  process.on('warning', hear)
  const { clock, throttle } = make({ defaults: { ...free, concurrency: 1 } }, () => never())
  const controller = new AbortController()
  const all = Array.from({ length: 20 }, () => throttle.acquire(page, { signal: controller.signal }))
  const results = Promise.allSettled(all)
  await clock.advance(0)
  assert.equal(getEventListeners(controller.signal, 'abort').length, 1)
  controller.abort(new Error('enough'))
  const states = (await results).map(({ status }) => status)
  assert.deepEqual(states, ['fulfilled', ...Array.from({ length: 19 }, () => 'rejected')])
  assert.equal(getEventListeners(controller.signal, 'abort').length, 0)
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', hear)
  assert.deepEqual(warnings, [])
})

/** A generator of numbers from a seed. */
function random(seed: number) {
  const dice = new Dice(seed)
  const chance = (of: number) => dice.next() < of
  const pick = <T>(list: readonly T[]): T => list[dice.below(list.length)]!
  return { chance, pick, below: (most: number) => dice.below(most) }
}

/** The parts of a run: an order is a seed for this, a run a seed for the times. */
function orderOf(seed: number): Omit<ThrottleOptions, 'clock' | 'fetch'> & { hooks: string[] } {
  const { chance, pick } = random(seed)
  const hooks = ['getHints', 'getResponseDelay', 'getResponseBackoff', 'getErrorBackoff', 'getScopes'].filter(
    () => chance(0.35),
  )
  return {
    hooks,
    defaults: { ...free, concurrency: pick([1, 2, 10]), delay: pick([0, 0, 20]) },
    backoff: pick([false, true, { maxDelay: 1000 }]),
    ...(chance(0.6) ? { retry: { limit: pick([1, 3]), longRetryAfter: pick(['fail', 'wait', 'cap']) } } : {}),
    ...(chance(0.5) ? { redirects: 'throttle' as const } : {}),
    ...(chance(0.4) ? { release: 'body' as const } : {}),
    ...(chance(0.4) ? { requestTimeout: pick([30, 300]) } : {}),
  }
}

/** Begins a run; gives what is to be checked when all time has passed. */
async function play(order: number, run: number, clock: FakeClock): Promise<() => Promise<void>> {
  const { hooks, ...options } = orderOf(order)
  const { chance, pick, below } = random(order * 1_000_003 + run)
  const later = (ms = below(60)) => new Promise<void>((resolve) => void clock.setTimeout(resolve, ms))
  const bodyOf = () =>
    pick([
      () => null,
      () => 'text',
      () => body(() => Promise.reject(new Error('reset'))),
      () => body(never),
      () => new ReadableStream({ pull: (controller) => controller.error(new Error('reset')) }),
      () =>
        new ReadableStream({
          async pull(controller) {
            await later()
            controller.enqueue(new Uint8Array(3))
            controller.close()
          },
        }),
    ])()
  const fetch = (async (_: unknown, { signal }: RequestInit = {}) => {
    if (chance(0.05)) return undefined
    const isDeaf = chance(0.2)
    await new Promise<void>((resolve, reject) => {
      clock.setTimeout(resolve, below(80))
      if (!isDeaf) signal?.addEventListener('abort', () => reject(signal.reason))
      if (!isDeaf && signal?.aborted) reject(signal.reason)
    })
    if (chance(0.1)) throw Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNRESET' } })
    const status = pick([200, 200, 200, 204, 302, 307, 413, 429, 503])
    const headers = {
      location: pick(['/next', 'https://b.example/', 'ftp://x/']),
      ...(chance(0.3) ? { 'retry-after': pick(['0', '1', '400']) } : {}),
    }
    return new Response(status === 204 ? null : bodyOf(), { status, headers })
  }) as typeof globalThis.fetch
  const hook = (name: string) => async (first: Response) => {
    if (chance(0.3)) await later()
    if (chance(0.1)) throw new Error('hook')
    if (name === 'getScopes') return pick<unknown>(['x', ['x', 'y'], 7])
    if (name !== 'getErrorBackoff' && chance(0.3)) first.clone()
    if (name !== 'getErrorBackoff' && chance(0.1)) await Promise.race([first.text(), later()])
    if (name === 'getHints') return pick<unknown>([null, undefined, { delayMs: 30 }])
    return pick<unknown>(name === 'getResponseDelay' ? [undefined, 20, -1] : [undefined, {}, 'elsewhere'])
  }
  const asked = Object.fromEntries(hooks.map((name) => [name, hook(name)])) as Partial<ThrottleOptions>
  const throttle = createThrottle({ ...options, ...asked, clock, fetch, seed: run })
  throttle.addEventListener('stall', (event) => event.fail())
  const controllers = Array.from({ length: 3 }, () => new AbortController())
  const one = async () => {
    await later(below(100))
    const signal = chance(0.5) ? pick(controllers).signal : null
    const within = chance(0.2) ? { maxWait: below(200) } : {}
    const isPost = chance(0.15)
    const init = { signal, throttle: within, ...(isPost ? { method: 'POST', body: 'body' } : {}) }
    const target = pick(['https://a.example/', 'https://b.example/'])
    const how = below(10)
    if (how === 0) {
      const permit: Permit = await throttle.acquire(target, { signal, ...within })
      await later()
      return permit.settle(pick<never>([{}, { status: 429 }, { headers: [[1]] }] as never[]))
    }
    if (how === 1) return throttle.run(target, () => fetch(target, { signal }), { signal, ...within })
    const response = await throttle.fetch(how === 2 ? new Request(target, init) : target, init)
    if (response.bodyUsed || response.body?.locked) return
    const reader = response.body?.getReader()
    for (let reads = below(4); reader && reads > 0; reads--) await Promise.race([reader.read(), later(100)])
    reader?.cancel().catch(() => {})
  }
  const all = Promise.allSettled(Array.from({ length: 6 }, one))
  for (const controller of controllers) {
    await later()
    if (chance(0.6)) controller.abort(new Error('enough'))
  }
  if (chance(0.2)) throttle.close()
  return async () => {
    const { waiting, inFlight } = throttle.stats()
    const seed = `order ${order}, run ${run}`
    assert.deepEqual({ waiting, inFlight }, { waiting: 0, inFlight: 0 }, seed)
    assert.equal((await Promise.race([all, 'hangs'])) === 'hangs', false, seed)
    await throttle.idle()
  }
}

test('whatever happens in whatever order: at rest nothing waits and nothing is in flight', async () => {
  const [orders, runs] = [Number(process.env.ORDERS ?? 50), Number(process.env.RUNS ?? 40)]
  const ignore = () => {}
  process.on('unhandledRejection', ignore)
  for (let order = 0; order < orders; order++) {
    for (let first = 0; first < runs; first += 100) {
      const clock = new FakeClock()
      const each = Array.from({ length: Math.min(100, runs - first) }, (_, run) =>
        play(order, first + run, clock),
      )
      await clock.advance(10_000_000)
      for (const check of await Promise.all(each)) await check()
      assert.equal(clock.timers, 0, `order ${order}`)
    }
  }
  process.off('unhandledRejection', ignore)
})
