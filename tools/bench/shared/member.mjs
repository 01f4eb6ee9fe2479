/** One process of a group: `member.mjs ROLE SETTINGS`, started by the benches beside it, which end it. */
import { createRequire } from 'node:module'
import { createThrottle } from 'autothrottle'
import { local } from 'autothrottle/local'

const FREE = { delay: 0, slotDelay: 0, jitter: false, concurrency: 1000 }
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

/** The group of this name: by the machine, or through the Redis at the port `store`. */
async function group({ store, client = 'ioredis', ...options }, change = (each) => each) {
  if (store === undefined) return local(options)
  const { redis } = await import('autothrottle/redis')
  const { CLIENTS } = await import('../../../tests/shared/clients.mjs')
  return redis(change(await CLIENTS[client](store)), options)
}

/** Asks for pages without end, one after another, with what `run` makes of a request. */
async function pages(url, who, run) {
  const ask = () => fetch(url, { headers: { 'x-who': who } })
  for (;;) {
    const response = await run(ask).catch(() => undefined)
    await response?.arrayBuffer().catch(() => {})
  }
}

/** Behind nginx: says that it is there, waits for the word, and asks for pages, four at a time. */
async function worker({ way, name, options, who, store, skew, url, rate, steps = [], loops = 4 }) {
  const wall = Date.now
  Date.now = () => wall() + skew
  let started = Number.POSITIVE_INFINITY
  /** Puts the clock that the store reports ahead by the last step's amount: no code sets a clock here. */
  const withClock = (client) => {
    const ask = client.eval.bind(client)
    client.eval = async (script, ...args) => {
      const answer = await ask(script, ...args)
      if (!script.includes('return {time[1], time[2]')) return answer
      const [, ahead] = steps.findLast(([at]) => wall() >= started + at * 1000) ?? [0, 0]
      return [String(Number(answer[0]) + ahead), ...answer.slice(1)]
    }
    return client
  }
  let run
  if (way === 'bottleneck') {
    const { default: Bottleneck } = await import('bottleneck')
    const { CLIENTS } = await import('../../../tests/shared/clients.mjs')
    const client = CLIENTS.ioredis(store)
    const connection = new Bottleneck.IORedisConnection({ client, Redis: client.constructor })
    const limiter = new Bottleneck({ id: name, connection, minTime: 1000 / rate })
    run = (work) => limiter.schedule(work)
  } else {
    const shared = way === 'alone' ? {} : { shared: await group({ name, store }, withClock) }
    const throttle = createThrottle({ ...options, ...shared })
    setInterval(() => process.send?.({ isWriter: throttle.stats().ageMs === 0 }), 200).unref()
    run = (work) => throttle.run({ scopes: 'site' }, work)
  }
  process.send({ isReady: true })
  await new Promise((resolve) => process.once('message', resolve))
  started = wall()
  for (let loop = 0; loop < loops; loop++) pages(url, who, run)
}

/** In an outage: asks for each scope of its options, says whether it decides and what it was warned of. */
async function caller({ url, options, atOnce, ...told }) {
  const throttle = createThrottle({ ...options, shared: await group(told) })
  process.send?.({ ready: true })
  throttle.addEventListener('warning', ({ code }) => process.send?.({ warning: code }))
  throttle.addEventListener('shared', ({ shared }) => process.send?.({ shared }))
  for (const scope of Object.keys(options.scopes))
    for (let loop = 0; loop < atOnce; loop++)
      pages(`${url}${scope}`, String(process.pid), (ask) => throttle.run({ scopes: scope }, ask))
}

/**
 * Asks for permits as fast as they come, for this many milliseconds; says how many, and how long one took.
 * The first two seconds are not counted: there the runtime compiles, and that is most of what they cost.
 */
async function asks({ name, index, atOnce, ms, store }) {
  const shared = await group({ name, store })
  const throttle = createThrottle({ maxInFlight: 10_000, defaults: FREE, shared })
  // The first of them writes.
  await sleep(index === 0 ? 0 : 300)
  const first = await throttle.acquire({ scopes: 'x' })
  first.settle()
  await sleep(index === 0 ? 1000 : 700)
  const took = []
  const from = performance.now() + 2000
  let before
  const loop = async () => {
    while (performance.now() < from + ms) {
      // A program that never comes to its event loop hears no other: the writer must not ask without end.
      await new Promise((resolve) => setImmediate(resolve))
      const at = performance.now()
      const permit = await throttle.acquire({ scopes: 'x' })
      if (at >= from) {
        before ??= process.cpuUsage()
        took.push(performance.now() - at)
      }
      permit.settle({ status: 200, latency: 1 })
    }
  }
  await Promise.all(Array.from({ length: atOnce }, loop))
  took.sort((a, b) => a - b)
  const isWriter = throttle.stats().ageMs === 0
  const { user, system } = process.cpuUsage(before)
  process.send({ count: took.length, medianMs: took[took.length >> 1], isWriter, micros: user + system })
  // A process that asks it would lose it.
  setInterval(() => {}, 1000)
}

