/**
 * The parts that `throttle.fetch` is made of, each by itself: bodies that are watched or let go of, redirects
 * by fetch's rules, what may be sent again, signals that are joined. Through `throttle.fetch` they are met in
 * other tests; here are the cases that a server of our own does not make.
 */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { PassThrough } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createThrottle, RetryAfterTooLongError, TimeoutError } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'
import { joined } from '../../js/base/joined.js'
import { discard, watched, withMetadata } from '../../js/fetch/body.js'
import { follows, placeOf, Redirects } from '../../js/fetch/redirects.js'
import { copied, isStream } from '../../js/fetch/send.js'
import { asUtf8 } from '../../js/scopes/names.js'

const page = 'https://a.example/page'

/** A body of parts, and what became of it. */
function body(parts: (Uint8Array | Error)[]) {
  const state = { cancelled: undefined as unknown, pulled: 0 }
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const part = parts[state.pulled++]
        if (part === undefined) controller.close()
        else if (part instanceof Error) controller.error(part)
        else controller.enqueue(part)
      },
      cancel(reason) {
        state.cancelled = reason ?? 'without a reason'
      },
    },
    { highWaterMark: 0 },
  )
  return { stream, state }
}
const bytes = (text: string) => new TextEncoder().encode(text)

function watch(response: Response) {
  const ends: unknown[] = []
  return { same: watched(response, (error) => ends.push(error)), ends }
}

test('a watched response says the same, and its end is heard once, when it was read', async () => {
  const { stream } = body([bytes('one, '), bytes(''), bytes('two')])
  const { same, ends } = watch(
    withMetadata(new Response(stream, { status: 203, statusText: 'So', headers: { 'x-a': 'b' } }), {
      url: page,
      redirected: true,
      type: 'cors',
    }),
  )
  const { status, statusText, url, redirected, type } = same
  assert.deepEqual([status, statusText, url, redirected, type], [203, 'So', page, true, 'cors'])
  assert.deepEqual([same.headers.get('x-a'), ends], ['b', []])
  const copy = same.clone()
  assert.deepEqual([copy.url, copy.redirected, copy.type, copy.clone().url], [page, true, 'cors', page])
  assert.deepEqual([await same.text(), await copy.text()], ['one, two', 'one, two'])
  assert.deepEqual(ends, [undefined])
})

test('a runtime without a FinalizationRegistry watches bodies all the same', async () => {
  const kept = globalThis.FinalizationRegistry
  Reflect.deleteProperty(globalThis, 'FinalizationRegistry')
  try {
    const { same, ends } = watch(new Response('text'))
    assert.equal(await same.text(), 'text')
    assert.deepEqual(ends, [undefined])
    const stream = new PassThrough()
    const node = watch({ body: stream, status: 200 } as unknown as Response)
    stream.end().resume()
    await new Promise((resolve) => stream.once('close', resolve))
    assert.deepEqual(node.ends, [undefined])
  } finally {
    globalThis.FinalizationRegistry = kept
  }
})

test('a watched body that fails or is cancelled says so, and the real one hears of it', async () => {
  const reset = new Error('reset')
  const failing = watch(new Response(body([bytes('x'), reset]).stream))
  await assert.rejects(failing.same.text(), reset)
  assert.deepEqual(failing.ends, [reset])
  const { stream, state } = body([bytes('x')])
  const left = watch(new Response(stream))
  await left.same.body!.cancel('enough')
  assert.deepEqual([left.ends, state.cancelled], [[undefined], 'enough'])
})

test('an answer without a body, or whose body is read, is over at once and stays as it is', () => {
  const read = new Response('text')
  const reader = read.body!.getReader()
  const strange = { status: 200, body: { locked: false } } as unknown as Response
  for (const response of [new Response(null, { status: 204 }), read, Response.error(), strange]) {
    const { same, ends } = watch(response)
    assert.deepEqual([same === response, ends], [true, [undefined]])
  }
  reader.releaseLock()
})

