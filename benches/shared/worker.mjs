/**
 * One of the processes of `npm run test:shared`: says that it is there, waits for the word, and asks for
 * pages, four at a time, until it is killed.
 */
import { createThrottle } from 'autothrottle'
import { local } from 'autothrottle/local'

const { way, name, options, who, store, skew, url, rate, steps = [], loops = 4 } = JSON.parse(process.argv[2])
const wall = Date.now
Date.now = () => wall() + skew
process.on('disconnect', () => process.exit())
let begun = Number.POSITIVE_INFINITY

/**
 * What the store says of its clock is ahead by what the last of the steps says: no code sets a clock here.
 */
function withClock(client) {
  const ask = client.eval.bind(client)
  client.eval = async (script, ...args) => {
    const answer = await ask(script, ...args)
    if (!script.includes('return {time[1], time[2]')) return answer
    const [, ahead] = steps.findLast(([at]) => wall() >= begun + at * 1000) ?? [0, 0]
    return [String(Number(answer[0]) + ahead), ...answer.slice(1)]
  }
  return client
}

/** Calls work when it may. */
async function runner() {
  if (way === 'bottleneck') {
    const { default: Bottleneck } = await import('bottleneck')
    const { CLIENTS } = await import('../../tests/shared/clients.mjs')
    const client = CLIENTS.ioredis(store)
    const connection = new Bottleneck.IORedisConnection({ client, Redis: client.constructor })
    const limiter = new Bottleneck({ id: name, connection, minTime: 1000 / rate })
    return (work) => limiter.schedule(work)
  }
  let shared
  if (way === 'local') shared = local({ name })
  if (way === 'redis') {
    const { redis } = await import('autothrottle/redis')
    const { CLIENTS } = await import('../../tests/shared/clients.mjs')
    shared = redis(withClock(CLIENTS.ioredis(store)), { name })
  }
  const throttle = createThrottle({ ...options, ...(shared && { shared }) })
  setInterval(() => process.send?.({ isWriter: throttle.stats().ageMs === 0 }), 200).unref()
  return (work) => throttle.run({ scopes: 'site' }, work)
}

const run = await runner()
process.send({ isReady: true })
await new Promise((resolve) => process.once('message', resolve))
begun = wall()
for (let loop = 0; loop < loops; loop++)
  (async () => {
    for (;;) {
      const ask = () => fetch(url, { headers: { 'x-who': who } })
      const response = await run(ask).catch(() => undefined)
      await response?.arrayBuffer().catch(() => {})
    }
  })()
