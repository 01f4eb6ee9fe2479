/** One of the processes of `npm run test:shared`: asks for pages, four at a time, until it is killed. */
import { createThrottle } from 'autothrottle'
import { local } from 'autothrottle/local'

const { way, name, options, who, store, skew, url, loops = 4 } = JSON.parse(process.argv[2])
const wall = Date.now
Date.now = () => wall() + skew
let shared
if (way === 'local') shared = local({ name })
if (way === 'redis') {
  const { redis } = await import('autothrottle/redis')
  const { CLIENTS } = await import('../../tests/shared/clients.mjs')
  shared = redis(CLIENTS.ioredis(store), { name })
}
const throttle = createThrottle({ ...options, ...(shared && { shared }) })
setInterval(() => process.send?.({ isWriter: throttle.stats().ageMs === 0 }), 200).unref()
process.on('disconnect', () => process.exit())
for (let loop = 0; loop < loops; loop++)
  (async () => {
    for (;;) {
      const ask = () => fetch(url, { headers: { 'x-who': who } })
      const response = await throttle.run({ scopes: 'site' }, ask).catch(() => undefined)
      await response?.arrayBuffer().catch(() => {})
    }
  })()
