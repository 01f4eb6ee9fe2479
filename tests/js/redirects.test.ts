/**
 * Redirects hop by hop, with fetch's own rules; and slots that are held until a body is over. Against real
 * servers of this machine.
 */

import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import {
  byHost,
  createThrottle,
  DisallowedError,
  ManagerError,
  type ScopeRequest,
  type ThrottleOptions,
} from 'autothrottle'
import { rules } from 'autothrottle/robots'
import { FakeClock } from 'autothrottle/testing'
import { serve } from './serve.js'

const free = { defaults: { delay: 0, slotDelay: 0, jitter: false } } as const

const served = (answer: (request: IncomingMessage, response: ServerResponse, body: string) => void) =>
  serve(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    answer(request, response, body)
  })

/** Answers `/STATUS?to=…` with a redirect, anything else with what it was asked. */
const mirror = () =>
  served((request, response, body) => {
    const url = new URL(request.url!, 'http://x')
    const status = Number(url.pathname.slice(1))
    if (status) {
      const wait = url.searchParams.get('wait')
      response.writeHead(status, {
        location: url.searchParams.get('to') ?? '/seen',
        ...(wait ? { 'retry-after': wait } : {}),
      })
      response.end('moved')
      return
    }
    // How a body is framed is the client's own.
    const { host: _, 'content-length': __, 'transfer-encoding': ___, ...headers } = request.headers
    response.end(JSON.stringify({ method: request.method, path: request.url, body, headers }))
  })

const seen = async (response: Response) => ({
  ...((await response.json()) as Record<string, unknown>),
  url: response.url,
  redirected: response.redirected,
})

test('methods, bodies, headers, fragments and `redirected`: as fetch does it itself', async () => {
  const here = await mirror()
  const there = await mirror()
  const throttle = createThrottle({ ...free, redirects: 'throttle' })
  const ofBody = { 'content-type': 'text/x', 'content-language': 'en', 'content-encoding': 'br' }
  const ofUser = { authorization: 'secret', cookie: 'a=1', 'proxy-authorization': 'b' }
  const headers = { ...ofBody, 'content-location': '/x', ...ofUser, 'x-own': 'kept' }
  const post = (to = '/seen') => ({
    method: 'POST',
    body: 'body',
    headers: { ...headers, 'content-length': '4' },
    to,
  })
  const cases: [path: string, init: RequestInit & { to?: string }][] = [
    ['/301', post()],
    ['/302', post()],
    ['/302', { ...post(), method: 'post' }],
    ['/303', { ...post(), method: 'PUT' }],
    ['/301', { ...post(), method: 'PUT' }],
    ['/302', { ...post(), method: 'DELETE' }],
    ['/307', post()],
    ['/308', post()],
    ['/302', { headers }],
    ['/302', { headers, to: `${there}/seen` }],
    ['/307', post(`${there}/seen`)],
    ['/307', { headers, to: here.replace('127.0.0.1', 'localhost') }],
    ['/301', { method: 'HEAD', to: '/seen' }],
    ['/303', { method: 'HEAD', to: '/seen' }],
  ]
  for (const [path, { to = '/seen', ...init }] of cases) {
    const url = `${here}${path}?to=${encodeURIComponent(to)}#part`
    const [ours, theirs] = [await throttle.fetch(url, init), await fetch(url, init)]
    assert.deepEqual([ours.clone().redirected, ours.clone().url], [true, ours.url])
    const what = `${init.method ?? 'GET'} ${path} to ${to}`
    if (init.method === 'HEAD')
      assert.deepEqual(
        [ours.url, ours.redirected, ours.status],
        [theirs.url, theirs.redirected, theirs.status],
        what,
      )
    else assert.deepEqual(await seen(ours), await seen(theirs), what)
  }
  const request = new Request(`${here}/307`, { method: 'POST', body: 'body', headers })
  assert.deepEqual(await seen(await throttle.fetch(request.clone())), await seen(await fetch(request)))
  assert.equal(
    (await throttle.fetch(`${here}/302`, { redirect: 'manual' })).status,
    302,
    'who wants to see it, sees it',
  )
  assert.deepEqual([throttle.stats().inFlight, throttle.stats().waiting], [0, 0])
})

test('a Location in UTF-8 leads where fetch goes, also to a host', async () => {
  const raw = (text: string) => Buffer.from(text).toString('latin1')
  const asked: string[] = []
  const here = await served((request, response) => {
    asked.push(request.url!)
    if (request.url === '/from') response.writeHead(302, { location: raw('/café?q=東京#ü') })
    response.end()
  })
  const throttle = createThrottle({ ...free, redirects: 'throttle' })
  const [ours, theirs] = [await throttle.fetch(`${here}/from`), await fetch(`${here}/from`)]
  assert.equal(ours.url, theirs.url)
  assert.deepEqual(asked, ['/from', '/caf%C3%A9?q=%E6%9D%B1%E4%BA%AC', '/from', asked[1]])
})

