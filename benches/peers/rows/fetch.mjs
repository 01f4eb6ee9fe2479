/**
 * Real requests to a server in another process over kept connections, 64 at a time. Rounds take turns; the
 * median counts.
 */
import { fork } from 'node:child_process'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import pLimit from 'p-limit'
import PQueue from 'p-queue'
import { createThrottle } from '../../../dist/index.js'

export const title = 'fetch, end to end'
export const says =
  'Requests a second and CPU of the client, 64 at a time, on loopback. A slot is held until the body was read; by "headers" (p-limit so used, our fetch by itself) until the headers are there.'
export const columns = [
  'requests/s',
  '× bare',
  '× p-limit',
  'CPU µs a request',
  'over bare, µs',
  'over p-limit, µs',
]

const AT_ONCE = 64

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = createServer((_, response) => response.end('ok'))
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1', () => process.send(server.address().port))
}

export async function run({ isQuick }) {
  const count = isQuick ? 500 : 4000
  const server = fork(fileURLToPath(import.meta.url))
  const port = await new Promise((resolve) => server.once('message', resolve))
  const url = `http://127.0.0.1:${port}/`
  const read = async (response) => void (await (await response).text())
  const limit = pLimit(AT_ONCE)
  const limitHeaders = pLimit(AT_ONCE)
  const queue = new PQueue({ concurrency: AT_ONCE })
  const open = { delay: 0, slotDelay: 0, jitter: false, concurrency: AT_ONCE }
  const throttle = createThrottle({ concurrency: AT_ONCE, warnThreshold: 1e8, defaults: open })
  const ways = {
    bare: (call) => pool(call, () => read(fetch(url))),
    'p-limit': (call) => all(call, () => limit(() => read(fetch(url)))),
    'p-limit, headers': (call) => all(call, () => read(limitHeaders(() => fetch(url)))),
    'p-queue': (call) => all(call, () => queue.add(() => read(fetch(url)))),
    'autothrottle, fetch, headers': (call) => all(call, () => read(throttle.fetch(url))),
    'autothrottle, run': (call) => all(call, () => throttle.run(url, () => read(fetch(url)))),
  }
  const figures = Object.fromEntries(Object.keys(ways).map((name) => [name, []]))
  // The first pays for what the others left, so they take turns.
  const turns = Object.entries(ways)
  for (let round = 0; round < (isQuick ? 2 : 9); round++) {
    turns.push(turns.shift())
    for (const [name, way] of turns) {
      const before = process.cpuUsage()
      const begin = performance.now()
      await way(count)
      const ms = performance.now() - begin
      const { user, system } = process.cpuUsage(before)
      if (round > 0) figures[name].push({ rate: (1000 * count) / ms, cpu: (user + system) / count })
    }
  }
  server.kill()
  const median = (name, what) => {
    const sorted = figures[name].map((figure) => figure[what]).toSorted((a, b) => a - b)
    return sorted[sorted.length >> 1]
  }
  return Object.keys(ways).map((name) => [
    name,
    median(name, 'rate').toFixed(0),
    (median(name, 'rate') / median('bare', 'rate')).toFixed(2),
    (median(name, 'rate') / median('p-limit', 'rate')).toFixed(2),
    median(name, 'cpu').toFixed(0),
    (median(name, 'cpu') - median('bare', 'cpu')).toFixed(1),
    (median(name, 'cpu') - median('p-limit', 'cpu')).toFixed(1),
  ])
}

const all = (count, call) => Promise.all(Array.from({ length: count }, call))

/** Plain fetch by as many workers: what can be had without any limiter. */
async function pool(count, call) {
  let left = count
  const worker = async () => {
    while (left-- > 0) await call()
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}