test('a stream of Node’s is watched where it is: read, failed, or destroyed', async () => {
  const of = (stream: PassThrough) => watch({ body: stream, status: 200 } as unknown as Response)
  const closed = (stream: PassThrough) => new Promise((resolve) => stream.once('close', resolve))
  const read = new PassThrough()
  const whole = of(read)
  assert.equal(whole.same.body, read as never)
  read.end('text').resume()
  assert.deepEqual(whole.ends, [])
  await closed(read)
  assert.deepEqual(whole.ends, [undefined])
  const open = new PassThrough({ autoDestroy: false })
  const ended = of(open)
  open.end('text').resume()
  await new Promise((resolve) => open.once('end', resolve))
  assert.deepEqual(ended.ends, [undefined], 'read, though it is not closed')
  const broken = new PassThrough()
  const reset = new Error('reset')
  const failed = of(broken)
  broken.destroy(reset)
  await closed(broken)
  assert.deepEqual(failed.ends, [reset])
  const dropped = new PassThrough()
  const letGo = of(dropped)
  dropped.destroy()
  await closed(dropped)
  assert.deepEqual(letGo.ends, [undefined])
  assert.deepEqual(of(dropped).ends, [undefined], 'it was destroyed before')
})

test('letting go: a body is cancelled once, and one that was read, is read or is strange is left alone', async () => {
  const { stream, state } = body([bytes('x')])
  discard(new Response(stream))
  assert.equal(state.cancelled, 'without a reason')
  const locked = body([bytes('x')])
  locked.stream.getReader()
  discard({ body: locked.stream, bodyUsed: false } as unknown as Response)
  const used = body([bytes('x')])
  discard({ body: used.stream, bodyUsed: true } as unknown as Response)
  assert.deepEqual([locked.state.cancelled, used.state.cancelled], [undefined, undefined])
  for (const strange of [
    undefined,
    {},
    { body: null },
    { body: {} },
    { body: { cancel: () => Promise.reject(new Error('no')) } },
    {
      body: {
        cancel() {
          throw new Error('no')
        },
      },
    },
  ])
    discard(strange as unknown as Response)
  const node = new PassThrough()
  discard({ body: node } as unknown as Response)
  assert.ok(node.destroyed)
  node.emit('error', new Error('too late to be news'))
  await setImmediate()
})

const moved = (status: number, location?: string, type?: ResponseType) => {
  const response = new Response(null, { status, ...(location ? { headers: { location } } : {}) })
  return type ? withMetadata(response, { type }) : response
}

test('redirects are followed unless the call says otherwise, and lead to their Location', () => {
  assert.ok(follows(page, {}))
  assert.ok(follows(new URL(page), { redirect: 'follow' }))
  assert.ok(follows(new Request(page), {}))
  assert.ok(!follows(page, { redirect: 'manual' }))
  assert.ok(!follows(new Request(page, { redirect: 'error' }), {}))
  assert.ok(follows(new Request(page, { redirect: 'error' }), { redirect: 'follow' }))
  for (const status of [301, 302, 303, 307, 308]) {
    assert.equal(placeOf(moved(status, '/there')), '/there')
    assert.equal(placeOf(moved(status)), null)
  }
  for (const status of [200, 201, 300, 304]) assert.equal(placeOf(moved(status, '/there')), null)
  assert.throws(() => placeOf(moved(301, '/x', 'opaqueredirect')), /this runtime hides redirects/)
})

/** The rest of it is compared with fetch itself, in redirects.test.ts. */
test('a hop keeps HEAD, and drops the length of a body and the host', () => {
  const hopAfter = (init: RequestInit) => {
    const redirects = new Redirects(page, init, 0, 1000)
    redirects.follow(moved(303, 'https://b.example/'), Number.NaN)
    return redirects.hop.init
  }
  assert.equal(hopAfter({ method: 'HEAD' }).method, 'HEAD')
  const headers = { 'content-length': '4', host: 'c' }
  const hop = hopAfter({ method: 'POST', body: 'text', headers })
  assert.deepEqual([hop.method, [...new Headers(hop.headers)]], ['GET', []])
})

