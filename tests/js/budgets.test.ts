/**
 * Servers with several budgets through `throttle.fetch`: what an answer says of one is for the requests that
 * spend from it. `tests/native/budgets.rs` has whole servers.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ConfigError,
  CostExceedsQuotaError,
  createThrottle,
  type Throttle,
  type ThrottleOptions,
} from '../../js/index.js'
import { FakeClock } from '../../js/testing.js'
import { throttles } from './shared/world.js'

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
test('the answer that first names a budget holds its own URL', async () => {
  const clock = new FakeClock()
  const sent: number[] = []
  const headers = { 'retry-after': '6', 'x-ratelimit-resource': 'core', 'x-ratelimit-remaining': '0' }
  const fetch = async () => {
    sent.push(clock.now())
    return new Response(null, sent.length > 1 ? {} : { status: 429, headers })
  }
  const throttle = createThrottle({ clock, fetch, defaults: { delay: 0 } })
  await throttle.fetch('https://api.example/a')
  const rest = Promise.all([0, 1, 2].map(() => throttle.fetch('https://api.example/a')))
  await clock.advance(5900)
  assert.equal(sent.length, 1)
  await clock.advance(10_000)
  await rest
  await throttle.close()
})

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

test('processes that share a limit know the budgets of their server: one that is used up holds no other', async () => {
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
  assert.equal(sent, 12, 'core does not wait for code_search, in any process')
  for (const each of all) void ask(each, '/search/code')
  await world.run(5000)
  assert.deepEqual([sent, github.refused.length], [12, 0], 'and code_search waits in each')
  await world.run(60_000)
  assert.deepEqual([sent, github.refused.length], [14, 0])
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

/** Costs of requests: a rate that counts them, and those that are known only after the answer. */

const TOKENS = { limit: 30_000, window: 60_000, burst: 30_000 }

function throttleOf(options: object) {
  const clock = new FakeClock()
  return { clock, throttle: createThrottle({ clock, jitter: false, ...options }) }
}

/** When a request of this cost leaves. */
async function leaves(made: ReturnType<typeof throttleOf>, scopes: Record<string, number>): Promise<number> {
  const waiting = made.throttle.acquire({ scopes })
  await made.clock.advance(120_000)
  const permit = await waiting
  permit.settle()
  return permit.sentAt
}

test('a rate is a bucket of cost that refills evenly', async () => {
  const made = throttleOf({ scopes: { tokens: { rate: TOKENS } } })
  const { throttle } = made
  throttle.acquire({ scopes: { tokens: 20_000 } })
  throttle.acquire({ scopes: { tokens: 10_000 } })
  assert.equal(throttle.peek({ scopes: { tokens: 15_000 } }).at, 30_000)
  assert.equal(throttle.peek({ scopes: { tokens: 0 } }).reason, undefined, 'what costs nothing never waits')
  await assert.rejects(throttle.acquire({ scopes: { tokens: 30_001 } }), (error: CostExceedsQuotaError) => {
    assert.ok(error instanceof CostExceedsQuotaError)
    assert.equal(error.path, 'scopes.tokens.rate')
    return true
  })
  assert.equal(await leaves(made, { tokens: 500 }), 1000)
})

for (const when of ['before', 'after'] as const)
  test(`a cost is corrected ${when} the permit is settled`, async () => {
    const made = throttleOf({ scopes: { tokens: { rate: TOKENS }, calls: { delay: 0 } } })
    const { throttle } = made
    const permit = await throttle.acquire({ scopes: { tokens: 1000, calls: 1 } })
    if (when === 'after') permit.settle({ status: 200 })
    const { adjust } = permit
    adjust({ tokens: 20_000 })
    adjust({ tokens: 31_000 })
    assert.equal(throttle.peek({ scopes: { tokens: 500 } }).at, 3000, '1500 are missing')
    if (when === 'before') permit.settle({ status: 200, cost: { tokens: 30_000 } })
    else adjust({ tokens: 30_000 })
    assert.equal(throttle.peek({ scopes: { tokens: 500 } }).at, 1000, 'told twice, counted once')
    adjust({ tokens: 0 })
    assert.equal(throttle.peek({ scopes: { tokens: 30_000 } }).reason, undefined)
    assert.throws(() => adjust({ other: 1 }), ConfigError)
    assert.throws(() => adjust({ tokens: -1 }), ConfigError)
    assert.throws(() => adjust(1), /cost: want a map/)
  })

test('a settled cost is where a later correction begins', async () => {
  const { throttle } = throttleOf({ scopes: { tokens: { rate: TOKENS } } })
  const permit = await throttle.acquire({ scopes: { tokens: 1000 } })
  permit.settle({ status: 200, cost: 20_000 })
  permit.adjust(25_000)
  assert.equal(throttle.peek({ scopes: { tokens: 5000 } }).reason, undefined)
  assert.equal(throttle.peek({ scopes: { tokens: 5001 } }).reason, 'rate')
})

test('a cost that `fetch` sent with is corrected through its permit', async () => {
  const answers = [429, 200]
  const made = throttleOf({
    retry: { limit: 1, statusCodes: [429] },
    getScopes: () => ({ tokens: 1000 }),
    fetch: async () => new Response(null, { status: answers.shift()! }),
    scopes: { tokens: { rate: TOKENS, backoff: { minDelay: 1 } } },
  })
  const { throttle, clock } = made
  const run = throttle.run('https://a.example/', async ({ fetch, adjust }) => {
    const { status } = await fetch('https://a.example/')
    adjust({ tokens: 29_000 })
    return status
  })
  await clock.advance(5000)
  assert.equal(await run, 200)
  assert.equal(answers.length, 0)
  const { at } = throttle.peek({ scopes: { tokens: 30_000 } })
  assert.ok(at >= 58_000, `29,000 are there again 58 s later: ${at}`)
})
