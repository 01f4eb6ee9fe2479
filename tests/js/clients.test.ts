/**
 * The throttle hears every client: real ones against a loopback server that refuses with `Retry-After`, by
 * result and by error. A refusal reaches `run` and `wrap` as a step of backoff and a hold; what they hear of
 * a good answer is its status.
 */
import assert from 'node:assert/strict'
import http, { type IncomingMessage } from 'node:http'
import { describe, test } from 'node:test'
import { Octokit } from '@octokit/core'
import {
  createThrottle,
  type PermitOutcome,
  type SendEvent,
  type SettleEvent,
  type Target,
  type ThrottleOptions,
} from 'autothrottle'
import { throttleAdapter } from 'autothrottle/axios'
import { type CrawlContext, throttleHooks } from 'autothrottle/crawlee'
import { throttleHandler } from 'autothrottle/got'
import { FakeClock } from 'autothrottle/testing'
import axios from 'axios'
import got from 'got'
import ky from 'ky'
import nodeFetch from 'node-fetch'
import OpenAI from 'openai'
import { request } from 'undici'
import { deadOrigin, serve } from './serve.js'

const scripts = new Map<string, number[]>()
const origin = await serve((incoming, response) => {
  const { pathname, searchParams } = new URL(incoming.url!, 'http://x')
  const script = scripts.get(pathname)
  const status = script?.shift() ?? Number(searchParams.get('status') ?? 200)
  if (status === 302) return void response.writeHead(302, { location: '/there' }).end('moved')
  response.writeHead(status, {
    'content-type': 'application/json',
    ...(status === 429 ? { 'retry-after': '7' } : {}),
  })
  response.end('{"ok":true}')
})

const free = { defaults: { delay: 0, slotDelay: 0, jitter: false } } as const

function make(options: ThrottleOptions = {}) {
  const throttle = createThrottle({ ...free, ...options })
  const settled: (number | undefined)[] = []
  throttle.addEventListener('settle', ({ status }: SettleEvent) => settled.push(status))
  return { throttle, settled }
}

const get = (url: string) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    http
      .get(url, (response) => {
        response.resume()
        resolve(response)
      })
      .on('error', reject)
  })

const octokit = (url: string) =>
  new Octokit({
    baseUrl: new URL(url).origin,
    log: { debug() {}, info() {}, warn() {}, error() {} },
  }).request(`GET ${new URL(url).pathname}${new URL(url).search}`)

const openai = (url: string) =>
  new OpenAI({ apiKey: 'k', maxRetries: 0, baseURL: new URL(url).origin }).get(
    new URL(url).pathname + new URL(url).search,
  )

/** Each client: how it sends, and whether a refusal is thrown. */
const CLIENTS: Record<string, [send: (url: string) => unknown, isThrown: boolean]> = {
  fetch: [(url) => fetch(url), false],
  'axios, thrown': [(url) => axios.get(url), true],
  axios: [(url) => axios.get(url, { validateStatus: () => true }), false],
  'ky, thrown': [(url) => ky(url, { retry: 0 }), true],
  ky: [(url) => ky(url, { retry: 0, throwHttpErrors: false }), false],
  'got, thrown': [(url) => got(url, { retry: { limit: 0 } }), true],
  got: [(url) => got(url, { retry: { limit: 0 }, throwHttpErrors: false }), false],
  'Octokit, thrown': [octokit, true],
  'node:http': [get, false],
  'undici.request': [
    async (url) => {
      const answer = await request(url)
      await answer.body.dump()
      return answer
    },
    false,
  ],
  'node-fetch': [(url) => nodeFetch(url), false],
  'openai, thrown': [openai, true],
}

for (const [name, [send, isThrown]] of Object.entries(CLIENTS)) {
  test(`${name}: run hears a 429 and its Retry-After, and a 200`, async () => {
    const { throttle, settled } = make()
    const url = `${origin}/page`
    const refused = throttle.run(url, () => send(`${url}?status=429`))
    if (isThrown) await assert.rejects(refused)
    else await refused
    const { backoffStep, holdUntil, inFlight } = throttle.scope(new URL(url).host).stats
    assert.deepEqual([settled, backoffStep, inFlight], [[429], 1, 0])
    assert.ok(holdUntil! > throttle.now() + 5000, `held until ${holdUntil}`)
    throttle.scope(new URL(url).host).reset()
    await throttle.run(url, () => send(url))
    assert.equal(settled[1], name.startsWith('openai') ? undefined : 200, 'openai gives what it parsed')
  })
}

