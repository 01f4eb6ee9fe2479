/** Scopes by hooks and helpers: the draft's groupings, costs, and hooks that fail. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  addScope,
  byDomainHierarchy,
  byEndpoint,
  byHost,
  createThrottle,
  ManagerError,
  type ThrottleOptions,
} from 'autothrottle'
import { byDomainHierarchy as byKnownHierarchy, byRegistrableDomain } from 'autothrottle/domains'
import { FakeClock } from 'autothrottle/testing'

function make(options: ThrottleOptions) {
  const clock = new FakeClock()
  const calls: [string, number][] = []
  const fetch = async (input: RequestInfo | URL) => {
    calls.push([String(input), clock.now()])
    return new Response('ok')
  }
  const defaults = { delay: 1000, slotDelay: 0, jitter: false } as const
  return { clock, calls, throttle: createThrottle({ clock, fetch, defaults, ...options }) }
}

test('the helpers', () => {
  const at = (url: string) => ({ url })
  assert.equal(byHost(at('https://Books.Example.com:443/x')), 'books.example.com')
  assert.equal(byEndpoint()(at('https://a.example/fast?x=1')), 'a.example/fast')
  assert.equal(byEndpoint('b.example')(at('https://a.example/fast')), 'a.example')
  const hierarchy = byDomainHierarchy()
  assert.deepEqual(hierarchy(at('https://a.books.toscrape.com/')), [
    'a.books.toscrape.com',
    'books.toscrape.com',
    'toscrape.com',
  ])
  assert.deepEqual(hierarchy(at('https://toscrape.com/')), ['toscrape.com'])
  assert.deepEqual(hierarchy(at('https://www.example.co.uk/')), ['www.example.co.uk', 'example.co.uk'])
  assert.deepEqual(hierarchy(at('http://127.0.0.1:8080/')), ['127.0.0.1:8080'])
  assert.deepEqual(hierarchy(at('http://[::1]:8080/')), ['[::1]:8080'])
  assert.deepEqual(hierarchy(at('http://localhost/')), ['localhost'])
  assert.equal(byRegistrableDomain(at('https://books.example.co.uk/')), 'example.co.uk')
  assert.equal(byRegistrableDomain(at('http://localhost:3000/')), 'localhost:3000')
  assert.deepEqual(byKnownHierarchy(at('https://x.y.example.co.uk/')), [
    'x.y.example.co.uk',
    'y.example.co.uk',
    'example.co.uk',
  ])
  assert.deepEqual(addScope('a', 'b'), ['a', 'b'])
  assert.deepEqual(addScope(['a', 'b'], 'b'), ['a', 'b'])
  assert.deepEqual(addScope(['a'], 'cost', 5), { a: 1, cost: 5 })
  assert.deepEqual(addScope({ a: 2 }, 'b'), { a: 2, b: 1 })
  // What makes a function is taken for what that gives.
  assert.throws(() => addScope(byEndpoint('a') as never, 'b'), /want names as text; got a function/)
})

test('a hook names the scopes, once per request, also for run and acquire, and a request may overrule it', async () => {
  const asked: string[] = []
  const { clock, calls, throttle } = make({
    getScopes: async (request) => {
      asked.push(`${request.method} ${request.url} ${request.headers.get('x-tier') ?? '-'}`)
      return addScope(byHost(request), 'all')
    },
    scopes: { all: { delay: 300 } },
  })
  const all = Promise.all([
    throttle.fetch('https://a.example/', { headers: { 'x-tier': 'gold' } }),
    throttle.fetch('https://b.example/', { method: 'post' }),
    throttle.run('https://c.example/', () => 0),
    throttle.fetch('https://d.example/', { throttle: { scopes: 'own' } }),
  ])
  await clock.advance(3000)
  await all
  assert.deepEqual(asked, [
    'GET https://a.example/ gold',
    'POST https://b.example/ -',
    'GET https://c.example/ -',
  ])
  assert.deepEqual(calls, [
    ['https://d.example/', 0],
    ['https://a.example/', 0],
    ['https://b.example/', 300],
  ])
  assert.throws(() => throttle.peek('https://a.example/'), TypeError)
  assert.equal(throttle.peek({ scopes: 'all' }).scope, undefined)
})

test('a hook that throws, or gives what makes no sense, fails its request only', async () => {
  const { clock, throttle } = make({
    getScopes: (request) => {
      if (request.url.includes('boom')) throw new RangeError('boom')
      if (request.url.includes('odd')) return { a: -1 }
      if (request.url.includes('none')) return [] as string[]
      return byHost(request)
    },
  })
  const boom = await throttle.fetch('https://boom.example/').catch((error: unknown) => error)
  assert.ok(boom instanceof ManagerError && boom.cause instanceof RangeError && boom.hook === 'getScopes')
  await assert.rejects(
    throttle.fetch('https://odd.example/'),
    /gave {"a":-1} for https:\/\/odd\.example\/; want a name/,
  )
  await assert.rejects(throttle.fetch('https://none.example/'), ManagerError)
  const fine = throttle.fetch('https://fine.example/')
  await clock.advance(10)
  assert.equal((await fine).status, 200)
})