test('redirects that fetch refuses are refused: loops, strange places, streams that would be needed again', async () => {
  const here = await served((request, response) => {
    const to: Record<string, string> = {
      '/loop': '/loop',
      '/ftp': 'ftp://x/',
      '/bad': 'http://[',
      '/307': '/seen',
    }
    const location = to[request.url!]
    if (location) response.writeHead(request.url === '/307' ? 307 : 302, { location })
    response.end()
  })
  const throttle = createThrottle({ ...free, redirects: 'throttle' })
  for (const path of ['/loop', '/ftp', '/bad'])
    await assert.rejects(throttle.fetch(here + path), TypeError, path)
  const body = new ReadableStream({ start: (controller) => controller.close() })
  await assert.rejects(
    throttle.fetch(`${here}/307`, { method: 'POST', body, duplex: 'half' } as RequestInit),
    /stream/,
  )
  await assert.rejects(throttle.fetch(`${here}/loop`, { redirect: 'error' }), TypeError)
  assert.equal(throttle.stats().inFlight, 0)
})

test('each hop is a request of the scope that it goes to; scopes that the caller named persist', async () => {
  const there = await mirror()
  const here = await mirror()
  const sends: (readonly string[])[] = []
  const throttle = createThrottle({ ...free, redirects: 'throttle' })
  throttle.addEventListener('send', ({ scopes }) => sends.push(scopes))
  const url = `${here}/302?to=${encodeURIComponent(`${there}/301?to=/seen`)}`
  await (await throttle.fetch(url)).text()
  const [a, b] = [new URL(here).host, new URL(there).host]
  assert.deepEqual(sends.splice(0), [[a], [b], [b]])
  await (await throttle.fetch(url, { throttle: { scopes: ['mine'] } })).text()
  assert.deepEqual(sends, [['mine'], ['mine'], ['mine']])
})

test('a 3xx with Retry-After delays its hop alone, and is the answer where it asks for more than redirectMaxDelay', async () => {
  const clock = new FakeClock()
  const script: Record<string, Response> = {
    '/wait': new Response('', { status: 302, headers: { location: '/there', 'retry-after': '30' } }),
    '/long': new Response('', { status: 302, headers: { location: '/there', 'retry-after': '400' } }),
  }
  const calls: [string, number][] = []
  const fetch = async (input: RequestInfo | URL) => {
    const { pathname } = new URL(String(input))
    calls.push([pathname, clock.now()])
    return script[pathname] ?? new Response('ok')
  }
  const throttle = createThrottle({ ...free, clock, fetch, redirects: 'throttle' })
  const waiting = throttle.fetch('https://a.example/wait')
  await clock.advance(0)
  await throttle.fetch('https://a.example/other')
  await clock.advance(30_000)
  assert.equal((await waiting).status, 200)
  assert.equal((await throttle.fetch('https://a.example/long')).status, 302)
  assert.deepEqual(calls, [
    ['/wait', 0],
    ['/other', 0],
    ['/there', 30_000],
    ['/long', 30_000],
  ])
})

test('where redirects are hidden it says so', async () => {
  const opaque = Object.defineProperty(new Response(''), 'type', { value: 'opaqueredirect' })
  const throttle = createThrottle({ ...free, fetch: async () => opaque, redirects: 'throttle' })
  await assert.rejects(throttle.fetch('https://a.example/'), /hides redirects/)
  assert.equal(throttle.stats().inFlight, 0)
})

const held = (options: ThrottleOptions = {}) => createThrottle({ ...free, release: 'body', ...options })

test('a fetch that gives no Response says so where it redirects', async () => {
  for (const headers of [undefined, { location: 'https://b.example/' }]) {
    const fetch = (async () => ({ status: 302, headers })) as unknown as typeof globalThis.fetch
    const throttle = createThrottle({ ...free, redirects: 'throttle', fetch })
    const want = "redirects: 'throttle' wants a fetch that gives a Response; got no Headers in it"
    await assert.rejects(throttle.fetch('https://a.example/'), { name: 'TypeError', message: want })
    assert.equal(throttle.stats().inFlight, 0)
  }
})

