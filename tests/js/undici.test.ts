/**
 * The interceptor with the real undici and a real server. One test each: retries that do not come by again;
 * redirects that change the scope; aborted requests that never settle; connection errors that do not count;
 * handlers that cannot abort a wait.
 */

import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, createServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { createThrottle, type Throttle, type ThrottleOptions } from 'autothrottle'
import { throttle as throttled } from 'autothrottle/undici'
import {
  Agent,
  type Dispatcher,
  getGlobalDispatcher,
  H2CClient,
  interceptors,
  request,
  setGlobalDispatcher,
  fetch as undiciFetch,
} from 'undici'
import { listen } from '../serve.mjs'

const free = { defaults: { delay: 0, slotDelay: 0, jitter: false } } as const
const closing: (() => unknown)[] = []
after(async () => {
  for (const close of closing.reverse()) await close()
})

async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const { url, port, server, stop } = await listen(answer)
  closing.push(stop)
  return { url, host: `127.0.0.1:${port}`, server }
}

function agentOf(throttle: Parameters<typeof throttled>[0], ...more: Parameters<Agent['compose']>) {
  const agent = new Agent()
  closing.push(() => agent.destroy())
  return agent.compose(throttled(throttle), ...(more as never[]))
}

test('request and fetch go through the throttle; statuses, headers and latency are heard', async () => {
  const { url, host } = await serve((_, response) =>
    setTimeout(() => response.writeHead(200, { 'x-a': '1' }).end('page'), 30),
  )
  const throttle = createThrottle({ defaults: { ...free.defaults, autothrottle: { startDelay: 0 } } })
  const settles: (number | undefined)[] = []
  throttle.addEventListener('settle', ({ status, latencyMs }) => settles.push(status, latencyMs))
  const dispatcher = agentOf(throttle)
  const { statusCode, headers, body } = await request(url, { dispatcher })
  assert.deepEqual([statusCode, headers['x-a'], await body.text()], [200, '1', 'page'])
  const response = await undiciFetch(url, { dispatcher })
  assert.equal(await response.text(), 'page')
  assert.equal(settles.length, 4)
  assert.deepEqual([settles[0], settles[2]], [200, 200])
  assert.ok(settles[1]! >= 25 && settles[3]! >= 25)
  assert.ok(throttle.scope(host).stats.delayMs > 0, 'AutoThrottle follows')
})

test('102 and 103 come before the answer: it alone is heard, and trailers are not', async () => {
  const { url } = await serve((_, response) => {
    response.writeProcessing()
    response.writeEarlyHints({ link: '</style.css>; rel=preload' })
    response.writeHead(429, { trailer: 'x-late', 'transfer-encoding': 'chunked' })
    response.addTrailers({ 'x-late': '1' })
    response.end('slower')
  })
  for (const release of ['headers', 'body'] as const) {
    const throttle = createThrottle({ ...free, release, backoff: false })
    const heard: (number | undefined)[] = []
    throttle.addEventListener('settle', ({ status }) => heard.push(status))
    const { statusCode, body, trailers } = await request(url, { dispatcher: agentOf(throttle) })
    assert.deepEqual([statusCode, await body.text()], [429, 'slower'])
    assert.deepEqual(trailers, { 'x-late': '1' })
    assert.deepEqual(heard, [429])
    assert.equal(throttle.stats().inFlight, 0)
  }
})

test('two slots: never a third request on the server', async () => {
  let [now, most] = [0, 0]
  const { url } = await serve((_, response) => {
    most = Math.max(most, ++now)
    setTimeout(() => response.end(String(now--)), 10)
  })
  const dispatcher = agentOf({ defaults: { ...free.defaults, concurrency: 2 } })
  await Promise.all(Array.from({ length: 12 }, async () => (await request(url, { dispatcher })).body.text()))
  assert.equal(most, 2)
})

