/**
 * A group by Redis whose store, or the way there, fails: is it as fast as before ten seconds later, and was
 * the limit kept meanwhile? A server of our own counts.
 *
 * A group that catches up looks fast. The count therefore starts at the tenth second, and stands beside the
 * one before the fault.
 */
import { spawnSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { listen } from '../../../tests/serve.mjs'
import { freePort, RedisServer, Sentinel } from '../../../tests/shared/server.mjs'
import { member } from './play.mjs'
import { openWay } from './proxy.mjs'

const [SLOTS, RATE, LATENCY] = [4, 20, 200]
const FREE = { delay: 0, slotDelay: 0, jitter: false, concurrency: 100 }
const PACED = { defaults: FREE, scopes: { slots: { concurrency: SLOTS }, rate: { rate: RATE } } }

/** A server that notes what it serves: the scope, who asks, and when, in milliseconds. */
class Site {
  seen = []
  now = 0
  most = 0
  async start() {
    const { url, stop } = await listen((request, response) => {
      const scope = request.url.slice(1)
      this.seen.push({ scope, who: request.headers['x-who'], at: performance.now() })
      if (scope !== 'slots') return response.end('page')
      this.most = Math.max(this.most, ++this.now)
      const timer = setTimeout(() => response.end('page'), LATENCY)
      response.on('close', () => {
        clearTimeout(timer)
        this.now--
      })
    })
    return Object.assign(this, { url: `${url}/`, stop })
  }
  of(scope, from = 0, to = Number.POSITIVE_INFINITY) {
    return this.seen.filter((each) => each.scope === scope && each.at >= from && each.at < to)
  }
  /** The most of a scope within any span of this many milliseconds. */
  within(scope, span) {
    const times = this.of(scope).map(({ at }) => at)
    let [from, most] = [0, 0]
    for (let to = 0; to < times.length; to++) {
      while (times[to] - times[from] >= span) from++
      most = Math.max(most, to - from + 1)
    }
    return most
  }
  /** The longest time without a page for one of them, in seconds. */
  starved(scope, who, from) {
    const times = this.of(scope, from).filter((each) => each.who === who)
    const all = [from, ...times.map(({ at }) => at), performance.now()]
    return Math.max(...all.slice(1).map((at, index) => at - all[index])) / 1000
  }
}

/** This many processes of a group that ask at `port`, once all of them run. */
async function groupOf(
  count,
  site,
  port,
  { options = PACED, client = 'ioredis', atOnce = 8, ...shared } = {},
) {
  const name = `out-${process.pid}`
  const settings = { client, store: port, url: site.url, options, atOnce, name, ...shared }
  const children = Array.from({ length: count }, () => {
    const child = member('caller', settings)
    child.warned = []
    child.isReady = new Promise((resolve) => {
      child.on('message', ({ ready, warning, shared }) => {
        if (ready) resolve()
        if (warning) child.warned.push(warning)
        if (shared) child.shared = shared
      })
    })
    return child
  })
  await Promise.all(children.map(({ isReady }) => isReady))
  return children
}

function kill(children) {
  for (const child of children) child.kill('SIGKILL')
}

/** Pages a second of both scopes, now and for ten seconds. */
async function pace(site) {
  const from = performance.now()
  await sleep(10_000)
  return ['slots', 'rate'].map((scope) => site.of(scope, from).length / 10)
}

/** As fast as before from the tenth second after `fault`, which ends when it returns. */
async function recovers({ port, client }, fault, stop) {
  const site = await new Site().start()
  const children = await groupOf(3, site, port, { client })
  await sleep(6000)
  const before = await pace(site)
  await fault()
  await sleep(10_000)
  const after = await pace(site)
  kill(children)
  site.stop()
  await stop()
  const share = Math.min(...after.map((count, index) => count / before[index]))
  const told = [...new Set(children.flatMap(({ warned }) => warned))]
  const said = `slots ${before[0]} → ${after[0]}/s, rate ${before[1]} → ${after[1]}/s; at most ${site.most} of ${SLOTS} at a time, ${site.within('rate', 1000)} of ${RATE} in a second; warned: ${told}`
  return { isMet: share >= 0.95, said }
}

async function withStore(fault) {
  const store = await new RedisServer(await freePort()).start()
  return recovers(
    store,
    () => fault(store),
    () => store.stop(),
  )
}

const ask = (port, ...command) => spawnSync('redis-cli', ['-p', String(port), ...command])

async function cut() {
  const store = await new RedisServer(await freePort()).start()
  const way = await openWay(store.port)
  const fault = async () => {
    way.cut(6000)
    await sleep(6000)
  }
  const stop = async () => {
    way.stop()
    await store.stop()
  }
  return recovers({ port: way.port }, fault, stop)
}

async function failover() {
  const [masterPort, replicaPort, port] = [await freePort(), await freePort(), await freePort()]
  const master = await new RedisServer(masterPort).start()
  const args = ['--replicaof', '127.0.0.1', String(masterPort)]
  const replica = await new RedisServer(replicaPort, { args }).start()
  const sentinel = await new Sentinel(port, masterPort).start()
  await sentinel.knowsReplica()
  const fault = async () => {
    await master.kill()
    await sentinel.hasPromoted(replicaPort)
  }
  const stop = () => Promise.all([master.stop(), replica.stop(), sentinel.stop()])
  return recovers({ port, client: 'ioredis through Sentinel' }, fault, stop)
}

/** Eight that start before their store: the limit holds, also when it comes. */
async function cold(members) {
  const port = await freePort()
  const site = await new Site().start()
  const children = await groupOf(8, site, port, { offline: 'divide', members })
  await sleep(15_000)
  const [alone, most] = [site.seen.length, site.within('rate', 1000)]
  const store = await new RedisServer(port).start()
  const from = performance.now()
  await sleep(15_000)
  const [slots, rate] = ['slots', 'rate'].map((scope) => site.of(scope, from + 5000).length / 10)
  kill(children)
  site.stop()
  await store.stop()
  const isMet = site.most <= SLOTS && most <= RATE && members > 0 === alone > 0
  const said = `${alone} pages in 15 s without the store; at most ${site.most} of ${SLOTS} at a time, ${most} of ${RATE} in a second (${site.within('rate', 1000)} when it came); then ${slots} and ${rate}/s`
  return { isMet: isMet && slots >= 15 && rate >= 19, said }
}

/** Eighty a minute, of which half are spent when the store goes, for twenty seconds. */
async function quota(offline) {
  const store = await new RedisServer(await freePort()).start()
  const site = await new Site().start()
  const spent = { quota: 80, window: 60_000, rate: 5 }
  const options = { defaults: FREE, scopes: { quota: spent } }
  const children = await groupOf(4, site, store.port, { options, offline })
  while (site.seen.length < 40) await sleep(50)
  await store.kill()
  await sleep(20_000)
  const away = site.seen.length - 40
  await store.start()
  await sleep(22_000)
  kill(children)
  site.stop()
  await store.stop()
  const most = site.within('quota', 57_000)
  return { isMet: most <= 80, said: `${most} in the minute, ${away} of them without the store` }
}

/** The connection by which the writer hears stays open and carries no message. */
async function halfOpen() {
  const store = await new RedisServer(await freePort()).start()
  const way = await openWay(store.port)
  const site = await new Site().start()
  const first = await groupOf(1, site, way.port)
  await sleep(4000)
  const children = [...first, ...(await groupOf(3, site, store.port))]
  await sleep(6000)
  const from = performance.now()
  way.hollow()
  await sleep(25_000)
  const starved = children.map(({ pid }) => site.starved('rate', String(pid), from))
  const writers = first[0].shared?.isWriter
  kill(children)
  way.stop()
  site.stop()
  await store.stop()
  const said = `longest without a page: ${starved.map((each) => each.toFixed(1)).join(', ')} s; the first warned: ${[...new Set(first[0].warned)]}; it leads: ${writers}`
  return { isMet: Math.max(...starved) <= 5, said }
}

/** Each gives whether its bar is met, and what was counted. */
export const OUTAGES = {
  restart: [
    'the store is killed, and back after 4 s',
    () =>
      withStore(async (store) => {
        await store.kill()
        await sleep(4000)
        await store.start()
      }),
  ],
  pause: [
    'CLIENT PAUSE 3000',
    () =>
      withStore(async ({ port }) => {
        ask(port, 'CLIENT', 'PAUSE', '3000')
        await sleep(3000)
      }),
  ],
  stopped: ['SIGSTOP of the store, 5 s', () => withStore((store) => store.stand(5000))],
  cut: ['all connections cut, 6 s', cut],
  failover: ['a Sentinel promotes the replica', failover],
  cold: ['eight start without the store', () => cold()],
  'cold-members': ['eight start without the store, `members: 8`', () => cold(8)],
  quota: ['80 a minute, the store away for 20 s', () => quota()],
  'quota-divide': ['80 a minute, the same with `divide`', () => quota('divide')],
  'half-open': ["the writer's connection that hears carries nothing", halfOpen],
}