test("release: 'body': read, cancelled, failed, empty, cloned", async () => {
  const url = await served((request, response) => {
    if (request.url === '/none') return void response.writeHead(204).end()
    if (request.url === '/same') return void response.writeHead(304).end()
    if (request.url === '/empty') return void response.writeHead(200, { 'content-length': '0' }).end()
    response.write('first ')
    if (request.url === '/break') setTimeout(() => response.destroy(), 20)
    else setTimeout(() => response.end('last'), 20)
  })
  const throttle = held({ backoff: {} })
  const flying = () => throttle.stats().inFlight
  const plain = await fetch(`${url}/x`)
  const response = await throttle.fetch(`${url}/x`)
  assert.equal(flying(), 1)
  const look = ({ url, type, redirected, status, ok, bodyUsed }: Response) => ({
    url,
    type,
    redirected,
    status,
    ok,
    bodyUsed,
  })
  assert.deepEqual(look(response), look(plain))
  assert.deepEqual(
    [...response.headers],
    [...plain.headers].map(([name, value]) => [name, name === 'date' ? response.headers.get('date') : value]),
  )
  assert.ok(response instanceof Response)
  assert.equal(await response.text(), await plain.text())
  assert.equal(flying(), 0)

  const cloned = await throttle.fetch(`${url}/x`)
  const copy = cloned.clone()
  assert.deepEqual([copy.url, copy.type], [cloned.url, cloned.type])
  assert.deepEqual(await Promise.all([cloned.text(), copy.text()]), ['first last', 'first last'])
  assert.equal(flying(), 0)

  const cancelled = await throttle.fetch(`${url}/x`)
  await cancelled.body?.cancel()
  assert.equal(flying(), 0)

  const byob = (await throttle.fetch(`${url}/x`)).body!.getReader({ mode: 'byob' })
  let [text, view] = ['', new Uint8Array(4)]
  for (;;) {
    const { done, value } = await byob.read(view)
    if (done) break
    text += new TextDecoder().decode(value)
    view = new Uint8Array(4)
  }
  assert.equal(text, 'first last')
  assert.equal(flying(), 0)

  await assert.rejects((await throttle.fetch(`${url}/break`)).text())
  assert.equal(flying(), 0)
  assert.equal(throttle.scope(new URL(url).host).stats.backoffStep, 1, 'a body that breaks is a bad answer')

  const none = held()
  assert.equal((await none.fetch(`${url}/none`)).status, 204)
  assert.equal((await none.fetch(`${url}/x`, { method: 'HEAD' })).status, 200)
  assert.equal((await none.fetch(new Request(`${url}/x`, { method: 'HEAD' }))).status, 200)
  assert.equal((await none.fetch(`${url}/same`)).status, 304)
  assert.equal((await none.fetch(`${url}/empty`)).status, 200)
  // A custom fetch may give a body to anything.
  const odd = held({
    fetch: async (_, init) =>
      init?.method === 'HEAD'
        ? new Response(new ReadableStream({}))
        : new Response(new ReadableStream({}), { headers: { 'content-length': '0' } }),
  })
  await odd.fetch('https://a.example/', { method: 'HEAD' })
  await odd.fetch('https://a.example/')
  assert.equal(odd.stats().inFlight, 0)
  assert.equal(none.stats().inFlight, 0)

  const read = held({ getHints: async (response) => void (await response.text()) })
  assert.equal((await read.fetch(`${url}/x`)).bodyUsed, true)
  assert.equal(read.stats().inFlight, 0, 'a hook that reads the body itself takes no slot along')
})

test("release: 'body': a body that is never read gives its slot back when it is collected", async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const fetch = async () =>
    new Response(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(10)) }))
  const throttle = held({ fetch })
  await (async () => void (await throttle.fetch('https://a.example/')))()
  assert.equal(throttle.stats().inFlight, 1)
  for (let turn = 0; turn < 50 && throttle.stats().inFlight > 0; turn++) {
    collect()
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.equal(throttle.stats().inFlight, 0)
})

test("release: 'body': the next request waits for the body", async () => {
  const clock = new FakeClock()
  let finish = () => {}
  const fetch = async () =>
    new Response(
      new ReadableStream({
        start(controller) {
          controller.enqueue(new Uint8Array([65]))
          finish = () => controller.close()
        },
      }),
    )
  const throttle = held({ clock, fetch })
  const first = await throttle.fetch('https://a.example/')
  const second = throttle.fetch('https://a.example/')
  await clock.advance(1000)
  assert.equal(throttle.stats().waiting, 1)
  finish()
  assert.equal(await first.text(), 'A')
  await second
  assert.equal(throttle.stats().waiting, 0)
})

// The promises of SECURITY.md: one place sees each URL before it is sent, and a scope's name is never part of
// a request. Redirects and robots.txt lead elsewhere than the first URL.

