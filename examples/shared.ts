/**
 * One limit for several processes: `node --import tsx examples/shared.ts`. This program starts three of
 * itself against a server that counts; together they keep to two at a time and ten a second.
 *
 * Only `shared` differs from a throttle of one process.
 */
import { fork } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { createThrottle } from 'autothrottle'
import { local } from 'autothrottle/local'

const [url] = process.argv.slice(2)
if (url === undefined) {
  let [now, most, all] = [0, 0, 0]
  const started = performance.now()
  const server = createServer((_, response) => {
    most = Math.max(most, ++now)
    all++
    setTimeout(() => {
      now--
      response.end('page')
    }, 100)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const children = Array.from({ length: 3 }, () =>
    fork(fileURLToPath(import.meta.url), [`http://127.0.0.1:${port}/`]),
  )
  await Promise.all(children.map((child) => new Promise((resolve) => child.once('exit', resolve))))
  server.close()
  const seconds = (performance.now() - started) / 1000
  console.log(`${all} requests of three processes in ${seconds.toFixed(1)} s, at most ${most} at a time`)
} else {
  await using throttle = createThrottle({
    defaults: { rate: 10, concurrency: 2 },
    shared: local({ name: `example-${process.ppid}` }),
  })
  const pages = Array.from({ length: 10 }, (_, page) => throttle.fetch(`${url}${page}`))
  for (const page of pages) await (await page).text()
}
