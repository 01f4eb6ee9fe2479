/**
 * Plays `tests/vectors/endings.jsonl`: a request that is sent, what its server answers, what becomes of it,
 * alone and in a group.
 * Python plays the same cases with httpx (`python/tests/test_endings.py`) and in Scrapy
 * (`python/tests/with_scrapy/test_vectors.py`), tower with its retry layer (`tower/tests/vectors.rs`).
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import {
  type Clock,
  createThrottle,
  type RetryOptions,
  type Throttle,
  type ThrottleOptions,
} from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'
import { throttles } from './shared/world.js'

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

/** A throttle with these options, and how its time passes. */
interface Made {
  throttle: Throttle
  clock: Pick<Clock, 'now'>
  pass: (ms: number) => Promise<void>
}

function alone(options: ThrottleOptions): Made {
  const clock = new FakeClock()
  return { throttle: createThrottle({ clock, ...options }), clock, pass: (ms) => clock.advance(ms) }
}

/** One of two processes that share their limits: the other one decides. */
function member(options: ThrottleOptions): Made {
  const { world, all, processes } = throttles(2, options)
  return { throttle: all[1]!, clock: processes[1]!.clock, pass: (ms) => world.run(ms) }
}

async function play({ options, method = 'GET', body, when, answers, ends = 0 }: Case, make: typeof alone) {
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
  const { throttle, clock, pass } = make({
    ...{ fetch, jitter: false, delay: 0 },
    ...options,
    ...(retry ? { retry: { ...retry, ...asks } } : {}),
  } as ThrottleOptions)
  const sends = body === 'stream' ? { body: stream(), duplex: 'half' } : body ? { body: 'text' } : {}
  let told: { status?: number; fails?: boolean; error?: string; ends?: number } = {}
  void throttle.fetch(PAGE, { method, ...sends } as RequestInit).then(
    ({ status }) => (told = { status, ends: clock.now() }),
    ({ name, message }: Error) =>
      (told =
        message === 'fetch failed' ? { fails: true, ends: clock.now() } : { error: name, ends: clock.now() }),
  )
  await pass(ends + 8000)
  const { inFlight } = throttle.stats()
  throttle.close()
  return { ...told, calls, inFlight }
}

for (const each of cases) {
  const { name, options, method, body, when, answers, inFlight = 0, ...expected } = each
  test(name, async () => {
    const { ends, ...told } = await play(each, alone)
    assert.deepEqual({ ends: expected.ends ?? ends, ...expected, inFlight }, { ends, ...told })
  })
  // A member hears later that a scope is down: it takes the way there and back.
  if (expected.error !== 'ScopeDownError')
    test(`in a group: ${name}`, async () => {
      const { ends: _, inFlight: __, ...told } = await play(each, member)
      const { ends: ___, ...others } = expected
      assert.deepEqual(told, others)
    })
}