test('a redirect is a request of the scope that it goes to', async () => {
  const there = await serve((_, response) => response.end('there'))
  const here = await serve((_, response) => response.writeHead(302, { location: `${there.url}/x` }).end())
  const throttle = createThrottle(free)
  const sends: (readonly string[])[] = []
  throttle.addEventListener('send', ({ scopes }) => sends.push(scopes))
  const dispatcher = agentOf(throttle, interceptors.redirect({ maxRedirections: 3 }) as never)
  const { body } = await request(here.url, { dispatcher })
  assert.equal(await body.text(), 'there')
  assert.deepEqual(sends, [[here.host], [there.host]])
})

test("`release: 'body'` holds the slot until the body has arrived; options of a single request", async () => {
  let sending = 0
  const { url } = await serve((_, response) => {
    assert.equal(++sending, 1, 'one body at a time')
    response.write('first ')
    setTimeout(() => {
      sending--
      response.end('last')
    }, 20)
  })
  const seen: string[] = []
  const getScopes = ({ url, method, headers }: { url: string; method: string; headers: Headers }) => {
    seen.push(`${method} ${new URL(url).pathname} ${headers.get('x-tier')}`)
    return 'one'
  }
  const dispatcher = agentOf({ ...free, release: 'body', getScopes, warnThreshold: 1 })
  const first = await request(url, { dispatcher, headers: { 'x-tier': 'a' } })
  const second = request(`${url}/2`, { dispatcher, method: 'POST', headers: { 'x-tier': 'b' } })
  assert.equal(await first.body.text(), 'first last')
  await (await second).body.dump()
  assert.deepEqual(seen, ['GET / a', 'POST /2 b'])
  const options = { dispatcher, throttle: { scopes: 'two', maxWait: 5 } }
  await (await request(url, options as never)).body.dump()
  const wrong = { dispatcher, throttle: { scope: 'two' } }
  await assert.rejects(request(url, wrong as never), /scope/)
})

test("a shared throttle's `release: 'body'` counts as much as an option", async () => {
  let finish = () => {}
  const { url } = await serve((_, response) => {
    response.write('first ')
    finish = () => response.end('last')
  })
  const throttle = createThrottle({ ...free, release: 'body' })
  const { body } = await request(url, { dispatcher: agentOf(throttle) })
  assert.equal(throttle.stats().inFlight, 1)
  finish()
  assert.equal(await body.text(), 'first last')
  assert.equal(throttle.stats().inFlight, 0)
})

test("Node's own fetch through the global dispatcher", async () => {
  const { url, host } = await serve((_, response) => response.end('page'))
  const before = getGlobalDispatcher()
  const throttle = createThrottle(free)
  setGlobalDispatcher(agentOf(throttle))
  try {
    assert.equal(await (await fetch(url)).text(), 'page')
    const controller = new AbortController()
    throttle.scope(host).pause()
    const waiting = fetch(url, { signal: controller.signal })
    while (throttle.stats().waiting === 0) await new Promise((resolve) => setImmediate(resolve))
    controller.abort()
    await assert.rejects(waiting, { name: 'AbortError' })
    assert.deepEqual([throttle.stats().waiting, throttle.stats().sent], [0, 1])
  } finally {
    setGlobalDispatcher(before)
  }
})

test('an abort in flight is no fault of the server, whatever its reason looks like', async () => {
  const leaving = new AbortController()
  const reset = Object.assign(new Error('bored'), { code: 'ECONNRESET' })
  const { url, host } = await serve(() => leaving.abort(reset))
  const throttle = createThrottle({ ...free, defaults: { ...free.defaults, backoff: { jitter: 0 } } })
  const settled: unknown[] = []
  throttle.addEventListener('settle', ({ status, error }) => settled.push(status, error))
  await assert.rejects(request(url, { dispatcher: agentOf(throttle), signal: leaving.signal }), reset)
  assert.deepEqual(settled, [undefined, undefined])
  const { backoffStep, inFlight } = throttle.scope(host).stats
  assert.deepEqual([backoffStep, inFlight], [0, 0])
})

