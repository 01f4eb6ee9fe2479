/**
 * Clients that take a `fetch` of yours: Octokit and OpenAI's, throttled by host. `npx tsx
 * examples/api-client.ts`
 *
 * Both retry by themselves; each of their attempts goes through the throttle, and what the servers ask for is
 * kept. Here they talk to a server on this machine.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Octokit } from '@octokit/core'
import { createThrottle, throttledFetch } from 'autothrottle'
import OpenAI from 'openai'

const throttle = createThrottle({ defaults: { rampup: true } })

/** Octokit: `request.fetch`. */
export const octokit = (baseUrl: string) =>
  new Octokit({ baseUrl, request: { fetch: throttledFetch(throttle) } })

/** OpenAI: `fetch`. */
export const openai = (baseURL: string) =>
  new OpenAI({ baseURL, apiKey: 'none', fetch: throttledFetch(throttle) })

if (process.argv[1]?.endsWith('api-client.ts')) {
  let requests = 0
  const server = createServer((request, response) => {
    requests++
    const isFirst = requests === 1
    response.writeHead(isFirst ? 429 : 200, {
      'content-type': 'application/json',
      ...(isFirst ? { 'retry-after-ms': '300' } : {}),
    })
    const body = request.url?.includes('models')
      ? { object: 'list', data: [{ id: 'tiny' }] }
      : { login: 'octocat' }
    response.end(JSON.stringify(body))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const models = await openai(url).models.list()
  const { data } = await octokit(url).request('GET /user')
  console.log(models.data[0]?.id, data.login, `after ${requests} requests, one of them refused`)
  server.close()
  server.closeAllConnections()
}
