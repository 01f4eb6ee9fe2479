/**
 * One of several processes that share a limit: `member.mjs {client, port, name, url, options, atOnce,
 * cluster}`. It asks for pages until its parent says `end`, and says when it is ready.
 */
import { createThrottle } from '../../dist/node/index.js'
import { redis } from '../../dist/redis.js'
import { CLIENTS, CLUSTERS } from './clients.mjs'

const { client, port, name, url, options, offline, atOnce, cluster } = JSON.parse(process.argv[2])
const shared = redis(await (cluster ? CLUSTERS : CLIENTS)[client](port), {
  name,
  ...(offline && { offline }),
})
const throttle = createThrottle({ ...options, shared })
throttle.addEventListener('warning', ({ code }) => process.send?.({ warning: code }))
let isOver = false
process.on('message', () => {
  isOver = true
  throttle.close()
})
process.on('disconnect', () => process.exit())
const ask = async () => {
  while (!isOver) {
    try {
      const response = await throttle.fetch(`${url}?by=${process.pid}`)
      await response.text()
    } catch (error) {
      process.send?.({ error: error.code ?? error.message })
      if (error.code === 'ERR_CLOSED') return
    }
  }
}
process.send?.({ ready: true })
await Promise.all(Array.from({ length: atOnce ?? 4 }, ask))
await throttle[Symbol.asyncDispose]()
process.exit()
