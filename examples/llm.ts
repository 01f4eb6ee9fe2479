/**
 * Many calls of a language model, as fast as its limits of tokens bear. `npx tsx examples/llm.ts`
 *
 * The server here lets 6,000 tokens a minute pass, and says so in its headers; you type no limit.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createThrottle } from 'autothrottle'
import { llmFetch } from 'autothrottle/llm'
import OpenAI from 'openai'

/** Summaries of texts, each asked for when there is room for it. */
export async function summaries(baseURL: string, texts: readonly string[]) {
  const llm = llmFetch(createThrottle({ maxInFlight: 64 }))
  const client = new OpenAI({ baseURL, apiKey: 'none', ...llm.client })
  const ask = async (text: string) => {
    const messages = [{ role: 'user' as const, content: `Summarize: ${text}` }]
    const answer = await client.chat.completions.create({ model: 'tiny', max_tokens: 100, messages })
    return answer.choices[0]?.message.content ?? ''
  }
  return { answers: await Promise.all(texts.map(ask)), stats: llm.stats() }
}

if (process.argv[1]?.endsWith('llm.ts')) {
  let left = 6000
  const server = createServer((request, response) => {
    request.resume()
    left -= 100
    response.writeHead(left < 0 ? 429 : 200, {
      'content-type': 'application/json',
      'x-ratelimit-limit-tokens': '6000',
      'x-ratelimit-remaining-tokens': String(Math.max(0, left)),
      'x-ratelimit-reset-tokens': `${(6000 - left) / 100}s`,
    })
    response.end(JSON.stringify({ choices: [{ message: { content: 'short' } }] }))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { answers, stats } = await summaries(
    url,
    Array.from({ length: 20 }, (_, index) => `text ${index}`),
  )
  console.log(`${answers.length} answers, ${stats.sent} sent, ${stats.refused} refused`)
  server.close()
  server.closeAllConnections()
}