test('a hop of a Request: its body again, its signal, and what was not the default', async () => {
  const controller = new AbortController()
  const request = new Request(page, {
    method: 'POST',
    body: 'text',
    signal: controller.signal,
    credentials: 'omit',
    headers: { 'x-a': 'b' },
  })
  const redirects = new Redirects(request, {}, 0, 1000)
  const first = redirects.hop
  assert.equal(first.input, request)
  assert.equal(await (first.input as Request).text(), 'text')
  assert.ok(redirects.follow(moved(307, '/next'), Number.NaN))
  const { input, init } = redirects.hop
  assert.deepEqual([input, init.method, init.credentials], ['https://a.example/next', 'POST', 'omit'])
  assert.deepEqual([(init.headers as Headers).get('x-a'), 'cache' in init], ['b', false])
  assert.equal((init as { duplex?: string }).duplex, 'half')
  assert.equal(await new Response(init.body).text(), 'text')
  controller.abort()
  assert.ok(init.signal!.aborted)
})

test('where a redirect cannot go: too often, nowhere, elsewhere, or a body that is gone', () => {
  const from = () => new Redirects(page, {}, 0, 1000)
  assert.throws(() => from().follow(moved(301, 'http://['), Number.NaN), /a redirect to "http:\/\/\["/)
  assert.throws(() => from().follow(moved(301, 'ftp://a.example/'), Number.NaN), /a redirect to ftp:/)
  assert.throws(() => from().follow(moved(301, 'xhttps://a.example/'), Number.NaN), /a redirect to xhttps:/)
  assert.ok(!from().follow(moved(200), Number.NaN))
  assert.ok(!from().follow(moved(301, '/'), 1001), 'it waits for longer than allowed')
  const waits = from()
  assert.ok(waits.follow(moved(301, '/'), 1000))
  assert.equal(waits.hop.delay, 1000)
  const ring = from()
  for (let count = 0; count < 20; count++) assert.ok(ring.follow(moved(302, '/'), Number.NaN))
  assert.throws(() => ring.follow(moved(302, '/'), Number.NaN), /more than 20 redirects/)
  const stream = () => new Redirects(page, { method: 'POST', body: body([]).stream }, 0, 1000)
  assert.throws(
    () => stream().follow(moved(307, '/'), Number.NaN),
    /a stream cannot be sent again after a 307/,
  )
  assert.ok(stream().follow(moved(303, '/'), Number.NaN), 'a 303 drops the body')
})

test('fragments go along, and only who was redirected says so', () => {
  const hash = (at: string, to: string) => {
    const redirects = new Redirects(at, {}, 0, 1000)
    redirects.follow(moved(301, to), Number.NaN)
    return redirects.hop.input
  }
  assert.equal(hash(`${page}#part`, '/next'), 'https://a.example/next#part')
  assert.equal(hash(`${page}#part`, '/next#own'), 'https://a.example/next#own')
  const redirects = new Redirects(page, {}, 0, 1000)
  assert.equal(redirects.mark(new Response('x')).redirected, false)
  redirects.follow(moved(301, '/'), Number.NaN)
  assert.equal(redirects.mark(new Response('x')).redirected, true)
})