/** A call of each library that resolves with leave to send: what gives it back. */
const COSTS = {
  async autothrottle({ name, store, rate }) {
    const shared = await group({ name, store })
    const { jitter, concurrency } = FREE
    const defaults = rate > 0 ? { rate, jitter, concurrency } : FREE
    const throttle = createThrottle({ maxInFlight: 10_000, defaults, shared })
    const ask = async () => (await throttle.acquire({ scopes: 'x' })).settle({ status: 200, latency: 1 })
    return Object.assign(ask, { isWriter: () => throttle.stats().ageMs === 0 })
  },
  async bottleneck({ name, store, rate }) {
    const { default: Bottleneck } = await import('bottleneck')
    const { CLIENTS } = await import('../../../tests/shared/clients.mjs')
    const client = CLIENTS.ioredis(store)
    const connection = new Bottleneck.IORedisConnection({ client, Redis: client.constructor })
    const minTime = rate > 0 ? 1000 / rate : 0
    const limiter = new Bottleneck({ id: name, connection, minTime, maxConcurrent: 1000 })
    return () => limiter.schedule(async () => {})
  },
  async 'rate-limiter-flexible'({ name, store, rate }) {
    const require = createRequire(import.meta.url)
    const { RateLimiterQueue, RateLimiterRedis } = require('rate-limiter-flexible')
    const { CLIENTS } = await import('../../../tests/shared/clients.mjs')
    const storeClient = CLIENTS.ioredis(store)
    const points = rate > 0 ? rate : 1e9
    const limiter = new RateLimiterRedis({ storeClient, keyPrefix: name, points, duration: 1 })
    const queue = new RateLimiterQueue(limiter)
    return rate > 0 ? () => queue.removeTokens(1, 'x') : () => limiter.consume('x')
  },
}

/** On the word of its parent it asks for permits, and says how many came and what they cost. */
async function costs({ library, atOnce, ms, warmMs, ...told }) {
  const ask = await (COSTS[library] ?? COSTS.autothrottle)(told)
  await ask()
  const go = new Promise((resolve) => process.once('message', resolve))
  process.send('ready')
  await go
  const from = performance.now() + warmMs
  let [count, before] = [0]
  const loop = async () => {
    while (performance.now() < from + ms) {
      await new Promise((resolve) => setImmediate(resolve))
      await ask()
      if (performance.now() < from) continue
      before ??= process.cpuUsage()
      count++
    }
  }
  await Promise.all(Array.from({ length: atOnce }, loop))
  const { user, system } = process.cpuUsage(before)
  process.send({ count, micros: user + system, isWriter: ask.isWriter?.() ?? false })
  setInterval(() => {}, 1000)
}

/**
 * On the word of its parent it asks for permits, and says when each of a few came; then it holds them. Before
 * that it learns of `hosts`.
 */
async function probe({ name, store, folder, scopes, hosts = 0 }) {
  const shared = await group({ name, store, ...(folder && { folder }) })
  const throttle = createThrottle({ maxInFlight: 10_000, defaults: FREE, scopes, shared })
  await learn(throttle, hosts)
  process.on('message', ({ scope, count, then }) => {
    const ask = async () => {
      const permit = await throttle.acquire({ scopes: scope }).catch(({ code }) => process.send({ code }))
      if (permit === true) return
      if (count < 1000) process.send({ scope, at: Date.now() })
      if (then !== 'hold') permit.settle({ status: 200, latency: 1 })
      if (then === 'again') await ask()
    }
    for (let index = 0; index < count; index++) ask()
  })
}

/** Has each of these hosts answer once. */
async function learn(throttle, hosts) {
  for (let host = 0; host < hosts; host += 500) {
    const some = Array.from({ length: Math.min(500, hosts - host) }, (_, index) => `h${host + index}.example`)
    const permits = await Promise.all(some.map((scopes) => throttle.acquire({ scopes })))
    for (const permit of permits) permit.settle({ status: 200, latency: 300 })
  }
}

/**
 * One of two processes of `takeover`. The first learns of many hosts; the other asks for one thing all the
 * time, and says when it is given, and how many hosts it has heard of.
 */
async function takeover({ name, store, hosts }) {
  const shared = await group({ name, store })
  const defaults = { ...FREE, autothrottle: true }
  const throttle = createThrottle({ maxInFlight: 100_000, defaults, shared })
  if (hosts === 0) {
    process.on('message', () => process.send({ heard: Object.keys(throttle.snapshot().scopes).length }))
    for (;;) {
      ;(await throttle.acquire({ scopes: 'probe' })).settle({ status: 200 })
      process.send({ given: Date.now() })
      await sleep(20)
    }
  }
  await learn(throttle, hosts)
  // News of a refusal goes out at once, with all that is known.
  const tell = async () => (await throttle.acquire({ scopes: 'bad' })).settle({ status: 503 })
  setInterval(() => tell().catch(() => {}), 5000)
  await tell()
  process.send({ knows: hosts })
}

process.on('disconnect', () => process.exit())
const [, , role, settings] = process.argv
await { worker, caller, asks, costs, probe, takeover }[role](JSON.parse(settings))
