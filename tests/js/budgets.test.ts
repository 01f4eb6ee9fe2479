/**
 * Servers with several budgets through `throttle.fetch`: what an answer says of one is for the requests that
 * spend from it. In virtual time, and over loopback. `tests/native/budgets.rs` has whole servers.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createThrottle, type Throttle, type ThrottleOptions } from '../../js/index.js'
import { FakeClock } from '../../js/testing.js'
import { serve } from './serve.js'
import { throttles } from './shared/throttles.js'

/** GitHub with three resources: each with its number an hour or a minute, from its first request on. */
class GitHub {
  readonly refused: string[] = []
  readonly served: string[] = []
  readonly #budgets = {
    core: { limit: 5000, window: 3_600_000, used: 0, until: 0 },
    search: { limit: 30, window: 60_000, used: 0, until: 0 },
    code_search: { limit: 10, window: 60_000, used: 0, until: 0 },
  }
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  answer(url: string): { status: number; headers: Record<string, string> } {
    const path = new URL(url, 'https://api.github.com').pathname
    const name = path === '/search/code' ? 'code_search' : path.startsWith('/search/') ? 'search' : 'core'
    const budget = this.#budgets[name]
    const now = this.#now()
    if (now >= budget.until) Object.assign(budget, { used: 0, until: now + budget.window })
    const isServed = budget.used < budget.limit
    if (isServed) budget.used++
    const list = isServed ? this.served : this.refused
    list.push(path)
    const headers = {
      'x-ratelimit-limit': String(budget.limit),
      'x-ratelimit-remaining': String(budget.limit - budget.used),
      'x-ratelimit-reset': String(Math.ceil((budget.until - now) / 1000)),
      'x-ratelimit-resource': name,
    }
    return { status: isServed ? 200 : 403, headers }
  }
}

function githubOf(options: ThrottleOptions = {}) {
  const clock = new FakeClock()
  const server = new GitHub(() => clock.now())
  const sent: [string, number][] = []
  const fetch = async (input: RequestInfo | URL) => {
    const url = String(input)
    sent.push([new URL(url).pathname, clock.now()])
    await new Promise<void>((done) => clock.setTimeout(done, 50))
    const { status, headers } = server.answer(url)
    return new Response('', { status, headers })
  }
  const defaults = { concurrency: 8, delay: 0 }
  const throttle = createThrottle({ clock, fetch: fetch as typeof globalThis.fetch, defaults, ...options })
  const get = (path: string, init?: RequestInit) => throttle.fetch(`https://api.github.com${path}`, init)
  return { clock, server, sent, throttle, get }
}

test('an empty search does not hold the repositories', async () => {
  const { clock, server, sent, throttle, get } = githubOf()
  const all: Promise<Response>[] = []
  for (let n = 0; n < 200; n++) {
    all.push(get(n % 4 === 0 ? `/search/issues?q=${n}` : `/repos/owner${n % 5}/name${n}/issues`))
  }
  await clock.advance(5000)
  const { budgets, reason, waiting } = throttle.scope('api.github.com').stats
  assert.deepEqual([server.refused, server.served.length], [[], 180], '30 searches, and all the others')
  assert.deepEqual([waiting, reason], [20, 'quota'])
  assert.equal(budgets?.search?.waiting, 20)
  assert.equal(budgets?.search?.quotaLeft, 0)
  assert.ok((budgets?.search?.recoversAt ?? 0) > 55_000)
  assert.ok((budgets?.core?.quotaLeft ?? 0) > 4800)
  assert.deepEqual(Object.keys(throttle.stats().scopes), ['api.github.com'], 'budgets are inside')
  await clock.advance(120_000)
  await Promise.all(all)
  assert.deepEqual([server.refused, server.served.length], [[], 200])
  const repos = sent.filter(([path]) => path.startsWith('/repos')).map(([, at]) => at)
  assert.ok(Math.max(...repos) < 2500, 'none of them waited for a search')
})

/** The assumption is false: no field names a budget. Then all of the host is held, as before. */
test('requests of several scopes have one budget: what is used up holds them all, and none is refused', async () => {
  const getScopes = () => ['api.github.com', 'all']
  const { clock, server, throttle, get } = githubOf({ getScopes })
  const all = [...Array.from({ length: 12 }, () => '/search/code'), '/user', '/user'].map((path) => get(path))
  await clock.advance(59_000)
  assert.deepEqual([server.refused.length, server.served.length], [0, 10], 'core waits for code_search')
  await clock.advance(61_000)
  await Promise.all(all)
  assert.deepEqual([server.refused.length, server.served.length], [0, 14])
  assert.deepEqual(throttle.stats().scopes['api.github.com']?.budgets, undefined)
})

test('processes that share a limit have one budget: what is used up holds them all', async () => {
  let [github, sent]: [GitHub | undefined, number] = [undefined, 0]
  const fetch = async (input: RequestInfo | URL) => {
    sent++
    const { status, headers } = github!.answer(String(input))
    return new Response('', { status, headers })
  }
  const defaults = { concurrency: 1, delay: 0 }
  const { world, all } = throttles(2, { fetch: fetch as typeof globalThis.fetch, defaults, warnings: false })
  github = new GitHub(() => world.now)
  const ask = (throttle: Throttle, path: string) => throttle.fetch(`https://api.github.com${path}`)
  await world.run(1000)
  for (let turn = 0; turn < 5; turn++) for (const each of all) void ask(each, '/search/code')
  await world.run(5000)
  assert.deepEqual([sent, github.refused.length], [10, 0])
  for (const each of all) void ask(each, '/user')
  await world.run(30_000)
  assert.equal(sent, 10, 'core waits for code_search, in each process')
  await world.run(60_000)
  assert.deepEqual([sent, github.refused.length], [12, 0])
})

