/**
 * Plays `tests/vectors/robots-answers.jsonl`: what becomes of requests by how their host answers for its
 * robots.txt. Python and Rust play the same cases (`python/tests/test_robots.py`, `tower/tests/robots.rs`).
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createThrottle, DisallowedError } from 'autothrottle'
import { rules } from 'autothrottle/robots'
import { FakeClock } from 'autothrottle/testing'

interface Answer {
  status?: number
  location?: string
  text?: string
  /** Filled up to that many bytes with a comment, and then this. */
  pad?: number
  after?: string
  /** Whether the body breaks off behind it. */
  breaks?: boolean
}

interface Case {
  name: string
  /** The result of `getScopes`. */
  scopes?: string
  retry?: number
  methods?: string[]
  /** In turn; the last one for ever. */
  robots: Answer[]
  /** Whether each leaves within twenty seconds; null where it is not allowed. */
  asks: { at: number; path: string; leaves: 'within' | null }[]
  /** From one to the next, in milliseconds. */
  gap?: number
  /** How often the file was asked for. */
  asked: number
}

const cases: Case[] = readFileSync(new URL('../vectors/robots-answers.jsonl', import.meta.url), 'utf8')
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line))

function answered({ status = 200, location, text = '', pad, after = '', breaks = false }: Answer): Response {
  const whole = pad === undefined ? text : `${text}#${'x'.repeat(pad - text.length - 1)}${after}`
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(whole))
      if (!breaks) controller.close()
    },
    pull(controller) {
      controller.error(new TypeError('terminated'))
    },
  })
  return new Response(body, { status, headers: location === undefined ? {} : { location } })
}

for (const { name, scopes, retry, methods, robots, asks, asked, gap } of cases)
  test(name, async () => {
    const clock = new FakeClock()
    let files = 0
    const left: Record<string, number> = {}
    const fetch = async (input: RequestInfo | URL) => {
      const { pathname } = new URL(String((input as Request).url ?? input))
      if (pathname === '/robots.txt') return answered(robots[Math.min(files++, robots.length - 1)]!)
      left[pathname] = clock.now()
      return new Response('')
    }
    const all = { delay: 0, concurrency: 9 }
    const throttle = createThrottle({
      ...{ clock, fetch: fetch as typeof globalThis.fetch },
      defaults: { delay: 1000, jitter: false, backoff: false },
      ...(retry === undefined ? {} : { retry: { limit: retry, ...(methods && { methods }) } }),
      robots: { userAgent: 'bot', rules },
      ...(scopes === undefined ? {} : { getScopes: () => scopes, scopes: { [scopes]: all } }),
    })
    const ended: [Promise<unknown>, boolean, string][] = []
    for (const { at, path, leaves } of asks) {
      await clock.advance(at - clock.now())
      delete left[path]
      const end = throttle.fetch(`https://a.example${path}`).catch((error: unknown) => error)
      ended.push([end, leaves !== null, `${path} at ${at}`])
      if (gap !== undefined) continue
      await clock.advance(20_000)
      assert.equal(left[path] !== undefined, leaves !== null, `${path} at ${at}`)
    }
    await clock.advance(20_000)
    for (const [end, isAllowed, what] of ended)
      assert.equal((await end) instanceof DisallowedError, !isAllowed, what)
    const times = asks.map(({ path }) => left[path]!)
    if (gap !== undefined)
      for (const [index, time] of times.slice(1).entries()) assert.equal(time - times[index]!, gap)
    assert.equal(files, asked)
  })
