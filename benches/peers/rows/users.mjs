/**
 * What users feel, in virtual time: servers in this process, the same for all, and each client as its users
 * would write it. *Told* ones know the limit; *untold* ones find out. A refused client tries again, after
 * what the server asks for or else after a second, as people do.
 */
import { inChild } from '../child.mjs'

export const title = 'What users feel'
export const says =
  'Virtual time; refused are 429s. Hidden: 60 URLs of one host that takes 5 a second. Hosts: 1,000 URLs of 50 hosts, each good for 5 a second; one needs 3 s an answer, one refuses all for 20 s; "others" is when the last of the other 48 was done, "fairness" Jain\'s index of the pages a second of these (1: all the same). Everybody gets all pages in the end. Whoever is told knows that 5 a second, 5 at once are taken, and the peers ask again after a second. Our backoff asks the one that refuses less and less often, and comes back a step a minute, so it is done with it later; "half a second" has `backoff: { minDelay: 500, maxDelay: 500, window: 500 }` and 16 slots. Headers: 250 calls of an API of 100 a minute that says so in X-RateLimit fields.'
export const columns = [
  'hidden: s',
  'refused',
  'hosts: s',
  'others: s',
  'fairness',
  'refused',
  'headers: s',
  'refused',
]

const CLOCK = new URL('../clock.mjs', import.meta.url).href

const CLIENTS = [
  'autothrottle, untold',
  'autothrottle, told',
  'autothrottle, told, half a second',
  'p-limit, 8 at a time',
  'p-queue, told',
  'p-throttle, told',
  'bottleneck, told',
  'limiter, told',
]

export function run() {
  return CLIENTS.map((client) => {
    const cell = (task) => inChild(import.meta.url, [client, task], 60_000, ['--import', CLOCK])
    const [hidden, hosts, headers] = ['hidden', 'hosts', 'headers'].map(cell)
    for (const got of [hidden, hosts, headers]) if (typeof got === 'string') return [client, got]
    const s = (ms) => (ms / 1000).toFixed(1)
    const [one, many, api] = [hidden, hosts, headers]
    const hostsCells = [s(many.ms), s(many.others), many.fairness.toFixed(2), many.refused]
    return [client, s(one.ms), one.refused, ...hostsCells, s(api.ms), api.refused]
  })
}

/** A server's host: a bucket of 5 a second that holds 5. */
class Bucket {
  tokens = 5
  at = 0
  constructor(elapsed, { rate = 5, depth = 5, latency = 100, refusesUntil = 0 } = {}) {
    Object.assign(this, { elapsed, rate, depth, latency, refusesUntil })
  }
  answer() {
    const now = this.elapsed()
    this.tokens = Math.min(this.depth, this.tokens + ((now - this.at) * this.rate) / 1000)
    this.at = now
    if (now < this.refusesUntil || this.tokens < 1) return new Response('slow down', { status: 429 })
    this.tokens--
    return new Response('page')
  }
}

/** An API with a fixed window that says what is left of it. */
class Api {
  used = 0
  window = 0
  latency = 100
  constructor(elapsed) {
    this.elapsed = elapsed
  }
  answer() {
    const window = Math.floor(this.elapsed() / 60_000)
    if (window !== this.window) this.used = 0
    this.window = window
    const isFull = this.used >= 100
    if (!isFull) this.used++
    const reset = Math.ceil(60 - (this.elapsed() % 60_000) / 1000)
    const headers = {
      'x-ratelimit-limit': '100',
      'x-ratelimit-remaining': String(100 - this.used),
      'x-ratelimit-reset': String(reset),
      ...(isFull ? { 'retry-after': String(reset) } : {}),
    }
    return new Response(isFull ? 'wait' : '{}', { status: isFull ? 429 : 200, headers })
  }
}

export async function child(client, task) {
  const { elapsed, play, sleep } = await import('../clock.mjs')
  const servers = new Map()
  let urls
  if (task === 'hidden') {
    servers.set('a.example', new Bucket(elapsed))
    urls = Array.from({ length: 60 }, (_, index) => `https://a.example/${index}`)
  } else if (task === 'headers') {
    servers.set('api.example', new Api(elapsed))
    urls = Array.from({ length: 250 }, (_, index) => `https://api.example/${index}`)
  } else {
    const odd = [{ latency: 3000 }, { refusesUntil: 20_000 }]
    for (let host = 0; host < 50; host++) servers.set(`h${host}.example`, new Bucket(elapsed, odd[host]))
    urls = Array.from({ length: 1000 }, (_, index) => `https://h${Math.floor(index / 20)}.example/${index}`)
  }
  let refused = 0
  const fetch = async (input) => {
    const server = servers.get(new URL(input).host)
    await sleep(server.latency)
    const response = server.answer()
    if (response.status === 429) refused++
    return response
  }
  const done = new Map()
  const get = await clientOf(client, task, fetch, sleep)
  const page = async (url) => {
    const response = await get(url)
    if (response.status !== 200) throw new Error(`${url}: ${response.status}`)
    done.set(url, elapsed())
  }
  await play(Promise.all(urls.map(page)))
  const others = [...done].filter(([url]) => !/\/\/h[01]\./.test(url))
  const last = new Map()
  for (const [url, at] of others) last.set(new URL(url).host, Math.max(at, last.get(new URL(url).host) ?? 0))
  const times = [...last.values()]
  return { ms: Math.max(...done.values()), others: Math.max(...times), fairness: fairness(times), refused }
}

/** Jain's index, (Σx)² ÷ nΣx², of the rates of hosts that were done at these times. */
function fairness(times) {
  const rates = times.map((ms) => 1 / ms)
  const sum = rates.reduce((all, rate) => all + rate, 0)
  return sum ** 2 / (rates.length * rates.reduce((all, rate) => all + rate ** 2, 0))
}

/** How a program of this client gets a page, refusals and all. */
async function clientOf(client, task, fetch, sleep) {
  const perMinute = task === 'headers'
  const [name, way, haste] = client.split(', ')
  if (name === 'autothrottle') {
    const { createThrottle } = await import('../../../dist/index.js')
    const told = { rate: perMinute ? { limit: 100, per: 60_000, burst: 100 } : { limit: 5, burst: 5 } }
    const untold = perMinute ? { delay: 0, slotDelay: 0, concurrency: 8 } : { rampup: true }
    const half = { concurrency: 16, backoff: { minDelay: 500, maxDelay: 500, window: 500 } }
    const hasty = haste && !perMinute ? half : {}
    const defaults = way === 'told' ? { ...told, ...hasty } : untold
    const throttle = createThrottle({
      fetch,
      concurrency: 400,
      defaults,
      retry: { limit: 50 },
      warnThreshold: 1e8,
    })
    return (url) => throttle.fetch(url)
  }
  const { contenders } = await import('../contenders.mjs')
  const { default: pLimit } = await import('p-limit')
  const [count, ms] = perMinute ? [100, 60_000] : [5, 1000]
  const eight = pLimit(8)
  const limit = way === 'told' ? contenders[name].capped(count, ms) : (_, work) => eight(work)
  const once = (url) => limit(new URL(url).host, () => fetch(url))
  return async (url) => {
    for (;;) {
      const response = await once(url)
      if (response.status !== 429) return response
      await sleep(1000 * Number(response.headers.get('retry-after') ?? 1))
    }
  }
}
