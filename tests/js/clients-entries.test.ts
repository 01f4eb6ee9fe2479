/** What the entries for axios and got do beside the conformance test: redirects' rules, options, streams. */
import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { createThrottle, type SendEvent, type ThrottleOptions } from 'autothrottle'
import { throttleAdapter } from 'autothrottle/axios'
import { type CrawlContext, throttleHooks } from 'autothrottle/crawlee'
import { throttleHandler } from 'autothrottle/got'
import { FakeClock } from 'autothrottle/testing'
import axios from 'axios'
import got from 'got'
import { serve } from './serve.js'

interface Seen {
  readonly line: string
  readonly body: string
  readonly headers: IncomingMessage['headers']
}
const seen: Seen[] = []
const origin = await serve(async (request, response) => {
  let body = ''
  for await (const part of request) body += part
  const { pathname, searchParams } = new URL(request.url!, 'http://x')
  seen.push({ line: `${request.method} ${pathname}`, body, headers: request.headers })
  const location = searchParams.get('to')
  const status = Number(searchParams.get('status') ?? (location === null ? 200 : 302))
  response.writeHead(status, location === null ? {} : { location })
  response.end('page')
})
const elsewhere = origin.replace('127.0.0.1', 'localhost')

function make(options: ThrottleOptions = {}) {
  const throttle = createThrottle({ delay: 0, slotDelay: 0, jitter: false, ...options })
  const scopes: string[] = []
  throttle.addEventListener('send', (event: SendEvent) => scopes.push(event.scopes.join(' ')))
  seen.length = 0
  return { throttle, scopes }
}
const lines = () => seen.map(({ line }) => line)

test('axios: a 302 turns a POST into a GET, a 307 does not; each hop has its own scope', async () => {
  const { throttle, scopes } = make()
  const client = axios.create({ adapter: throttleAdapter(throttle, axios) })
  const to = encodeURIComponent(`${elsewhere}/there`)
  const turned = await client.post(`${origin}/form?to=${to}`, { a: 1 })
  assert.deepEqual(lines(), ['POST /form', 'GET /there'])
  assert.deepEqual([seen[1]!.body, seen[1]!.headers['content-type']], ['', undefined])
  assert.deepEqual(scopes, [new URL(origin).host, new URL(elsewhere).host])
  assert.equal(turned.request.res.responseUrl, `${elsewhere}/there`)
  seen.length = 0
  await client.post(`${origin}/form?status=307&to=${to}`, { a: 1 })
  assert.deepEqual(lines(), ['POST /form', 'POST /there'])
  assert.equal(seen[1]!.body, '{"a":1}')
})

test('axios: a Location in UTF-8 leads where fetch goes', async () => {
  const { throttle } = make()
  const client = axios.create({ adapter: throttleAdapter(throttle, axios) })
  const to = encodeURIComponent(Buffer.from('/café').toString('latin1'))
  await client.get(`${origin}/from?to=${to}`)
  assert.deepEqual(lines(), ['GET /from', 'GET /caf%C3%A9'])
})

test('axios: credentials stay where they belong', async () => {
  const { throttle } = make()
  const client = axios.create({ adapter: throttleAdapter(throttle, axios), baseURL: origin })
  const options = {
    auth: { username: 'u', password: 'p' },
    headers: { cookie: 'c=1', 'x-key': 'k' },
    sensitiveHeaders: ['X-Key'],
  }
  await client.get('/a', { ...options, params: { to: `${elsewhere}/b` } })
  const sent = ['authorization', 'cookie', 'x-key'].map((name) => seen.map(({ headers }) => headers[name]))
  assert.deepEqual(sent, [
    ['Basic dTpw', undefined],
    ['c=1', undefined],
    ['k', undefined],
  ])
  seen.length = 0
  await client.get('/a', { ...options, params: { to: '/b' } })
  assert.equal(seen[1]!.headers.authorization, 'Basic dTpw')
})

test('axios: what fails after a redirect is sent again from the start', async () => {
  const { throttle } = make({ backoff: false })
  const client = axios.create({ adapter: throttleAdapter(throttle, axios), baseURL: origin })
  const error = await client.get('/a', { params: { to: '/b?status=500' } }).catch((error) => error)
  assert.equal(error.response.status, 500)
  await assert.rejects(client.request(error.config))
  assert.deepEqual(lines(), ['GET /a', 'GET /b', 'GET /a', 'GET /b'])
})

test('axios: too many redirects, none, and those that it follows by itself', async () => {
  const { throttle, scopes } = make()
  const client = axios.create({ adapter: throttleAdapter(throttle, axios), baseURL: origin })
  await assert.rejects(client.get('/a?to=/a?to=/a', { maxRedirects: 1 }), {
    code: 'ERR_FR_TOO_MANY_REDIRECTS',
  })
  await assert.rejects(client.get('/a?to=/b', { maxRedirects: 0 }), { status: 302 })
  const before = scopes.length
  let asked = 0
  const beforeRedirect = () => {
    asked++
  }
  assert.equal((await client.get('/a?to=/b', { beforeRedirect })).status, 200)
  assert.deepEqual([asked, scopes.length - before], [1, 1])
})

test('axios: a CancelToken ends the wait, as a CanceledError', async () => {
  const { throttle } = make()
  const client = axios.create({ adapter: throttleAdapter(throttle, axios) })
  throttle.pause()
  const source = axios.CancelToken.source()
  const sent = client.get(origin, { cancelToken: source.token })
  while (throttle.stats().waiting === 0) await new Promise(setImmediate)
  source.cancel('enough')
  await assert.rejects(sent, (error) => axios.isCancel(error))
  assert.equal(throttle.stats().waiting, 0)
})

