/**
 * HTTP/2 through undici, without TLS: many requests on one connection, as `throttle.fetch` and as undici's
 * interceptor send them. After each fault no request waits and none is in flight.
 *
 * One reset of the connection ends every request on it.
 */
import assert from 'node:assert/strict'
import { constants, createServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { createThrottle, type Throttle, type ThrottleOptions } from 'autothrottle'
import { throttle as throttled } from 'autothrottle/undici'
import { type Dispatcher, H2CClient, request, fetch as undiciFetch } from 'undici'

type Answer = (stream: ServerHttp2Stream, path: string) => unknown

const options: ThrottleOptions = {
  concurrency: 3,
  defaults: { delay: 0, slotDelay: 0, jitter: false, concurrency: 3 },
  backoff: false,
}
const closing: (() => void)[] = []
after(() => {
  for (const close of closing) close()
})

/** A server of HTTP/2, both ways to it, and how many requests it had at a time. */
async function serve(answer: Answer) {
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
  const { ways, seen } = await serve((stream, path) => {
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
  const { ways } = await serve((stream) => {
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
    const { ways } = await serve((stream, path) => {
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
  const { ways } = await serve((stream) => {
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