test('a request that waits ends with the first reason of its handler', async () => {
  const { url, host } = await serve((_, response) => response.end())
  const throttle = createThrottle({ ...free, maxInFlight: 1 })
  const permit = await throttle.acquire({ scopes: host })
  const [bored, again] = [new Error('bored'), new Error('again')]
  const seen = await new Promise<unknown[]>((done) => {
    agentOf(throttle).dispatch(
      { origin: url, path: '/', method: 'GET' },
      {
        onRequestStart: (controller) => {
          setImmediate(() => [bored, again].forEach((reason) => void controller.abort(reason)))
        },
        onResponseError: ({ aborted, reason }, error) => done([aborted, reason, error]),
      },
    )
  })
  assert.deepEqual(seen, [true, bored, bored])
  permit.settle()
})

test('handlers and dispatchers that throw, headers that make no sense: no slot is lost', async () => {
  const { url } = await serve((_, response) => response.writeHead(200, { 'x-a': '1' }).end('page'))
  const { port } = new URL(url)
  const options = { origin: `http://127.0.0.1:${port}`, path: '/', method: 'GET' as const }
  const ends: [name: string, handler: (done: () => void) => object][] = [
    ['onResponseStart', (done) => ({ onResponseStart: thrower, onResponseError: done, onResponseEnd: done })],
    ['onResponseData', (done) => ({ onResponseData: thrower, onResponseError: done, onResponseEnd: done })],
    ['abort at once', (done) => ({ onRequestStart: aborter, onResponseError: done, onResponseEnd: done })],
  ]
  for (const [name, handler] of ends) {
    for (const release of ['headers', 'body'] as const) {
      const throttle = createThrottle({ ...free, release })
      const dispatcher = agentOf(throttle)
      await new Promise<void>((resolve) => {
        dispatcher.dispatch(options, { onRequestStart() {}, ...handler(resolve) } as never)
      })
      assert.deepEqual([throttle.stats().inFlight, throttle.stats().waiting], [0, 0], `${name}, ${release}`)
    }
  }
  const throttle = createThrottle(free)
  const broken = throttled(throttle)(() => {
    throw new Error('broken')
  })
  const error = await new Promise((resolve) =>
    broken(options, {
      onRequestStart() {},
      onResponseError: (_: unknown, error: Error) => resolve(error.message),
    }),
  )
  assert.deepEqual([error, throttle.stats().inFlight], ['broken', 0])
  const odd = throttled(throttle)((_, handler) => {
    handler.onRequestStart({ aborted: false, abort() {} }, {})
    try {
      handler.onResponseStart({}, 429, { 'retry-after': Symbol('odd') }, '')
    } catch {}
    handler.onResponseError({}, new Error('odd'))
    return true
  })
  const said = await new Promise((resolve) =>
    odd(options, {
      onRequestStart() {},
      onResponseError: (_: unknown, error: Error) => resolve(error.message),
    }),
  )
  assert.deepEqual([said, throttle.stats().inFlight], ['odd', 0])
})

function thrower(): never {
  throw new Error('the handler is broken')
}

function aborter(controller: { abort(reason: Error): void }): void {
  controller.abort(new Error('never mind'))
}

// HTTP/2 through undici, without TLS: many requests on one connection, as `throttle.fetch` and as undici's
// interceptor send them. After each fault no request waits and none is in flight.
//
// One reset of the connection ends every request on it.

type Answer = (stream: ServerHttp2Stream, path: string) => unknown

const options: ThrottleOptions = {
  maxInFlight: 3,
  defaults: { delay: 0, slotDelay: 0, jitter: false, concurrency: 3 },
  backoff: false,
}