test('a request is sent as often as its method may be, with a body that is still there', async () => {
  const sent = async (input: string | Request, init: RequestInit, options: object = {}) => {
    const bodies: string[] = []
    const throttle = createThrottle({
      clock: new FakeClock(),
      defaults: free,
      retry: { limit: 2, ...options },
      fetch: async (input, init) => {
        bodies.push(input instanceof Request ? await input.text() : String(init?.body ?? ''))
        return new Response(null, { status: 503 })
      },
    })
    await throttle.fetch(input, init)
    return bodies
  }
  const count = async (...call: Parameters<typeof sent>) => (await sent(...call)).length
  assert.equal(await count(page, {}), 3)
  assert.equal(await count(page, { method: 'put' }), 3)
  assert.equal(await count(page, { method: 'POST' }), 1)
  assert.equal(await count(page, { method: 'post' }, { methods: ['Post'] }), 3)
  assert.equal(await count(page, {}, { methods: ['POST'] }), 1)
  assert.equal(await count(new Request(page, { method: 'POST' }), {}), 1)
  assert.equal(await count(new Request(page, { method: 'POST' }), { method: 'GET' }), 3)
  const request = new Request(page, { method: 'PUT', body: 'text' })
  assert.deepEqual(await sent(request, {}), ['text', 'text', 'text'])
  assert.ok(request.bodyUsed, 'the last one needs no copy')
  const bare = new Request(page)
  assert.deepEqual([copied(bare), copied(page)], [bare, page])
})

test('a body that is a stream can be read once, in either form', () => {
  const generated = (async function* () {})()
  for (const stream of [body([]).stream, generated, new PassThrough()]) assert.ok(isStream(stream))
  for (const other of [undefined, null, 'text', bytes('x'), new URLSearchParams(), new Blob([])])
    assert.ok(!isStream(other))
})

for (const isOld of [false, true])
  test(`signals are joined${isOld ? ', also where AbortSignal.any is missing' : ''}`, () => {
    const { any } = AbortSignal
    if (isOld) (AbortSignal as { any?: unknown }).any = undefined
    try {
      const alone = new AbortController()
      assert.equal(joined(null, alone), alone.signal)
      const [caller, ours] = [new AbortController(), new AbortController()]
      const signal = joined(caller.signal, ours)
      assert.ok(!signal.aborted)
      caller.abort('the caller')
      assert.deepEqual([signal.aborted, signal.reason], [true, 'the caller'])
      const [other, late] = [new AbortController(), new AbortController()]
      const timed = joined(other.signal, late)
      late.abort('too late')
      assert.deepEqual([timed.aborted, timed.reason, other.signal.aborted], [true, 'too late', false])
      const before = joined(AbortSignal.abort('before'), new AbortController())
      assert.deepEqual([before.aborted, before.reason], [true, 'before'])
      assert.ok(getEventListeners(caller.signal, 'abort').length <= 1)
    } finally {
      AbortSignal.any = any
    }
  })

const free = { delay: 0, slotDelay: 0, jitter: false, backoff: false } as const

test('an answer that is not given out is let go of, unless the error carries it', async () => {
  const answer = (status: number, headers = {}) => {
    const made = body([bytes('text')])
    return { ...made, response: new Response(made.stream, { status, headers }) }
  }
  const refused = answer(429, { 'retry-after': '3600' })
  const patient = createThrottle({
    clock: new FakeClock(),
    defaults: free,
    retry: { limit: 1, maxRetryAfter: 1000 },
    fetch: async () => refused.response,
  })
  const error = await patient.fetch(page).catch((error) => error)
  assert.ok(error instanceof RetryAfterTooLongError)
  assert.equal(refused.state.cancelled, undefined)
  assert.equal(await error.response.text(), 'text')

  const good = answer(200)
  const broken = new Error('broken')
  const asked = createThrottle({
    clock: new FakeClock(),
    defaults: free,
    fetch: async () => good.response,
    getResponseBackoff() {
      throw broken
    },
  })
  await assert.rejects(asked.fetch(page), (error) => (error as Error).cause === broken)
  assert.deepEqual([good.state.cancelled, asked.stats().inFlight], ['without a reason', 0])

  const other = answer(200)
  const carrying = createThrottle({
    clock: new FakeClock(),
    defaults: free,
    fetch: () => Promise.reject(Object.assign(new Error('x'), { response: other.response })),
  })
  await assert.rejects(carrying.fetch(page), /x/)
  assert.equal(other.state.cancelled, undefined)
})

