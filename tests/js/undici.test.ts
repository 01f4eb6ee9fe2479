/**
 * The interceptor with the real undici and a real server. One test each: retries that do not come by again;
 * redirects that change the scope; aborted requests that never settle; connection errors that do not count;
 * handlers that cannot abort a wait.
 */
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { after, test } from 'node:test'
import { createThrottle } from 'autothrottle'
import { throttle as throttled } from 'autothrottle/undici'
import {
  Agent,
  getGlobalDispatcher,
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
  const options = { dispatcher, throttle: { scopes: 'two', timeout: 5 } }
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

test('who aborts in flight says nothing of the server, whatever the reason looks like', async () => {
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
  const throttle = createThrottle({ ...free, concurrency: 1 })
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
