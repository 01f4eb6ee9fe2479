/**
 * The real SDKs of OpenAI and Anthropic through `llmFetch` and `llmMiddleware`, to a server on this machine:
 * what they send, what comes back, who sends again, and what a stream does to both ends.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { createThrottle } from 'autothrottle'
import { llmFetch, llmMiddleware } from 'autothrottle/llm'
import OpenAI from 'openai'
import { drive } from '../js/model-server.js'
import { skipUnless } from '../required.mjs'
import { listen } from '../serve.mjs'

const isHere = existsSync(new URL('node_modules/@anthropic-ai/sdk', import.meta.url))
const skip = skipUnless(isHere, 'not installed: npm install --prefix tests/clients')
const sdk = async () => (await import('@anthropic-ai/sdk')).default

/** A server; `answer` gets the request and its number. */
async function serve(t, answer) {
  const seen = []
  const { url, stop } = await listen(async (request, response) => {
    let text = ''
    for await (const part of request) text += part
    const { url, method, headers } = request
    seen.push({ url, method, headers, body: text === '' ? undefined : JSON.parse(text) })
    answer(response, seen.length, request)
  })
  t.after(stop)
  return { seen, url }
}

const json = (response, value, status = 200, headers = {}) =>
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value))
const CHAT = { choices: [{ message: { content: 'Hi' } }], usage: { prompt_tokens: 9, completion_tokens: 2 } }
const MESSAGE = {
  type: 'message',
  content: [{ type: 'text', text: 'Hi' }],
  usage: { input_tokens: 9, output_tokens: 2 },
}
const refused = (response) =>
  json(response, { error: { message: 'slow', type: 'requests' } }, 429, { 'retry-after-ms': '20' })
const asks = (client, more = {}) =>
  client.chat.completions.create({
    model: 'm',
    max_tokens: 50,
    messages: [{ role: 'user', content: 'a' }],
    ...more,
  })
const says = (client, more = {}, options = {}) =>
  client.messages.create(
    { model: 'm', max_tokens: 50, messages: [{ role: 'user', content: 'a' }], ...more },
    options,
  )
const setUp = (options) => {
  const throttle = createThrottle({ maxInFlight: 16, warnings: false })
  return { throttle, llm: llmFetch(throttle, { account: 'a', ...options }) }
}

test('openai: answers, retries by the throttle alone, and errors that are not sent again', {
  skip,
}, async (t) => {
  const { seen, url } = await serve(t, (response, count) =>
    count === 1 ? refused(response) : json(response, CHAT),
  )
  const { llm } = setUp({ limits: { m: { tpm: 1000 } } })
  const client = new OpenAI({ apiKey: 'k', baseURL: url, ...llm.client })
  assert.equal((await asks(client)).choices[0].message.content, 'Hi')
  assert.deepEqual([seen.length, llm.stats().refused], [2, 1])
  assert.ok(seen.every(({ headers }) => headers['x-stainless-retry-count'] === '0'))
  const retrying = new OpenAI({ apiKey: 'k', baseURL: url, ...llm.client, maxRetries: 2 })
  await assert.rejects(asks(retrying, { max_tokens: 5000 }), (error) => {
    assert.ok(error instanceof OpenAI.RateLimitError)
    assert.equal(error.headers.get('x-autothrottle-error'), 'ERR_COST_EXCEEDS_QUOTA')
    assert.match(error.message, /costs more than/)
    return true
  })
  assert.equal(seen.length, 2)
  await client.models.list().catch(() => {})
  assert.equal(seen[2].url, '/models')
})

test('openai: the last refusal is one call to the SDK, with retries of its own', { skip }, async (t) => {
  const { seen, url } = await serve(t, refused)
  const { llm } = setUp({ retry: { limit: 1 } })
  const client = new OpenAI({ apiKey: 'k', baseURL: url, ...llm.client, maxRetries: 2 })
  await assert.rejects(asks(client), OpenAI.RateLimitError)
  assert.equal(seen.length, 2)
})

test('anthropic: middleware; its wait is no time of the SDK', { skip }, async (t) => {
  const Anthropic = await sdk()
  const { seen, url } = await serve(t, (response) => json(response, MESSAGE))
  const { throttle } = setUp()
  const middleware = [llmMiddleware(throttle, { account: 'a', limits: { m: { itpm: 1000 } }, headroom: 1 })]
  const client = new Anthropic({ apiKey: 'k', baseURL: url, maxRetries: 2, middleware })
  assert.equal((await says(client)).content[0].text, 'Hi')
  const scope = `llm:${new URL(url).host}/a/m#input`
  assert.ok(throttle.peek({ scopes: scope }, { cost: 1000 }).at > throttle.now(), 'charged')
  throttle.scope(scope).hold(400)
  const answer = await says(client, {}, { timeout: 200 })
  assert.equal(answer.content[0].text, 'Hi')
  throttle.close()
  await assert.rejects(says(client), { code: 'ERR_CLOSED' })
  assert.equal(seen.length, 2)
})

