/**
 * Real rate limiters of Node's, at rates that nothing was designed around: `npm run bench:limiters`.
 *
 * express-rate-limit (fixed window) and @fastify/rate-limit (fixed window per key), 7 and 133 requests a
 * second, windows of a second, with their headers (`RateLimit-*` or `X-RateLimit-*`, `Retry-After`) and
 * without any; rampup from cold, 30 s each. `--seconds N` makes it shorter.
 */
import rateLimit from '@fastify/rate-limit'
import express from 'express'
import { rateLimit as expressRateLimit } from 'express-rate-limit'
import fastify from 'fastify'
import { load } from './load.mjs'

const at = process.argv.indexOf('--seconds')
const SECONDS = at > 0 ? Number(process.argv[at + 1]) : 30

async function withExpress(limit, hasHeaders, work) {
  const app = express()
  const headers = { standardHeaders: hasHeaders ? 'draft-6' : false, legacyHeaders: false }
  app.use(expressRateLimit({ windowMs: 1000, limit, validate: false, ...headers }))
  app.get('/', (_, response) => setTimeout(() => response.end('page'), 50))
  const server = await new Promise((resolve) => {
    const listening = app.listen(0, '127.0.0.1', () => resolve(listening))
  })
  const counts = await work(`http://127.0.0.1:${server.address().port}/`)
  server.closeAllConnections()
  server.close()
  return counts
}

async function withFastify(limit, hasHeaders, work) {
  const app = fastify()
  const names = ['limit', 'remaining', 'reset'].map((name) => `x-ratelimit-${name}`)
  const flags = Object.fromEntries([...names, 'retry-after'].map((name) => [name, hasHeaders]))
  const plain = Object.fromEntries(names.map((name) => [name, hasHeaders]))
  await app.register(rateLimit, {
    max: limit,
    timeWindow: 1000,
    addHeaders: flags,
    addHeadersOnExceeding: plain,
  })
  app.get('/', (_, reply) => void setTimeout(() => reply.send('page'), 50))
  await app.listen({ port: 0, host: '127.0.0.1' })
  const counts = await work(`http://127.0.0.1:${app.server.address().port}/`)
  app.server.closeAllConnections()
  await app.close()
  return counts
}

const options = { concurrency: 64, defaults: { rampup: true } }
console.log('server                headers  limit/s       ok  refused  refused %  utilisation')
for (const [name, serve] of Object.entries({
  'express-rate-limit': withExpress,
  '@fastify/rate-limit': withFastify,
})) {
  for (const hasHeaders of [false, true]) {
    for (const limit of [7, 133]) {
      const { ok, refused } = await serve(limit, hasHeaders, (url) => load(options, url, SECONDS))
      const cells = [
        name.padEnd(21),
        (hasHeaders ? 'yes' : 'no').padStart(7),
        String(limit).padStart(8),
        String(ok).padStart(8),
        String(refused).padStart(8),
        ((100 * refused) / (ok + refused)).toFixed(1).padStart(10),
        (ok / (limit * SECONDS)).toFixed(3).padStart(12),
      ]
      console.log(cells.join(' '))
    }
  }
}