test('wrap: the first argument is the target, or what a function makes of the arguments', async () => {
  const { throttle, settled } = make()
  const asked: unknown[] = []
  throttle.addEventListener('send', ({ target, scopes }) => asked.push([target, scopes]))
  const host = new URL(origin).host
  const wrapped = throttle.wrap((url: string, _: object) => axios.get(url))
  assert.equal((await wrapped(`${origin}/a`, {})).data.ok, true)
  const byConfig = throttle.wrap((config: { url: string }) => axios(config))
  assert.equal((await byConfig({ url: `${origin}/b` })).status, 200)
  const byId = throttle.wrap((id: number) => fetch(`${origin}/${id}`), { scopes: 'api' })
  assert.equal((await byId(7)).status, 200)
  const named = throttle.wrap(
    function (this: { base: string }, id: number) {
      return fetch(`${this.base}/${id}`)
    },
    (id) => ({ scopes: ['api', `shard-${id % 2}`] }),
  )
  assert.equal((await named.call({ base: origin }, 3)).status, 200)
  assert.deepEqual(asked.slice(2), [
    [{ scopes: 'api' }, ['api']],
    [{ scopes: ['api', 'shard-1'] }, ['api', 'shard-1']],
  ])
  assert.deepEqual(
    (asked as [Target, string[]][]).slice(0, 2).map(([, scopes]) => scopes),
    [[host], [host]],
  )
  assert.deepEqual(settled, [200, 200, 200, 200])
  const sync = throttle.wrap((url: string) => url.length)
  assert.equal(await sync('https://a.example/'), 18)
  const failing = throttle.wrap((url: string): string => {
    throw new Error(url)
  })
  await assert.rejects(failing('https://a.example/'), /a\.example/)
  await assert.rejects(throttle.wrap((what: unknown) => what)(undefined), TypeError)
})

test('settle: every form of an outcome and of its headers', async () => {
  const error = (fields: object) => ({ error: Object.assign(new Error('refused'), fields) })
  const lines = ['Retry-After', '7', 'Date', 'Sat, 21 Nov 2026 12:00:00 GMT']
  const outcomes: PermitOutcome[] = [
    { status: 429, headers: { 'retry-after': '7' } },
    { statusCode: 429, headers: { 'Retry-After': ['7'] } },
    { status: 429, headers: new Headers({ 'retry-after': '7' }) },
    { status: 429, headers: [['retry-after', '7']] },
    { status: 429, headers: new Map([['retry-after', '7']]) },
    { status: 429, headers: lines },
    error({ status: 429, headers: { 'retry-after': '7' } }),
    error({ statusCode: 429, headers: lines }),
    error({ response: { status: 429, headers: new Headers({ 'retry-after': '7' }) } }),
    error({ response: { statusCode: 429, headers: { 'retry-after': '7' } } }),
  ]
  for (const outcome of outcomes) {
    const { throttle, settled } = make()
    const permit = await throttle.acquire({ scopes: 'x' })
    permit.settle(outcome)
    const { backoffStep, holdUntil } = throttle.scope('x').stats
    assert.deepEqual([settled, backoffStep], [[429], 1])
    assert.ok(holdUntil! > throttle.now() + 5000)
  }
})

test('a result that only looks like a response says nothing', async () => {
  for (const result of [
    { status: 3 },
    { status: 'done' },
    { statusCode: 0 },
    { headers: { 'retry-after': '7' } },
    7,
    null,
  ]) {
    const { throttle, settled } = make()
    assert.equal(await throttle.run({ scopes: 'x' }, () => result), result)
    assert.deepEqual([settled, throttle.scope('x').stats.holdUntil], [[undefined], undefined])
  }
})

test('clients that cannot connect, or give up, say so', async () => {
  const url = `${await deadOrigin()}/`
  for (const name of Object.keys(CLIENTS).filter((name) => !name.startsWith('Octokit'))) {
    const { throttle } = make({ backoff: {} })
    await assert.rejects(throttle.run(url, () => CLIENTS[name]![0](url)))
    assert.equal(throttle.scope(new URL(url).host).stats.backoffStep, 1, name)
  }
})

test('a fetch of node-fetch’s: retry, redirects and release: body', async () => {
  const fetch = nodeFetch as unknown as typeof globalThis.fetch
  scripts.set('/again', [503, 200])
  const retrying = make({ fetch, retry: { limit: 2 }, backoff: false })
  const again = await retrying.throttle.fetch(`${origin}/again`)
  assert.deepEqual([again.status, await again.json(), retrying.settled], [200, { ok: true }, [503, 200]])

  const following = make({ fetch, redirects: 'throttle' })
  const there = await following.throttle.fetch(`${origin}/go?status=302`)
  assert.deepEqual([there.status, there.redirected, new URL(there.url).pathname], [200, true, '/there'])
  assert.deepEqual(following.settled, [302, 200])

  const held = make({ fetch, release: 'body' })
  const response = await held.throttle.fetch(`${origin}/body`)
  assert.equal(held.throttle.stats().inFlight, 1)
  assert.deepEqual(await response.json(), { ok: true })
  await held.throttle.idle()
  assert.deepEqual([held.settled, held.throttle.stats().inFlight], [[200], 0])
  const unread = await held.throttle.fetch(`${origin}/body`)
  ;(unread.body as unknown as { destroy(): void }).destroy()
  await held.throttle.idle()
})

/**
 * The entries for axios and got, beside the conformance test: redirects' rules, options, streams.
 */
describe('entries for clients', async () => {
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
      assert.equal(context.session, undefined, 'no session is blamed')
    }
    throttle.resume()
    assert.equal(await crawl(hooks, { ...context, response: { statusCode: 200 } } as CrawlContext), 'done')
    assert.deepEqual([throttle.stats().sent, throttle.stats().inFlight], [1, 0])
  })

  test('crawlee: hooks of yours are called without a slot; a proxy’s failure is not the server’s', async () => {
    const { throttle } = make({ backoff: {} })
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
})