test('an answer that comes after requestTimeout is let go of', async () => {
  const clock = new FakeClock()
  const { stream, state } = body([bytes('late')])
  let arrive = (_: Response) => {}
  const throttle = createThrottle({
    clock,
    defaults: free,
    requestTimeout: 100,
    fetch: () => new Promise<Response>((resolve) => (arrive = resolve)),
  })
  const late = assert.rejects(throttle.fetch(page), TimeoutError)
  await clock.advance(100)
  await late
  arrive(new Response(stream))
  await clock.advance(0)
  assert.equal(state.cancelled, 'without a reason')
})

test('an answer without a status of HTTP is given out as it is', async () => {
  const odd = { headers: {} } as unknown as Response
  const throttle = createThrottle({ clock: new FakeClock(), defaults: free, fetch: async () => odd })
  assert.equal(await throttle.fetch(page), odd)
  assert.deepEqual([throttle.stats().inFlight, throttle.stats().settled], [0, 1])
})

test('a robots.txt without a body has no rules, and one without an end is read as far as it counts', async () => {
  const endless = { cancelled: false }
  const throttle = createThrottle({
    clock: new FakeClock(),
    defaults: free,
    robots: { userAgent: 'bot', rules: (_, text) => () => text.length !== 512_000 },
    fetch: async (input) => {
      const url = new URL(String(input))
      if (url.pathname !== '/robots.txt') return new Response('page')
      if (url.host === 'bare.example') return new Response(null, { status: 204 })
      return new Response(
        new ReadableStream({
          pull: (controller) => controller.enqueue(new Uint8Array(100_000).fill(35)),
          cancel() {
            endless.cancelled = true
          },
        }),
      )
    },
  })
  assert.equal(await (await throttle.fetch('https://bare.example/')).text(), 'page')
  await assert.rejects(throttle.fetch('https://endless.example/'), { name: 'DisallowedError' })
  assert.ok(endless.cancelled)
})

/** `URL.canParse`, once hot, said no to 4,229 of these on Node 20.20 and 3,606 on 22.23. */
test('8,000 redirects to a host in letters of its own are followed', () => {
  const location = Buffer.from('https://bücher.example/x').toString('latin1')
  const response = new Response(null, { status: 302, headers: { location } })
  for (let count = 0; count < 8000; count++) {
    const redirects = new Redirects(page, {}, 0, 0)
    assert.ok(redirects.follow(response, NaN))
    assert.equal(redirects.hop.input, 'https://xn--bcher-kva.example/x')
  }
})

test('a Location that is no UTF-8 is read as it came', () => {
  const places = ['/caf\u00e9', '/\u00c3\u00a9', '/%C3%A9', '/\u0101\u00c3\u00a9'].map(asUtf8)
  assert.deepEqual(places, ['/caf\u00e9', '/é', '/%C3%A9', '/\u0101\u00c3\u00a9'])
})

describe('signals joined where AbortSignal.any is missing', () => {
  const { any } = AbortSignal
  before(() => Reflect.deleteProperty(AbortSignal, 'any'))
  after(() => Object.assign(AbortSignal, { any }))

  test('a signal that lives on keeps no request', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc')
    const { signal } = new AbortController()
    let listeners = 0
    const { addEventListener, removeEventListener } = signal
    signal.addEventListener = (...args: Parameters<AbortSignal['addEventListener']>) => {
      listeners++
      addEventListener.apply(signal, args)
    }
    signal.removeEventListener = (...args: Parameters<AbortSignal['removeEventListener']>) => {
      listeners--
      removeEventListener.apply(signal, args)
    }
    for (let index = 0; index < 100; index++) joined(signal, new AbortController())
    assert.equal(listeners, 100)
    for (let turn = 0; turn < 20 && listeners > 0; turn++) {
      collect()
      await setImmediate()
    }
    assert.equal(listeners, 0)
  })
})
