/**
 * Servers that break the exchange, over real sockets: each fault many times, whatever releases the slots.
 * After each, no request waits or is in flight, no timer is armed, and the heap is as large as before.
 *
 * A leak of requests shows when many of them have ended.
 */
import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { after, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createGzip } from 'node:zlib'
import { type Clock, createThrottle, DisallowedError, type ThrottleOptions, TimeoutError } from 'autothrottle'
import type { rules } from 'autothrottle/robots'
import { listen } from '../serve.mjs'

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
const closing: (() => void)[] = []
after(() => {
  for (const close of closing) close()
})

async function serve(answer: Answer) {
  const { url, stop } = await listen(answer)
  closing.push(stop)
  return { url, close: stop }
}

/** The system's clock, and which of its timers are armed. */
function watchedClock() {
  const armed = new Set<unknown>()
  const clock: Clock = {
    now: () => performance.now(),
    wallNow: () => Date.now(),
    setTimeout(wake, ms) {
      const handle = setTimeout(() => {
        armed.delete(handle)
        wake()
      }, ms)
      armed.add(handle)
      return handle
    },
    clearTimeout(handle) {
      armed.delete(handle)
      clearTimeout(handle as NodeJS.Timeout)
    },
  }
  return { clock, armed }
}

const free: ThrottleOptions = {
  maxInFlight: 100,
  defaults: { delay: 0, slotDelay: 0, jitter: false, concurrency: 100 },
  backoff: false,
}

