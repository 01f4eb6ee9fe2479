/**
 * Plays `tests/vectors/endings.jsonl`: a request that is sent, what its server answers, what becomes of it.
 * Python plays the same cases with httpx (`python/tests/test_endings.py`) and in Scrapy
 * (`python/tests/with_scrapy/test_vectors.py`), tower with its retry layer (`tower/tests/vectors.rs`).
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createThrottle, type RetryOptions, type ThrottleOptions } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

type Answer =
  | { status: number; headers?: Record<string, string> }
  | { fails: 'connection' | 'timeout' }
  | { never: true }

interface Case {
  name: string
  options: ThrottleOptions & { retry?: RetryOptions }
  method?: string
  /** A text that can be sent again, or a stream. */
  body?: 'text' | 'stream'
  /** `retry.when` calls these statuses bad. */
  when?: number[]
  /** The answers of the server, one after the other; the last holds for all further ones. */
  answers: Answer[]
  calls: number
  status?: number
  error?: string
  /** The client's own error is the caller's. */
  fails?: boolean
  /** When the answer came, in milliseconds. */
  ends?: number
  /** Slots that are still taken then: the body is not read. */
  inFlight?: number
}

const PAGE = 'https://a.example/'
const CODES = { connection: 'ECONNRESET', timeout: 'ETIMEDOUT' }
const cases: Case[] = readFileSync(new URL('../vectors/endings.jsonl', import.meta.url), 'utf8')
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line))

const stream = () =>
  new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode('body'))
      controller.close()
    },
  })

for (const { name, options, method = 'GET', body, when, answers, ...expected } of cases)
  test(name, async () => {
    const clock = new FakeClock()
    let calls = 0
    const fetch = async () => {
      const answer = answers[Math.min(calls++, answers.length - 1)]!
      if ('fails' in answer)
        throw Object.assign(new TypeError('fetch failed'), { cause: { code: CODES[answer.fails] } })
      if ('never' in answer) return await new Promise<Response>(() => {})
      const { status, headers = {} } = answer
      const isEmpty = method === 'HEAD' || status === 204 || status === 205 || status === 304
      return new Response(isEmpty ? null : 'body', { status, headers })
    }
    const { retry } = options
    const asks = when && { when: ({ status }: Response) => when.includes(status) }
    const throttle = createThrottle({
      ...{ clock, fetch, jitter: false, delay: 0 },
      ...options,
      ...(retry ? { retry: { ...retry, ...asks } } : {}),
    } as ThrottleOptions)
    const sends = body === 'stream' ? { body: stream(), duplex: 'half' } : body ? { body: 'text' } : {}
    let told: Record<string, unknown> = {}
    void throttle.fetch(PAGE, { method, ...sends } as RequestInit).then(
      ({ status }) => (told = { status, ends: clock.now() }),
      ({ name, message }: Error) =>
        (told =
          message === 'fetch failed'
            ? { fails: true, ends: clock.now() }
            : { error: name, ends: clock.now() }),
    )
    await clock.advance(30_000)
    const { ends = told.ends, inFlight = 0, ...others } = expected
    assert.equal(throttle.stats().inFlight, inFlight)
    assert.deepEqual({ ...told, calls }, { ...others, ...(ends === undefined ? {} : { ends }) })
  })
