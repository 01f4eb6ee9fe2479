/**
 * One of several processes that share a limit, by the socket in `folder` or by Redis at `port`:
 * `member.mjs {folder, client, port, cluster, name, url, options, offline, atOnce} [WORKERS]`. It asks for
 * pages until its parent says `end`; `state` is answered with what it knows.
 */
import cluster from 'node:cluster'
import { createThrottle } from '../../dist/node/index.js'

const { folder, name, url, options, offline, atOnce = 4, ...store } = JSON.parse(process.argv[2])

async function group() {
  if (folder) return (await import('../../dist/local.js')).local({ name, folder })
  const { CLIENTS, CLUSTERS } = await import('./clients.mjs')
  const { redis } = await import('../../dist/redis.js')
  const client = await (store.cluster ? CLUSTERS : CLIENTS)[store.client](store.port)
  return redis(client, { name, ...(offline && { offline }) })
}

if (cluster.isPrimary && process.argv[3]) {
  // As one program with workers.
  for (let worker = 0; worker < Number(process.argv[3]); worker++) cluster.fork()
  cluster.on('message', (_, message) => process.send(message))
  process.on('message', (message) => {
    for (const worker of Object.values(cluster.workers)) worker.send(message)
  })
  // A worker is gone from the list before the later of both, whichever that is.
  for (const event of ['exit', 'disconnect'])
    cluster.on(event, () => Object.keys(cluster.workers).length === 0 && process.exit())
} else {
  const throttle = createThrottle({ ...options, shared: await group() })
  throttle.addEventListener('warning', ({ code }) => process.send?.({ pid: process.pid, warning: code }))
  let isOver = false
  process.on('message', (message) => {
    if (message === 'state') {
      const { ageMs } = throttle.stats()
      process.send({ pid: process.pid, state: { isWriter: ageMs === 0, ageMs } })
      return
    }
    isOver = true
    throttle.close()
  })
  process.on('disconnect', () => process.exit())
  const ask = async () => {
    while (!isOver) {
      try {
        await (await throttle.fetch(`${url}?by=${process.pid}`)).text()
      } catch (error) {
        if (error.code === 'ERR_CLOSED') return
        process.send?.({ pid: process.pid, error: error.code ?? error.message })
      }
    }
  }
  await Promise.all(Array.from({ length: atOnce }, ask))
  await throttle[Symbol.asyncDispose]()
  process.exit()
}
