/**
 * The throttle hears every client: real ones against a loopback server that refuses with `Retry-After`, by
 * result and by error. What `run` and `wrap` hear of one is a step of backoff and a hold; what they hear of a
 * good answer is its status.
 */
import assert from 'node:assert/strict'
import http, { type IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { Octokit } from '@octokit/core'
import {
  createThrottle,
  type PermitOutcome,
  type SettleEvent,
  type Target,
  type ThrottleOptions,
} from 'autothrottle'
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
    const { throttle } = make()
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