/** The memory in use when no garbage is left to collect. */
async function used(): Promise<number> {
  for (let turns = 0; turns < 4; turns++) {
    collect()
    await turn()
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

type Play = (fetch: (path: string, init?: RequestInit) => Promise<Response>) => Promise<unknown>

/**
 * Plays a fault again and again, and looks at what is left. A leak makes every round grow. Some of them grow
 * by code that the runtime compiles and caches. The test therefore compares the least of three rounds with
 * the least of the three before them, until no memory stays between them.
 */
async function broken(answer: Answer, options: ThrottleOptions, play: Play, atOnce = 20) {
  const { url, close } = await serve(answer)
  const { clock, armed } = watchedClock()
  const throttle = createThrottle({ ...free, clock, ...options })
  const fetch = (path: string, init?: RequestInit) => throttle.fetch(url + path, init)
  // One response that is kept is a kilobyte and more.
  const most = 3 * atOnce * 1000
  const sizes: number[] = []
  let grown = Number.POSITIVE_INFINITY
  for (let round = 0; round < 24 && grown > most; round++) {
    await Promise.all(Array.from({ length: atOnce }, () => play(fetch)))
    for (let turns = 0; turns < 1000 && throttle.stats().inFlight > 0; turns++) await turn()
    const { waiting, inFlight } = throttle.stats()
    assert.deepEqual({ waiting, inFlight }, { waiting: 0, inFlight: 0 })
    assert.equal(armed.size, 0, 'no timer is armed')
    sizes.push(await used())
    if (round > 5) grown = Math.min(...sizes.slice(-3)) - Math.min(...sizes.slice(-6, -3))
  }
  assert.ok(grown <= most, `what is used grows without end: ${sizes} bytes`)
  await throttle.close()
  close()
}

const gaveUp = /terminated|aborted|fetch failed|closed|reset/i
const text = async (response: Promise<Response>) => (await response).text()

const FAULTS: Record<string, [answer: Answer, options: ThrottleOptions, play: Play, atOnce?: number]> = {
  'resets the connection instead of an answer': [
    (request) => request.socket.resetAndDestroy(),
    {},
    (fetch) => assert.rejects(fetch('/'), gaveUp),
  ],
  'resets the connection whenever it is asked again': [
    (request) => request.socket.resetAndDestroy(),
    { retry: { limit: 2 } },
    (fetch) => assert.rejects(fetch('/'), gaveUp),
  ],
  'never answers': [() => {}, { requestTimeout: 20 }, (fetch) => assert.rejects(fetch('/'), TimeoutError)],
  'stalls after the headers, until the caller gives up': [
    (_, response) => response.writeHead(200, { 'content-length': '100' }).flushHeaders(),
    {},
    async (fetch) => {
      const controller = new AbortController()
      const body = (await fetch('/', { signal: controller.signal })).text()
      controller.abort()
      await assert.rejects(body, { name: 'AbortError' })
    },
  ],
  'sends half a body': [
    (_, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('x'.repeat(50), () => response.destroy())
    },
    {},
    (fetch) => assert.rejects(text(fetch('/')), gaveUp),
  ],
  'compresses what no client can read': [
    (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('not at all compressed'),
    {},
    (fetch) => assert.rejects(text(fetch('/'))),
  ],
  'breaks off a refusal': [
    (_, response) => {
      response.writeHead(503, { 'content-length': '100' })
      response.write('sorry', () => response.destroy())
    },
    { retry: { limit: 1 } },
    (fetch) => assert.rejects(text(fetch('/')), gaveUp),
  ],
  'sends what is no HTTP': [
    (request) => request.socket.end('HTTP/9 banana\r\n\r\n'),
    {},
    (fetch) => assert.rejects(fetch('/')),
  ],
  'says 102 and 103 before it answers': [
    (_, response) => {
      response.writeProcessing()
      response.writeEarlyHints({ link: '</style.css>; rel=preload' })
      response.end('final')
    },
    {},
    async (fetch) => assert.equal(await text(fetch('/')), 'final'),
  ],
  'sends trailers': [
    (_, response) => {
      response.writeHead(200, { trailer: 'retry-after', 'transfer-encoding': 'chunked' })
      response.addTrailers({ 'retry-after': '3600' })
      response.end('whole')
    },
    {},
    async (fetch) => assert.equal(await text(fetch('/')), 'whole'),
  ],
  'redirects in circles': [
    (request, response) =>
      response.writeHead(302, { location: request.url === '/a' ? '/b' : '/a' }).end('elsewhere'),
    { redirects: 'throttle' },
    (fetch) => assert.rejects(fetch('/a'), /redirect/),
    4,
  ],
}

for (const [name, [answer, options, play, atOnce]] of Object.entries(FAULTS))
  for (const release of ['headers', 'body'] as const)
    test(`a server that ${name}; release: '${release}'`, () =>
      broken(answer, { release, ...options }, play, atOnce))

test('answers out of order reach those who asked', async () => {
  const open: [string, ServerResponse][] = []
  const answer: Answer = (request, response) => {
    open.push([request.url ?? '', response])
    // The last comes first.
    if (open.length === 20) for (const [url, each] of open.splice(0).reverse()) each.end(url)
  }
  let count = 0
  await broken(answer, {}, async (fetch) => {
    const path = `/${count++}`
    assert.equal(await text(fetch(path)), path)
  })
})

/** A throttle that reads robots.txt, whose bytes `robots` sends; pages are pages. */
async function crawler(robots: Answer, options: ThrottleOptions = {}) {
  const { url } = await serve((request, response) =>
    request.url === '/robots.txt' ? robots(request, response) : response.end('page'),
  )
  const texts: string[] = []
  const read: typeof rules = (_, text) => {
    texts.push(text)
    return () => true
  }
  const { clock, armed } = watchedClock()
  const throttle = createThrottle({
    ...free,
    clock,
    robots: { userAgent: 'foobot', rules: read },
    ...options,
  })
  const rest = async () => {
    for (let turns = 0; turns < 1000 && throttle.stats().inFlight > 0; turns++) await turn()
    const { waiting, inFlight } = throttle.stats()
    assert.deepEqual({ waiting, inFlight, armed: armed.size }, { waiting: 0, inFlight: 0, armed: 0 })
    await throttle.close()
  }
  return { fetch: () => throttle.fetch(`${url}/page`), texts, rest }
}

test('a robots.txt that unpacks without end is read as far as it counts, and its connection is closed', async () => {
  let sent = 0
  let closed: Promise<unknown> | undefined
  const { fetch, texts, rest } = await crawler((_, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' })
    closed = new Promise((resolve) => response.once('close', resolve))
    async function* zeros() {
      for (;;) yield Buffer.alloc(100_000, '#')
    }
    const gzip = createGzip()
    gzip.on('data', (part: Buffer) => {
      sent += part.length
    })
    pipeline(zeros, gzip, response, () => {})
  })
  assert.equal(await text(fetch()), 'page')
  assert.equal(texts[0]?.length, 512_000)
  await closed
  await rest()
  // A gigabyte would be a megabyte of it.
  assert.ok(sent < 1_000_000, `${sent} bytes went out`)
})

const UNREAD: Record<string, [Answer, ThrottleOptions?]> = {
  'resets the connection': [(request) => request.socket.resetAndDestroy()],
  'breaks off': [
    (_, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('User-agent: *', () => response.destroy())
    },
  ],
  'is not what it says it is compressed with': [
    (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('User-agent: *'),
  ],
  'never comes': [() => {}, { requestTimeout: 30 }],
  'stalls after the headers': [
    (_, response) => response.writeHead(200, { 'content-length': '100' }).flushHeaders(),
    { requestTimeout: 30 },
  ],
  'stalls in the middle': [
    (_, response) => void response.writeHead(200, { 'content-length': '100' }).write('User-agent: *'),
    { requestTimeout: 30 },
  ],
}

for (const [name, [robots, options]] of Object.entries(UNREAD))
  test(`a robots.txt that ${name}: nothing may be fetched, and no request waits for it`, async () => {
    let closed: Promise<unknown> | undefined
    const answer: Answer = (request, response) => {
      closed = new Promise((resolve) => response.once('close', resolve))
      return robots(request, response)
    }
    const { fetch, texts, rest } = await crawler(answer, options)
    const all = await Promise.allSettled([fetch(), fetch(), fetch()])
    for (const each of all) {
      assert.ok(each.status === 'rejected' && each.reason instanceof DisallowedError)
      assert.match(each.reason.message, /could not be had/)
    }
    assert.deepEqual(texts, [])
    await closed
    await rest()
  })