const event = (value) => `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`

test('anthropic: a stream through fetch; what it told is charged', { skip }, async (t) => {
  const Anthropic = await sdk()
  const { url } = await serve(t, (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(
      event({
        type: 'message_start',
        message: { ...MESSAGE, usage: { input_tokens: 90, output_tokens: 1 } },
      }),
    )
    response.write(
      event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    )
    response.write(
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } }),
    )
    response.write(event({ type: 'message_delta', delta: {}, usage: { output_tokens: 400 } }))
    response.end(event({ type: 'message_stop' }))
  })
  const { throttle, llm } = setUp({ vendor: 'anthropic', limits: { m: { otpm: 1000 } }, headroom: 1 })
  const client = new Anthropic({ apiKey: 'k', baseURL: url, ...llm.client })
  let text = ''
  for await (const { delta } of await says(client, { stream: true })) text += delta?.text ?? ''
  assert.equal(text, 'Hi')
  const scope = `llm:${new URL(url).host}/a/m#output`
  const wait = throttle.peek({ scopes: scope }, { cost: 1000 }).at - throttle.now()
  assert.ok(wait > 20_000 && wait <= 24_000, `400 of 1,000 a minute: ${wait} ms`)
  assert.deepEqual([llm.stats().cut, llm.stats().estimated], [0, 0])
})

test('openai: a reader that stops holds the server back, and a cancel reaches it', { skip }, async (t) => {
  let [written, isStopped] = [0, false]
  let tell
  const closed = new Promise((resolve) => {
    tell = resolve
  })
  const { url } = await serve(t, (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.once('close', () => {
      isStopped = true
      tell()
    })
    const part = `data: ${JSON.stringify({ choices: [{ delta: { content: 'x'.repeat(16_000) } }] })}\n\n`
    const write = () => {
      while (!isStopped && written < 200e6) {
        written += part.length
        if (!response.write(part)) return response.once('drain', write)
      }
    }
    write()
  })
  const { llm } = setUp()
  const client = new OpenAI({ apiKey: 'k', baseURL: url, ...llm.client })
  const stream = await asks(client, { stream: true })
  const parts = stream[Symbol.asyncIterator]()
  await parts.next()
  // As long as the server is still writing, its sockets are not full.
  for (let before = -1; before !== written; ) {
    before = written
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  assert.ok(written <= 8e6, `${written} bytes written to a reader that stopped`)
  await parts.return()
  await closed
  assert.equal(llm.stats().cut, 1)
})

/** The whole answer that an SDK has read, as a response to count. */
async function readOut(answer) {
  if (typeof answer[Symbol.asyncIterator] === 'function') for await (const _ of answer);
  return new Response()
}

for (const [name, server] of [
  ['openai', { style: 'openai', rpm: 500, tpm: 200_000 }],
  ['anthropic', { style: 'anthropic', rpm: 500, itpm: 200_000, otpm: 80_000 }],
])
  test(`${name}: fifteen minutes of calls by the SDK, streamed and not, to a server in virtual time`, {
    skip,
  }, async (t) => {
    const Anthropic = await sdk()
    const seen = await drive(server, { minutes: 15, workers: 40 }, (clock, fetch) => {
      const throttle = createThrottle({ clock, maxInFlight: 256, fetch, warnings: false, seed: 7 })
      const llm = llmFetch(throttle, { vendor: name })
      const options = { apiKey: 'k', baseURL: 'https://models.example/v1', ...llm.client }
      const client = name === 'openai' ? new OpenAI(options) : new Anthropic(options)
      const resource = name === 'openai' ? client.chat.completions : client.messages
      return async (_, { body }) => readOut(await resource.create(JSON.parse(body)))
    })
    t.diagnostic(`${seen.share.toFixed(3)} used, ${(100 * seen.refusedShare).toFixed(1)} % refused`)
    assert.deepEqual(seen.failed, {})
    assert.ok(seen.share >= 0.97 && seen.refusedShare <= 0.005, JSON.stringify(seen))
  })