test('a server that names no budget has one', async () => {
  const clock = new FakeClock()
  const fetch = async () =>
    new Response('', { headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '60' } })
  const throttle = createThrottle({ clock, fetch, delay: 0, jitter: false })
  await throttle.fetch('https://api.example/a')
  assert.equal(throttle.peek('https://api.example/b').at, 60_000)
  assert.equal(throttle.scope('api.example').stats.budgets, undefined)
})

test('methods of one path are routes of their own', async () => {
  const clock = new FakeClock()
  const fetch = async (_: RequestInfo | URL, init: RequestInit = {}) => {
    const isPost = init.method === 'POST'
    const headers = {
      'x-ratelimit-bucket': isPost ? 'writes' : 'reads',
      'x-ratelimit-remaining': isPost ? '0' : '4',
      'x-ratelimit-reset-after': '9',
    }
    return new Response('', { headers })
  }
  const throttle = createThrottle({ clock, fetch, defaults: { delay: 0, concurrency: 4 } })
  const url = 'https://discord.com/api/v10/channels/123/messages'
  const ask = (method: string) => throttle.fetch(url, { method })
  for (const method of ['GET', 'POST', 'GET']) {
    const done = ask(method)
    await clock.advance(1)
    await done
  }
  let late = false
  const second = ask('POST').then(() => {
    late = true
  })
  const reads = ask('GET')
  await clock.advance(1000)
  await reads
  assert.equal(late, false)
  assert.equal(throttle.scope('discord.com').stats.budgets?.['writes/123']?.waiting, 1)
  await clock.advance(9000)
  await second
})

test('what was learned of routes is in the snapshot', async () => {
  const first = githubOf()
  const all = ['/search/issues', '/user', '/search/issues', '/user'].map((path) => first.get(path))
  await first.clock.advance(2000)
  await Promise.all(all)
  const snapshot = JSON.parse(JSON.stringify(first.throttle.snapshot()))
  const next = githubOf({ snapshot })
  const again = Array.from({ length: 6 }, () => next.get('/user'))
  await next.clock.advance(1)
  assert.equal(next.sent.length, 6, 'a route that is known is not tried one by one')
  await next.clock.advance(1000)
  await Promise.all(again)
})

test('a hold of a budget is an event with its name, and an abort gives its place back', async () => {
  const { clock, throttle, get } = githubOf()
  const holds: string[] = []
  throttle.addEventListener('hold', ({ scope }) => holds.push(scope))
  const all = Array.from({ length: 11 }, () => get('/search/code').catch(() => undefined))
  const controller = new AbortController()
  const aborted = get('/search/code', { signal: controller.signal })
  await clock.advance(3000)
  assert.deepEqual(new Set(holds), new Set(['api.github.com\u{a0}#code_search']))
  controller.abort()
  await assert.rejects(aborted, { name: 'AbortError' })
  assert.equal(throttle.scope('api.github.com').stats.budgets?.code_search?.waiting, 1)
  await clock.advance(120_000)
  await Promise.all(all)
  await throttle.close()
})

/**
 * Discord: forty routes in twelve buckets. What is not in the window is refused. Windows outlast the test: no
 * request waits for one, except those beyond the first bucket's limit.
 */
class Discord {
  refused = 0
  served = 0
  readonly #used: number[] = Array(12).fill(0)

  answer(url: string): { status: number; headers: Record<string, string> } {
    const bucket = Number(url.slice(url.lastIndexOf('/r') + 2)) % 12
    const limit = bucket === 0 ? 12 : 1000
    const used = ++this.#used[bucket]!
    if (used <= limit) this.served++
    else this.refused++
    const headers = {
      'x-ratelimit-limit': String(limit),
      'x-ratelimit-remaining': String(Math.max(0, limit - used)),
      'x-ratelimit-reset-after': '600.000',
      'x-ratelimit-bucket': `b${bucket}`,
    }
    return { status: used <= limit ? 200 : 429, headers }
  }
}

test('over loopback: forty routes of twelve buckets; what is used up holds its own alone', async () => {
  const server = new Discord()
  const host = await serve((request, response) => {
    const { status, headers } = server.answer(request.url ?? '/')
    response.writeHead(status, headers).end()
  })
  const throttle = createThrottle({ defaults: { concurrency: 16, delay: 0 } })
  try {
    const controller = new AbortController()
    const all: Promise<unknown>[] = []
    const of: Promise<unknown>[] = []
    for (let turn = 0; turn < 6; turn++)
      for (let route = 0; route < 40; route++) {
        const url = `${host}/api/v10/channels/100001/r${route}`
        const asked = throttle.fetch(url, { signal: controller.signal }).then((answer) => answer.text())
        if (route % 12 === 0) of.push(asked.catch(() => undefined))
        else all.push(asked)
      }
    await Promise.all(all)
    while (server.served < all.length + 12) await new Promise((done) => setImmediate(done))
    assert.equal(throttle.scope(new URL(host).host).stats.budgets?.['b0/100001']?.waiting, of.length - 12)
    controller.abort()
    await Promise.all(of)
    assert.deepEqual([server.refused, server.served], [0, all.length + 12])
  } finally {
    await throttle.close()
  }
})
