/**
 * What SECURITY.md promises: one place sees each URL before it is sent, and a scope's name is never part of a
 * request. Redirects and robots.txt lead elsewhere than the first URL.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { byHost, createThrottle, DisallowedError, ManagerError, type ScopeRequest } from 'autothrottle'
import { rules } from 'autothrottle/robots'
import { serve } from './serve.js'

const free = { delay: 0, slotDelay: 0, jitter: false } as const
const INSIDE = /^(?:localhost|127\.|10\.|169\.254\.|\[)/

/** A web in which `pages` redirect: what was sent to it, and a throttle with the guard of SECURITY.md. */
function web(pages: Record<string, string>, robots = false) {
  const sent: string[] = []
  const seen: string[] = []
  const fetch = async (input: RequestInfo | URL, init?: RequestInit) => {
    const { url, redirect } = new Request(input, init)
    assert.equal(redirect, 'manual', 'nobody follows unseen')
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
    defaults: free,
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
    const throttle = createThrottle({ defaults: free, getScopes: () => [name] })
    await (await throttle.fetch(url)).text()
    assert.equal(throttle.scope(name).stats.inFlight, 0)
  }
  assert.equal(heard.length, names.length)
  assert.equal(new Set(heard).size, 1, heard.join('\n'))
})
