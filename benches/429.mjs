/**
 * Sixty pages from an origin that allows five requests per second and does not say so: `npm run bench:429`.
 *
 * The origin is served on this machine: a sliding window of one second, 429 with `Retry-After: 1`, 80 ms for
 * every answer. Everybody may have ten requests on the way and try each twenty times more. What counts is how
 * often the origin had to refuse, and how long it took; twelve seconds is what five per second allow.
 */
import { createServer } from 'node:http'
import { createThrottle } from 'autothrottle'
import got from 'got'
import ky from 'ky'
import PQueue from 'p-queue'

const PAGES = 60
const LIMIT = 5
const LATENCY = 80

/** Serves, and counts what it refused. */
async function origin() {
  let accepted = []
  const counts = { refused: 0 }
  const server = createServer((_, response) => {
    const now = performance.now()
    accepted = accepted.filter((at) => at > now - 1000)
    const isAllowed = accepted.length < LIMIT
    if (isAllowed) accepted.push(now)
    else counts.refused++
    setTimeout(() => {
      response.writeHead(isAllowed ? 200 : 429, isAllowed ? {} : { 'retry-after': '1' })
      response.end(isAllowed ? 'page' : 'too many')
    }, LATENCY)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${server.address().port}`
  return { url, counts, close: () => new Promise((resolve) => server.close(resolve)) }
}

/** At most `width` at a time, and nothing else. */
async function pool(tasks, width) {
  const left = [...tasks]
  const work = async () => {
    for (let task = left.shift(); task; task = left.shift()) await task()
  }
  await Promise.all(Array.from({ length: width }, work))
}

const retry = { limit: 20 }
const clients = {
  async 'autothrottle, rampup'(urls) {
    const throttle = createThrottle({ concurrency: 10, defaults: { rampup: true }, retry })
    await Promise.all(urls.map(async (url) => (await throttle.fetch(url)).text()))
  },
  async 'ky, 10 at a time'(urls) {
    await pool(
      urls.map((url) => () => ky(url, { retry }).text()),
      10,
    )
  },
  async 'got, 10 at a time'(urls) {
    await pool(
      urls.map((url) => () => got(url, { retry }).text()),
      10,
    )
  },
  async 'p-queue (5 per second, told) + ky'(urls) {
    const queue = new PQueue({ concurrency: 10, intervalCap: LIMIT, interval: 1000 })
    await Promise.all(urls.map((url) => queue.add(() => ky(url, { retry }).text())))
  },
  async 'p-queue (10 at a time) + ky'(urls) {
    const queue = new PQueue({ concurrency: 10 })
    await Promise.all(urls.map((url) => queue.add(() => ky(url, { retry }).text())))
  },
}

console.log('client                               delivered  refused  seconds')
for (const [name, fetchAll] of Object.entries(clients)) {
  const { url, counts, close } = await origin()
  const start = performance.now()
  let failed = 0
  try {
    await fetchAll(Array.from({ length: PAGES }, (_, page) => `${url}/${page}`))
  } catch (error) {
    failed = 1
    console.error(`${name}: ${error}`)
  }
  const seconds = (performance.now() - start) / 1000
  const cells = [failed ? 'not all' : String(PAGES), String(counts.refused), seconds.toFixed(1)]
  console.log(`${name.padEnd(36)} ${cells[0].padStart(9)} ${cells[1].padStart(8)} ${cells[2].padStart(8)}`)
  await close()
}
