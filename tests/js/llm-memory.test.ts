/** Scopes that `autothrottle/llm` makes by itself are forgotten as others are: beyond `maxScopes`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createThrottle } from 'autothrottle'
import { llmFetch } from 'autothrottle/llm'
import { FakeClock } from 'autothrottle/testing'

const CHAT = 'https://api.openai.com/v1/chat/completions'
const post = (model: string, key: string) => ({
  method: 'POST',
  headers: { authorization: `Bearer ${key}` },
  body: JSON.stringify({ model, messages: [{ role: 'user', content: 'a' }] }),
})
const SPENT = {
  'x-ratelimit-limit-requests': '1',
  'x-ratelimit-remaining-requests': '0',
  'x-ratelimit-reset-requests': '60s',
}

test('pairs of key and model beyond maxScopes are forgotten, but for a budget that is spent', async () => {
  const clock = new FakeClock()
  const sent: number[] = []
  const fetch = async (_: unknown, init: RequestInit = {}) => {
    sent.push(clock.now())
    const isSpent = String(init.body).includes('"spent"')
    return new Response('{"usage":{"prompt_tokens":1,"completion_tokens":1}}', {
      headers: isSpent ? SPENT : {},
    })
  }
  const throttle = createThrottle({ clock, fetch: fetch as never, jitter: false, maxScopes: 100 })
  const llm = llmFetch(throttle)
  const call = async (model: string, key: string) => {
    const answer = llm(CHAT, post(model, key)).then((response) => response.text())
    await clock.advance(10)
    await answer
  }
  await call('spent', 'a')
  for (let pair = 0; pair < 300; pair++) await call(`m-${pair % 10}`, `key ${pair}`)
  const { scopes } = throttle.stats()
  const names = Object.keys(scopes)
  assert.ok(names.length <= 110, `${names.length} scopes`)
  // One that was forgotten goes on as before: at once, and not at the default of a request a second.
  await call('m-0', 'key 0')
  await call('m-0', 'key 0')
  const before = sent.length
  const late = llm(CHAT, post('spent', 'a'))
  await clock.advance(1000)
  assert.equal(sent.length, before, 'its budget is spent for a minute')
  await clock.advance(70_000)
  assert.equal((await late).status, 200)
})