/** A server of HTTP/2, both ways to it, and how many requests it had at a time. */
async function http2(answer: Answer) {
  const seen = { most: 0, now: 0, sessions: 0 }
  const server = createServer()
  const destroys = new Set<() => void>()
  server.on('session', (session) => {
    seen.sessions++
    destroys.add(() => session.destroy())
  })
  server.on('stream', (stream, headers) => {
    seen.most = Math.max(seen.most, ++seen.now)
    stream.on('error', () => {})
    stream.on('close', () => seen.now--)
    answer(stream, String(headers[':path']))
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const dispatcher = new H2CClient(url)
  closing.push(() => {
    void dispatcher.destroy()
    for (const destroy of destroys) destroy()
    server.close()
  })
  const fetch = ((input: string, init: object) =>
    undiciFetch(input, { ...init, dispatcher })) as unknown as typeof globalThis.fetch
  const ways: [string, Throttle, (path: string) => Promise<string>][] = []
  for (const release of ['headers', 'body'] as const) {
    const own = createThrottle({ ...options, release, fetch })
    const theirs = createThrottle({ ...options, release })
    const composed: Dispatcher = dispatcher.compose(throttled(theirs))
    ways.push(
      [`fetch, ${release}`, own, async (path) => (await own.fetch(url + path)).text()],
      [
        `interceptor, ${release}`,
        theirs,
        async (path) => {
          const { body } = await request(url + path, { dispatcher: composed })
          return await body.text()
        },
      ],
    )
  }
  return { ways, seen }
}

function isAtRest(throttle: Throttle) {
  const { waiting, inFlight } = throttle.stats()
  assert.deepEqual({ waiting, inFlight }, { waiting: 0, inFlight: 0 })
}

test('many requests on one connection, three at a time, answered out of order', async () => {
  const open: [ServerHttp2Stream, string][] = []
  const { ways, seen } = await http2((stream, path) => {
    stream.respond({ ':status': 200 })
    open.push([stream, path])
    if (open.length === 3) for (const [each, its] of open.splice(0).reverse()) each.end(its)
  })
  for (const [name, throttle, get] of ways) {
    const paths = Array.from({ length: 30 }, (_, index) => `/${index}`)
    assert.deepEqual(await Promise.all(paths.map(get)), paths, name)
    isAtRest(throttle)
  }
  assert.equal(seen.sessions, 1)
  assert.equal(seen.most, 3)
})

test('103 and trailers are not the answer', async () => {
  const { ways } = await http2((stream) => {
    stream.additionalHeaders({ ':status': 103, link: '</style.css>; rel=preload' })
    stream.respond({ ':status': 200 }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'retry-after': '3600' }))
    stream.end('whole')
  })
  for (const [name, throttle, get] of ways) {
    assert.equal(await get('/'), 'whole', name)
    assert.equal(await get('/'), 'whole', `${name}: not held back by a trailer`)
    isAtRest(throttle)
  }
})

const BROKEN: Record<string, Answer> = {
  'a stream is reset before the headers': (stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
  'a stream is refused': (stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM),
  'the connection is closed under all of them': (stream) => stream.session?.destroy(),
}

for (const [name, answer] of Object.entries(BROKEN))
  test(`${name}: each request fails, and its slot comes back`, async () => {
    let isBroken = true
    const { ways } = await http2((stream, path) => {
      if (isBroken) return answer(stream, path)
      stream.respond({ ':status': 200 })
      return stream.end('well')
    })
    for (const [way, throttle, get] of ways) {
      isBroken = true
      const all = await Promise.allSettled([get('/1'), get('/2'), get('/3')])
      assert.ok(
        all.every(({ status }) => status === 'rejected'),
        way,
      )
      isAtRest(throttle)
      isBroken = false
      assert.equal(await get('/'), 'well', way)
      isAtRest(throttle)
    }
  })

test('a stream is reset in its body: its slot comes back, whether or not undici takes it for whole', async () => {
  const { ways } = await http2((stream) => {
    stream.respond({ ':status': 200, 'content-length': '100' })
    stream.write('half', () => stream.close(constants.NGHTTP2_INTERNAL_ERROR))
  })
  for (const [way, throttle, get] of ways) {
    const all = await Promise.allSettled(Array.from({ length: 9 }, () => get('/')))
    // undici 7 does not compare a stream's length.
    for (const each of all) assert.ok(each.status === 'rejected' || each.value === 'half', way)
    isAtRest(throttle)
  }
})