const plain = { delay: 0, slotDelay: 0, jitter: false } as const
const INSIDE = /^(?:localhost|127\.|10\.|169\.254\.|\[)/

/** A web in which `pages` redirect: what was sent to it, and a throttle with the guard of SECURITY.md. */
function web(pages: Record<string, string>, robots = false) {
  const sent: string[] = []
  const seen: string[] = []
  const fetch = async (input: RequestInfo | URL, init?: RequestInit) => {
    const { url, redirect } = new Request(input, init)
    assert.equal(redirect, 'manual', 'the client follows none unseen')
    sent.push(url)
    const location = pages[url]
    if (location === undefined) return new Response('User-agent: *\nDisallow: /secret')
    return new Response('', { status: 302, headers: { location } })
  }
  const getScopes = (request: ScopeRequest) => {
    seen.push(request.url)
    if (INSIDE.test(new URL(request.url).host)) throw new Error(`${request.url} is inside`)
    return byHost(request)
  }
  const throttle = createThrottle({
    fetch,
    getScopes,
    redirects: 'throttle',
    retry: { limit: 3 },
    defaults: plain,
    ...(robots ? { robots: { userAgent: 'foobot', rules } } : {}),
  })
  return { throttle, sent, seen }
}

test('getScopes sees each hop before it is sent, and what it throws ends the request there', async () => {
  const { throttle, sent, seen } = web({
    'https://a.example/': 'https://b.example/',
    'https://b.example/': 'http://169.254.169.254/latest/meta-data',
  })
  await assert.rejects(throttle.fetch('https://a.example/'), (error: ManagerError) => {
    assert.ok(error instanceof ManagerError)
    return /is inside/.test(String((error.cause as Error).message))
  })
  assert.deepEqual(sent, ['https://a.example/', 'https://b.example/'], 'not sent, not tried again')
  assert.deepEqual(seen, [...sent, 'http://169.254.169.254/latest/meta-data'])
  assert.deepEqual([throttle.stats().inFlight, throttle.stats().waiting], [0, 0])
  assert.equal(throttle.scope('b.example').stats.backoffStep, 0, 'who redirected is not blamed')
})

test('getScopes sees robots.txt and where that leads', async () => {
  const { throttle, sent } = web(
    {
      'https://a.example/robots.txt': 'http://10.0.0.1/robots.txt',
      'https://c.example/robots.txt': 'https://cdn.example/c/robots.txt',
    },
    true,
  )
  await assert.rejects(throttle.fetch('https://a.example/'), DisallowedError)
  assert.deepEqual(sent, ['https://a.example/robots.txt'])
  await assert.rejects(throttle.fetch('http://127.0.0.1/'), DisallowedError)
  assert.equal(sent.length, 1, 'robots.txt of what is inside is not asked for either')
  assert.equal((await throttle.fetch('https://c.example/')).status, 200)
  await assert.rejects(throttle.fetch('https://c.example/secret'), DisallowedError)
  assert.deepEqual(sent.slice(1), [
    'https://c.example/robots.txt',
    'https://cdn.example/c/robots.txt',
    'https://c.example/',
  ])
})

test('robots.txt that redirects in circles has no rules, after six requests', async () => {
  const { throttle, sent } = web({ 'https://a.example/robots.txt': '/robots.txt' }, true)
  assert.equal((await throttle.fetch('https://a.example/secret')).status, 200)
  assert.equal(sent.filter((url) => url.endsWith('/robots.txt')).length, 6)
  const nowhere = web({ 'https://a.example/robots.txt': 'file:///etc/passwd' }, true)
  assert.equal((await nowhere.throttle.fetch('https://a.example/')).status, 200)
  assert.deepEqual(nowhere.sent, ['https://a.example/robots.txt', 'https://a.example/'])
})

test('a scope may have any name: none of it is sent', async () => {
  const heard: string[] = []
  const url = await serve((request, response) => {
    heard.push(`${request.method} ${request.url} ${JSON.stringify(request.rawHeaders)}`)
    response.end('page')
  })
  const names = ['plain', 'a\r\nx-evil: 1', 'b\n\nGET / HTTP/1.1', '\0', '__proto__', 'é', '\ud800']
  for (const name of names) {
    const throttle = createThrottle({ defaults: plain, getScopes: () => [name] })
    await (await throttle.fetch(url)).text()
    assert.equal(throttle.scope(name).stats.inFlight, 0)
  }
  assert.equal(heard.length, names.length)
  assert.equal(new Set(heard).size, 1, heard.join('\n'))
})
