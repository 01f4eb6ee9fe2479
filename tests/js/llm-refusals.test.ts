/** Refusals of language models, and what listeners hear of calls: waits, warnings, latency, the URL. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigError, createThrottle } from 'autothrottle'
import { llmFetch, llmMiddleware } from 'autothrottle/llm'
import { FakeClock } from 'autothrottle/testing'

const CHAT = 'https://api.openai.com/v1/chat/completions'
const MESSAGES = 'https://api.anthropic.com/v1/messages'
const post = (more: object = {}) => ({
  method: 'POST',
  body: JSON.stringify({
    model: 'm-1',
    max_tokens: 100,
    messages: [{ role: 'user', content: 'a'.repeat(400) }],
    ...more,
  }),
})
const json = (value: object, headers: Record<string, string> = {}, status = 200) =>
  new Response(JSON.stringify(value), { status, headers: { 'content-type': 'application/json', ...headers } })

function setUp(answer: (clock: FakeClock) => Response | Promise<Response>, options: object = {}) {
  const clock = new FakeClock()
  const sent: number[] = []
  const warned: string[] = []
  const fetch = async () => {
    sent.push(clock.now())
    return answer(clock)
  }
  const throttle = createThrottle({ clock, fetch, maxInFlight: 16, jitter: false, ...options })
  throttle.addEventListener('warning', ({ code, message }) => warned.push(`${code}: ${message}`))
  return { clock, sent, throttle, warned }
}

test('a wait of three days is an error at once, as in throttle.fetch; retry.maxRetryAfter says from when', async () => {
  const refused = () => json({ error: { message: 'monthly limit' } }, { 'retry-after': '277403' }, 429)
  for (const [options, retry] of [
    [{}, undefined],
    [{}, { limit: 5, maxRetryAfter: 60_000 }],
    [{ retry: { limit: 2, maxRetryAfter: 60_000 } }, undefined],
  ] as const) {
    const { clock, sent, throttle, warned } = setUp(refused, options)
    const llm = llmFetch(throttle, retry && { retry })
    const call = llm(CHAT, post())
    await clock.advance(1000)
    const answer = await call
    assert.deepEqual(
      ['status', 'x-autothrottle-error', 'x-should-retry'].map((key) =>
        key === 'status' ? String(answer.status) : answer.headers.get(key),
      ),
      ['429', 'ERR_RETRY_AFTER_TOO_LONG', 'false'],
    )
    const most = retry || 'retry' in options ? 60_000 : 300_000
    assert.match(await answer.text(), new RegExp(`asks to wait 277403000 ms, more than .* \\(${most} ms\\)`))
    assert.deepEqual([sent, warned], [[0], []])
  }
  const { clock, throttle } = setUp(refused)
  const middleware = llmMiddleware(throttle)
  const call = middleware({ url: MESSAGES, ...post() }, async () => refused())
  call.catch(() => {})
  await clock.advance(1000)
  await assert.rejects(call, (error: Error & { code: string; response: Response }) => {
    assert.deepEqual([error.code, error.response.status], ['ERR_RETRY_AFTER_TOO_LONG', 429])
    return true
  })
  const patient = setUp((clock) =>
    clock.now() < 400_000 ? json({}, { 'retry-after': '400' }, 429) : json({ usage: {} }),
  )
  const waited = llmFetch(patient.throttle, { retry: { limit: 1, maxRetryAfter: 500_000 } })(CHAT, post())
  await patient.clock.advance(401_000)
  assert.equal((await waited).status, 200)
})

test('listeners hear the URL of a call and how long its answer took', async () => {
  const { clock, throttle } = setUp(async (clock) => {
    await new Promise<void>((resolve) => clock.setTimeout(resolve, 213))
    return json({ usage: { prompt_tokens: 9, completion_tokens: 1 } }, { 'x-ratelimit-limit-tokens': '1000' })
  })
  const heard: unknown[] = []
  for (const type of ['queued', 'send', 'settle'] as const)
    throttle.addEventListener(type, ({ url }) => heard.push([type, url]))
  throttle.addEventListener('settle', ({ latencyMs, status }) => heard.push(latencyMs, status))
  const llm = llmFetch(throttle)
  for (let call = 0; call < 2; call++) {
    const answer = llm(CHAT, post())
    await clock.advance(213)
    await (await answer).text()
  }
  const one = [['queued', CHAT], ['send', CHAT], ['settle', CHAT], 213, 200]
  assert.deepEqual(heard, [...one, ...one])
  assert.equal(throttle.scope('api.openai.com').stats.latencyMs, 213)
})

test('no warning names a setting that the entry made', async () => {
  const { clock, throttle, warned } = setUp(
    async (clock) => {
      await new Promise<void>((resolve) => clock.setTimeout(resolve, 3000))
      return json({ usage: { prompt_tokens: 100, completion_tokens: 1 } })
    },
    { concurrency: 4 },
  )
  const llm = llmFetch(throttle, { limits: { '*': { rpm: 10_000, tpm: 1_000_000 } } })
  const calls = Array.from({ length: 400 }, () => llm(CHAT, post()))
  await clock.advance(400_000)
  for (const call of calls) await (await call).text()
  throttle.scope('api.openai.com').stats
  assert.deepEqual(warned, [])
})

test('a stream that you leave on purpose is no warning', async () => {
  const start = 'data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n'
  const parts = () => new ReadableStream({ pull: (to) => to.enqueue(new TextEncoder().encode(start)) })
  const { clock, throttle, warned } = setUp(
    () => new Response(parts(), { headers: { 'content-type': 'text/event-stream' } }),
  )
  const llm = llmFetch(throttle)
  for (const how of ['cancel', 'abort']) {
    const controller = new AbortController()
    const call = llm(CHAT, { ...post({ stream: true }), signal: controller.signal })
    await clock.advance(10)
    const reader = (await call).body!.getReader()
    await reader.read()
    if (how === 'abort') controller.abort()
    await reader.cancel('enough')
  }
  assert.deepEqual([warned, llm.stats().cut], [[], 2])
})

test('refusals of one flight are one step: the next call leaves when the server said', async () => {
  const [limit, perMs] = [12_000, 12_000 / 60_000]
  let [level, at, refused] = [0, 0, 0]
  const left: number[] = []
  const { clock, throttle } = setUp(async (clock) => {
    await new Promise<void>((resolve) => clock.setTimeout(resolve, 20))
    level = Math.min(limit, level + (clock.now() - at) * perMs)
    at = clock.now()
    const headers = { 'x-ratelimit-limit-tokens': String(limit) }
    if (level < 100) {
      refused++
      const wait = Math.ceil((100 - level) / perMs)
      const told = { ...headers, 'x-ratelimit-remaining-tokens': '0', 'retry-after-ms': String(wait) }
      const message = `Rate limit reached on tokens. Please try again in ${wait}ms.`
      return json({ error: { message, type: 'tokens' } }, told, 429)
    }
    level -= 100
    left.push(clock.now())
    const told = { ...headers, 'x-ratelimit-remaining-tokens': String(Math.floor(level)) }
    return json({ usage: { prompt_tokens: 50, completion_tokens: 50 } }, told)
  })
  // Its bucket is empty when the program begins: another one used it up.
  const llm = llmFetch(throttle, { limits: { '*': { tpm: limit } } })
  const calls = Array.from({ length: 100 }, () => llm(CHAT, post()))
  await clock.advance(120_000)
  for (const call of calls) assert.equal((await call).status, 200)
  const gaps = left.map((at, index) => at - (left[index - 1] ?? 0))
  assert.ok(refused >= 3 && refused <= 20, `${refused} refused`)
  assert.ok(Math.max(...gaps) <= 2000, `${Math.max(...gaps)} ms without a call`)
})

test('retry may be false or { limit, maxRetryAfter }, and else the error says so', () => {
  const throttle = createThrottle()
  for (const retry of [null, 3, 'no', { limit: -1 }, { limit: 1, maxRetryAfter: -1 }, { limit: 1, most: 2 }])
    assert.throws(() => llmFetch(throttle, { retry } as never), ConfigError)
  for (const key of ['vendor', 'limits', 'account', 'family', 'countTokens', 'output', 'headroom'])
    assert.throws(() => llmFetch(throttle, { [key]: null } as never), ConfigError, key)
  llmFetch(throttle, { retry: { limit: 1, maxRetryAfter: 1000 } })
})