const ways = {
  axios: (throttle: ReturnType<typeof createThrottle>, options: object, key = 'throttle') =>
    axios.create({ adapter: throttleAdapter(throttle, axios) }).get(origin, { [key]: options } as object),
  got: (throttle: ReturnType<typeof createThrottle>, options: object, key = 'throttle') =>
    got.extend({ handlers: [throttleHandler(throttle)], retry: { limit: 0 } })(origin, {
      context: { [key]: options },
    }),
}
for (const [name, send] of Object.entries(ways)) {
  test(`${name}: a request says its scopes; a misspelt word is an error`, async () => {
    const { throttle, scopes } = make()
    await send(throttle, { scopes: ['api', 'users'], priority: 1 })
    assert.deepEqual(scopes, ['api users'])
    await assert.rejects(send(throttle, { prio: 1 }), /prio/)
    await assert.rejects(send(throttle, {}, 'throtle'), /got throtle \(did you mean throttle\?\)/)
    assert.equal(throttle.stats().inFlight, 0)
  })
}

test('axios and got: with `release: body` a stream keeps its slot until it is over', async () => {
  const { throttle } = make({ release: 'body', fetch })
  const client = axios.create({ adapter: throttleAdapter(throttle, axios) })
  const { data } = await client.get(origin, { responseType: 'stream' })
  assert.equal(throttle.stats().inFlight, 1)
  data.resume()
  await throttle.idle()
  const stream = got.extend({ handlers: [throttleHandler(throttle)] }).stream(origin)
  await new Promise((resolve) => stream.once('response', resolve))
  assert.equal(throttle.stats().inFlight, 1)
  stream.resume()
  await throttle.idle()
})

test('got: a handler’s own hooks and `request` go on', async () => {
  const { throttle, scopes } = make()
  const asked: string[] = []
  const client = got.extend({
    handlers: [throttleHandler(throttle)],
    hooks: { beforeRequest: [() => void asked.push('hook')] },
    request: (url) => {
      asked.push(`request ${url.pathname}`)
      return undefined
    },
  })
  assert.equal((await client(`${origin}/a`)).body, 'page')
  assert.deepEqual([asked, scopes.length], [['hook', 'request /a'], 1])
})

/** As Crawlee calls them. */
async function crawl(hooks: ReturnType<typeof throttleHooks>, context: CrawlContext) {
  try {
    for (const hook of hooks.preNavigationHooks) await hook(context, {})
    for (const hook of hooks.postNavigationHooks) await hook(context, {})
    return 'done'
  } catch (error) {
    const isAgain = context.request.retryCount < 3
    if (isAgain) await hooks.errorHandler(context, error as Error)
    else await hooks.failedRequestHandler(context, error as Error)
    context.request.retryCount++
    return isAgain ? 'again' : 'failed'
  }
}

test('crawlee: who waited too long goes back uncounted, as often as it takes', async () => {
  const clock = new FakeClock()
  const { throttle } = make({ clock })
  const called: string[] = []
  const hooks = throttleHooks(throttle, { maxWait: 500, errorHandler: () => called.push('error') })
  throttle.pause()
  // Session errors have counted more than there are retries.
  const request = { url: 'https://a.example/', retryCount: 7, userData: {} }
  const context = { request, session: { id: 's' } }
  for (const _ of [1, 2]) {
    const over = crawl(hooks, context)
    await clock.advance(500)
    assert.deepEqual([await over, request.retryCount, called], ['again', 7, []])
    assert.equal(context.session, undefined, 'nobody is blamed')
  }
  throttle.resume()
  assert.equal(await crawl(hooks, { ...context, response: { statusCode: 200 } } as CrawlContext), 'done')
  assert.deepEqual([throttle.stats().sent, throttle.stats().inFlight], [1, 0])
})

test('crawlee: hooks of yours are called without a slot; a proxy’s failure is not the server’s', async () => {
  const { throttle } = make()
  const slots: number[] = []
  const note = () => slots.push(throttle.stats().inFlight)
  const hooks = throttleHooks(throttle, {
    preNavigationHooks: [note],
    postNavigationHooks: [note],
    scopes: ({ session }) => `a ${session?.id}`,
  })
  const context = (more: object): CrawlContext => ({
    request: { url: 'https://a.example/', retryCount: 0, userData: {} },
    session: { id: 's' },
    ...more,
  })
  await crawl(hooks, context({ response: { statusCode: 429, headers: { 'retry-after': '1' } } }))
  assert.deepEqual([slots, throttle.scope('a s').stats.backoffStep], [[0, 0], 1])
  throttle.scope('a s').reset()
  class SessionError extends Error {}
  for (const [proxyInfo, step] of [[{ url: 'http://p' }, 0] as const, [undefined, 1] as const]) {
    const failing = context({ proxyInfo })
    for (const hook of hooks.preNavigationHooks) await hook(failing, {})
    await hooks.errorHandler(failing, new SessionError('connect ECONNREFUSED 127.0.0.1:1'))
    assert.equal(throttle.scope('a s').stats.backoffStep, step)
  }
  assert.throws(() => throttleHooks(throttle, { maxWait: -1 }), /maxWait: want milliseconds from 0; got -1/)
})
