/**
 * The answers of each library where a crawl or an API client meets it: `npm run bench:compare`, which prints
 * the table of `docs/comparison.md`; a minute, in real time, against a server on this machine.
 *
 * Each is set to "five a second" as its own README says. The questions: how do a dozen requests leave? Does
 * any leave after a 429 before its `Retry-After` is over? Does a busy host keep another one waiting?
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'

const [LIMIT, WINDOW] = [5, 1000]
const clients = fileURLToPath(new URL('../../tests/clients', import.meta.url))
const args = ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', clients]
if (!existsSync(`${clients}/node_modules/effect`)) spawnSync('npm', args, { stdio: 'inherit' })
const { resolve } = createRequire(`${clients}/package.json`)
/** Large libraries lie there; the others are the package's own dependencies, which are found from there. */
const from = (name) => import(pathToFileURL(resolve(name)))
const get = (url) => fetch(url).then((response) => response.text())
const all = (send) => (urls) => Promise.allSettled(urls.map(send))

/** Each gives a function that fetches a list of URLs. Where a library has keys, the host is one. */
const LIBRARIES = {
  async autothrottle() {
    const { createThrottle } = await import('../../dist/index.js')
    const throttle = createThrottle({ rate: LIMIT })
    return all((url) => throttle.fetch(url).then((response) => response.text()))
  },
  async 'p-queue'() {
    const { default: PQueue } = await from('p-queue')
    const queue = new PQueue({ interval: WINDOW, intervalCap: LIMIT })
    return all((url) => queue.add(() => get(url)))
  },
  async 'p-throttle'() {
    const { default: pThrottle } = await from('p-throttle')
    return all(pThrottle({ limit: LIMIT, interval: WINDOW })(get))
  },
  async bottleneck() {
    const { default: Bottleneck } = await from('bottleneck')
    const group = new Bottleneck.Group({
      reservoir: LIMIT,
      reservoirRefreshAmount: LIMIT,
      reservoirRefreshInterval: WINDOW,
    })
    return all((url) => group.key(new URL(url).host).schedule(() => get(url)))
  },
  async 'rate-limiter-flexible'() {
    const { default: module, ...names } = await from('rate-limiter-flexible')
    const { RateLimiterMemory, RateLimiterQueue } = { ...module, ...names }
    const queue = new RateLimiterQueue(new RateLimiterMemory({ points: LIMIT, duration: WINDOW / 1000 }))
    return all((url) => queue.removeTokens(1, new URL(url).host).then(() => get(url)))
  },
  async Effect() {
    const [{ RateLimiter }, { Effect, Layer, ManagedRuntime }] = [
      await from('effect/persistence'),
      await from('effect'),
    ]
    const runtime = ManagedRuntime.make(RateLimiter.layer.pipe(Layer.provide(RateLimiter.layerStoreMemory)))
    const limited = await runtime.runPromise(RateLimiter.makeWithRateLimiter)
    const rule = { limit: LIMIT, window: WINDOW, onExceeded: 'delay', algorithm: 'fixed-window' }
    return all((url) =>
      runtime.runPromise(Effect.promise(() => get(url)).pipe(limited({ ...rule, key: new URL(url).host }))),
    )
  },
  async Crawlee() {
    const { CheerioCrawler, Configuration, log } = await from('@crawlee/cheerio')
    log.setLevel(log.LEVELS.OFF)
    return async (urls) => {
      const configuration = new Configuration({ persistStorage: false, purgeOnStart: true })
      const options = {
        maxRequestsPerMinute: (LIMIT * 60_000) / WINDOW,
        maxRequestRetries: 1,
        additionalMimeTypes: ['text/plain'],
        requestHandler: () => {},
      }
      await new CheerioCrawler(options, configuration).run(urls)
    }
  },
}

/** When requests arrived, and for which host. The third for a path `refuse` is refused. */
let arrivals = []
let refusedAt
const server = createServer((request, response) => {
  arrivals.push({ at: performance.now(), host: request.headers.host })
  const isRefused = request.url.startsWith('/refuse') && arrivals.length === 3
  const headers = { 'content-type': 'text/plain', ...(isRefused && { 'retry-after': '2' }) }
  setTimeout(() => {
    if (isRefused) refusedAt = performance.now()
    response.writeHead(isRefused ? 429 : 200, headers).end('ok')
  }, 20)
})
await new Promise((resolve) => server.listen(0, resolve))
const { port } = server.address()
const urls = (host, path, count) =>
  [...Array(count).keys()].map((page) => `http://${host}:${port}/${path}-${page}`)

/** Fetches a list with a fresh limiter; gives what arrived. */
async function fetched(make, list) {
  const run = await make()
  arrivals = []
  await run(list)
  return arrivals
}

/** How many arrived within a tenth of a second, at most. */
const atOnce = (all_) =>
  Math.max(...all_.map(({ at: start }) => all_.filter(({ at }) => at >= start && at < start + 100).length))

console.log('| | at once | during `Retry-After` | another host waits |')
console.log('|---|---:|---:|---:|')
for (const [name, make] of Object.entries(LIBRARIES)) {
  const pace = atOnce(await fetched(make, urls('127.0.0.1', 'page', 12)))
  const asked = await fetched(make, urls('127.0.0.1', 'refuse', 12))
  const early = asked.filter(({ at }) => at > refusedAt + 20 && at < refusedAt + 1980).length
  const mixed = await fetched(make, [...urls('127.0.0.1', 'busy', 12), ...urls('localhost', 'other', 1)])
  const other = mixed.find(({ host }) => host.startsWith('localhost')).at - mixed[0].at
  console.log(`| ${name} | ${pace} | ${early} | ${(other / 1000).toFixed(1)} s |`)
}
server.close()
process.exit(0)
