/** Clients of one throttle inside functions of its `run`: their request is the one that the permit is for. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { createThrottle, type Permit, type Throttle } from 'autothrottle'
import { throttleAdapter } from 'autothrottle/axios'
import { throttleHandler } from 'autothrottle/got'
import { FakeClock } from 'autothrottle/testing'
import { throttle as interceptor } from 'autothrottle/undici'
import axios from 'axios'
import got from 'got'
import { Agent, request, fetch as undiciFetch } from 'undici'

let asked = 0
let url = ''
const server = createServer((_, response) => {
  asked++
  response.end('x')
})
before(async () => {
  await new Promise<void>((resolve) => void server.listen(0, resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
})
after(() => server.close().closeAllConnections())

const inTimer = <T>(call: () => Promise<T>) =>
  new Promise<T>((resolve, reject) => void setTimeout(() => call().then(resolve, reject)))

type Client = () => Promise<unknown>

/** A client that sends by the throttle. */
const CLIENTS: Record<string, (throttle: Throttle) => Client> = {
  got: (throttle) => {
    const client = got.extend({ handlers: [throttleHandler(throttle)] })
    return () => client(url).text()
  },
  axios: (throttle) => {
    const client = axios.create({ adapter: throttleAdapter(throttle, axios as never) })
    return () => client.get(url)
  },
  'request of undici': (throttle) => {
    const dispatcher = new Agent().compose(interceptor(throttle))
    return async () => (await request(url, { dispatcher })).body.text()
  },
  'fetch of undici': (throttle) => {
    const dispatcher = new Agent().compose(interceptor(throttle))
    return async () => (await undiciFetch(url, { dispatcher })).text()
  },
}

/** When the function calls it. */
const WAYS: Record<string, (client: Client) => Promise<unknown>> = {
  'at once': (client) => client(),
  'after an await': async (client) => {
    await new Promise((resolve) => setImmediate(resolve))
    await client()
  },
  'in a timer': inTimer,
}

for (const [name, make] of Object.entries(CLIENTS))
  test(`${name} inside run sends the request of the permit, in every runtime`, async () => {
    const throttle = createThrottle({ maxInFlight: 1, delay: 0, warnings: false })
    // It is known of clients that are made after the first call, too.
    await throttle.run(url, () => undefined)
    const client = make(throttle)
    for (const [how, call] of Object.entries(WAYS)) {
      const { sent } = throttle.stats()
      const before = asked
      await throttle.run(url, () => call(client))
      assert.deepEqual([asked - before, throttle.stats().sent - sent], [1, 1], how)
      assert.equal(throttle.stats().inFlight, 0, how)
    }
  })

test('a client of one’s own whose answer is settled sends the request of the permit; the next one waits', async () => {
  const clock = new FakeClock()
  const send = async () => new Response('x')
  const throttle = createThrottle({ clock, fetch: send, delay: 1000, jitter: false })
  const sent: number[] = []
  const both = throttle.run(url, async (permit: Permit) => {
    sent.push(clock.now())
    permit.settle(await send())
    await throttle.fetch(url)
    sent.push(clock.now())
  })
  await clock.advance(5000)
  await both
  assert.deepEqual(sent, [0, 1000])
})

test('throttle.fetch in a timer of a function is the request of the permit, or is rejected with what to type', async () => {
  const clock = new FakeClock()
  const throttle = createThrottle({ clock, fetch: async () => new Response('x'), maxInFlight: 1, delay: 0 })
  let call = () => {}
  const called = new Promise<void>((resolve) => {
    call = resolve
  })
  const told = throttle
    .run(url, () =>
      inTimer(() => {
        const answer = throttle.fetch(url)
        call()
        return answer
      }),
    )
    .then(
      ({ status }) => status,
      ({ code }) => code,
    )
  // Time passes only once the call waits.
  await called
  await clock.advance(25_000)
  // Node before 24 cannot know it for free.
  assert.ok([200, 'ERR_NESTED'].includes(await told), String(await told))
  const { inFlight, waiting } = throttle.stats()
  assert.deepEqual([inFlight, waiting], [0, 0])
})
