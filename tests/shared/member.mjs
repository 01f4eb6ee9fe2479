/**
 * One of several processes that share a limit, by the socket in `folder` or by Redis at `port`:
 * `member.mjs {folder, client, port, cluster, version, dist, name, url, options, offline, atOnce} [WORKERS]`.
 * It asks for pages until its parent says `end`; `state` is answered with what it knows. With `version` it is
 * a process of a package whose protocol has that number; with `dist`, of the package that was built there.
 */
import cluster from 'node:cluster'
import { readFileSync } from 'node:fs'

const told = JSON.parse(process.argv[2])
const { folder, version, dist, name, url, options, offline, atOnce = 4, ...store } = told
const of = (file) => import(new URL(file, dist ?? new URL('../../dist/', import.meta.url)))
const { createThrottle } = await of('node/index.js')

const frame = readFileSync(new URL('../../crates/shared/src/frame.rs', import.meta.url), 'utf8')
const OURS = Number(/VERSION: u8 = (\d+);/.exec(frame)[1])

/** The second byte of a frame is the version of the protocol: this one's and the other's change places. */
function translated(frame) {
  if (frame?.[0] !== 0xa7) return frame
  const bytes = Buffer.from(frame)
  bytes[1] = bytes[1] === version ? OURS : bytes[1] === OURS ? version : bytes[1]
  return bytes
}

/** A client of ioredis by which a process speaks another version. */
function speaking(client) {
  const { eval: run, publish, duplicate, on } = client
  return Object.assign(client, {
    eval: (...args) => run.apply(client, args.map(translated)),
    publish: (channel, frame) => publish.call(client, channel, translated(frame)),
    duplicate: (...args) => speaking(duplicate.apply(client, args)),
    on: (event, hear) => on.call(client, event, (...args) => hear(...args.map(translated))),
  })
}

async function group() {
  if (folder) return (await of('local.js')).local({ name, folder })
  const { CLIENTS, CLUSTERS } = await import('./clients.mjs')
  const { redis } = await of('redis.js')
  const client = await (store.cluster ? CLUSTERS : CLIENTS)[store.client](store.port)
  return redis(version ? speaking(client) : client, { name, ...(offline && { offline }) })
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
  throttle.addEventListener('warning', ({ code, message }) =>
    process.send?.({ pid: process.pid, warning: code, message }),
  )
  let isOver = false
  process.on('message', (message) => {
    if (message === 'state') {
      const { ageMs } = throttle.stats()
      const { shared } = throttle.stats()
      process.send({ pid: process.pid, state: { isWriter: ageMs === 0, ageMs, ...shared } })
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
