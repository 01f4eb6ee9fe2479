/**
 * One of two processes of the case `takeover`. The first learns of many hosts; the other asks for one thing
 * all the time, and says when it is given, and how many hosts it has heard of.
 */
import { createThrottle } from 'autothrottle'
import { local } from 'autothrottle/local'

const { way, name, store, hosts } = JSON.parse(process.argv[2])
let shared = local({ name })
if (way === 'redis') {
  const { redis } = await import('autothrottle/redis')
  const { CLIENTS } = await import('../../tests/shared/clients.mjs')
  shared = redis(CLIENTS.ioredis(store), { name })
}
const free = { delay: 0, slotDelay: 0, jitter: false, concurrency: 1000, autothrottle: true }
const throttle = createThrottle({ concurrency: 100_000, defaults: free, shared })
process.on('disconnect', () => process.exit())
if (hosts > 0) {
  for (let host = 0; host < hosts; host += 500) {
    const some = Array.from({ length: Math.min(500, hosts - host) }, (_, index) => `h${host + index}.example`)
    const permits = await Promise.all(some.map((scopes) => throttle.acquire({ scopes })))
    for (const permit of permits) permit.settle({ status: 200, latency: 300 })
  }
  // News of a refusal goes out at once, with all that is known.
  const tell = async () => (await throttle.acquire({ scopes: 'bad' })).settle({ status: 503 })
  setInterval(() => tell().catch(() => {}), 5000)
  await tell()
  process.send({ knows: hosts })
} else {
  const ask = async () => {
    for (;;) {
      ;(await throttle.acquire({ scopes: 'probe' })).settle({ status: 200 })
      process.send({ given: Date.now() })
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  ask()
  process.on('message', () => process.send({ heard: Object.keys(throttle.snapshot().scopes).length }))
}
