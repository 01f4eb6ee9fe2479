/** `drain`: no new request comes in, and it resolves when all that came in before is over. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ClosedError, createThrottle, type ThrottleOptions } from 'autothrottle'
import { llmFetch } from 'autothrottle/llm'
import { FakeClock } from 'autothrottle/testing'

const page = 'https://a.example/'
const refused = {
  name: 'ClosedError',
  code: 'ERR_CLOSED',
  message: 'the throttle drains: it takes in no more',
}

function make(options: ThrottleOptions = {}) {
  const clock = new FakeClock()
  const sent: string[] = []
  const throttle = createThrottle({
    clock,
    delay: 1000,
    jitter: false,
    fetch: async (input) => {
      sent.push(String((input as Request).url ?? input))
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, 100))
      return new Response('ok')
    },
    ...options,
  })
  /** When `drain` resolves. */
  const drained = async () => {
    await throttle.drain()
    return clock.now()
  }
  return { clock, sent, throttle, drained }
}

test('requests that wait or are in flight end; new ones are refused by name, in each way in', async () => {
  const { clock, sent, throttle, drained } = make()
  const taken = [1, 2, 3].map((each) => throttle.fetch(page + each))
  const over = drained()
  for (const way of [
    () => throttle.fetch(page),
    () => throttle.run(page, () => 1),
    () => throttle.acquire(page),
    () => throttle.wrap((url: string) => fetch(url))(page),
    () => throttle.map([page], () => 1).next(),
  ])
    await assert.rejects(way(), refused)
  await clock.advance(10_000)
  assert.deepEqual(await Promise.all(taken.map(async (each) => (await each).status)), [200, 200, 200])
  assert.equal(sent.length, 3)
  assert.equal(await over, 2100)
  await assert.rejects(throttle.fetch(page), { message: 'the throttle is closed' })
  await throttle.drain()
})

test('an idle throttle is drained at once, a second call gives the same promise', async () => {
  const { throttle } = make()
  const first = throttle.drain()
  assert.equal(throttle.drain(), first)
  await first
  await assert.rejects(throttle.fetch(page), ClosedError)
})

test('retries, redirects, hooks and robots.txt of what was taken in go on', async () => {
  const clock = new FakeClock()
  const sent: string[] = []
  const throttle = createThrottle({
    clock,
    delay: 1000,
    jitter: false,
    redirects: 'throttle',
    retry: { limit: 3 },
    robots: { userAgent: 'bot' },
    getScopes: async ({ url }) => {
      await new Promise<void>((resolve) => void clock.setTimeout(resolve, 500))
      return new URL(url).hostname
    },
    fetch: async (input) => {
      const { pathname } = new URL(String((input as Request).url ?? input))
      sent.push(pathname)
      if (pathname === '/busy' && sent.filter((each) => each === '/busy').length === 1)
        return new Response('', { status: 503 })
      if (pathname === '/moved') return Response.redirect('https://a.example/there')
      return new Response('')
    },
  })
  const taken = ['moved', 'busy'].map((each) => throttle.fetch(page + each))
  const over = throttle.drain()
  await clock.advance(60_000)
  assert.deepEqual(await Promise.all(taken.map(async (each) => (await each).status)), [200, 200])
  assert.deepEqual([...sent].sort(), ['/busy', '/busy', '/moved', '/robots.txt', '/there'])
  await over
})

test('a function that was taken in may call the throttle, is called again, and is waited for', async () => {
  const { clock, sent, throttle, drained } = make()
  const pause = () => new Promise<void>((resolve) => void clock.setTimeout(resolve, 5000))
  let calls = 0
  const job = throttle.run(
    page,
    async ({ fetch }) => {
      if (++calls === 1) throw Object.assign(new Error('busy'), { status: 503 })
      await (await fetch(page)).text()
      await throttle.fetch(`${page}inside`)
      await pause()
      return 'kept'
    },
    { retry: { limit: 1 } },
  )
  const over = drained()
  await clock.advance(60_000)
  assert.equal(await job, 'kept')
  assert.equal(calls, 2)
  assert.equal(sent.length, 2)
  assert.ok((await over) >= 7000)
})

test('a loop of map gets what it had taken in, then the error', async () => {
  const { clock, throttle } = make()
  const got: number[] = []
  async function* items() {
    for (let item = 0; ; item++) yield item
  }
  const loop = async () => {
    const options = { target: () => page, buffer: 4 }
    for await (const item of throttle.map(items(), (item) => item, options)) got.push(item)
  }
  const end = assert.rejects(loop(), refused)
  await clock.advance(1500)
  const over = throttle.drain()
  await clock.advance(60_000)
  await end
  await over
  assert.ok(got.length >= 4 && got.length <= 6, `${got}`)
})

test('close ends it early: what waits is rejected, what is in flight may end', async () => {
  const { clock, sent, throttle, drained } = make({ delay: 60_000 })
  const [first, second] = [throttle.fetch(page), throttle.fetch(page)]
  const over = drained()
  const late = assert.rejects(second, { message: 'the throttle is closed' })
  throttle.close()
  await late
  await clock.advance(1000)
  assert.equal((await first).status, 200)
  assert.equal(await over, 100)
  assert.equal(sent.length, 1)
})

test('a call of a language model is sent again also while the throttle drains', async () => {
  let asked = 0
  const { clock, throttle, drained } = make({
    delay: 0,
    fetch: async () =>
      ++asked === 1
        ? new Response('{}', { status: 429, headers: { 'retry-after': '3' } })
        : Response.json({ usage: {} }),
  })
  const llm = llmFetch(throttle)
  const body = JSON.stringify({ model: 'm', messages: [], max_tokens: 10 })
  const call = () => llm('https://llm.example/v1/chat/completions', { method: 'POST', body })
  const taken = call()
  await clock.advance(0)
  const over = drained()
  assert.equal((await call()).headers.get('x-autothrottle-error'), 'ERR_CLOSED')
  await clock.advance(60_000)
  assert.equal((await taken).status, 200)
  assert.ok((await over) >= 3000)
})
