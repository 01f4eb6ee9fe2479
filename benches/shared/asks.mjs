/**
 * Asks for permits as fast as they come, for this many milliseconds; says how many, and how long one took.
 * The first two seconds are not counted: there the runtime compiles, and that is most of what they cost.
 */
import { createThrottle } from 'autothrottle'
import { local } from 'autothrottle/local'

const { name, index, atOnce, ms, store } = JSON.parse(process.argv[2])
const free = { delay: 0, slotDelay: 0, jitter: false, concurrency: 1000 }
async function shared() {
  if (store === undefined) return local({ name })
  const { redis } = await import('autothrottle/redis')
  const { CLIENTS } = await import('../../tests/shared/clients.mjs')
  return redis(CLIENTS.ioredis(store), { name })
}
const throttle = createThrottle({ concurrency: 10_000, defaults: free, shared: await shared() })
// The first of them writes.
await new Promise((resolve) => setTimeout(resolve, index === 0 ? 0 : 300))
const first = await throttle.acquire({ scopes: 'x' })
first.settle()
await new Promise((resolve) => setTimeout(resolve, 1000 - (index === 0 ? 0 : 300)))
const took = []
const from = performance.now() + 2000
const end = from + ms
let before
/**
 * A program that never comes to its event loop hears no other: the one that decides must not ask without end.
 */
const rest = () => new Promise((resolve) => setImmediate(resolve))
const loop = async () => {
  while (performance.now() < end) {
    await rest()
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
