/**
 * Plays `tests/vectors/routes.jsonl`: requests at their instants, what their servers answer, and when each
 * leaves. Python and Rust play the same cases (`python/tests/test_routes.py`, `tower/tests/routes.rs`).
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createThrottle, type ThrottleOptions } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

interface Ask {
  at: number
  /** `{n}` is the place among `count`. */
  url: string
  method?: string
  count?: number
  /** From send to answer, in milliseconds. */
  takes?: number
  status?: number
  fields?: Record<string, string>
  /** When each of them leaves; null where none does within half a minute. */
  leaves: number | null
}

interface Case {
  name: string
  options: ThrottleOptions
  /** When another throttle goes on from a snapshot. */
  restarts?: number
  asks: Ask[]
}

const cases: Case[] = readFileSync(new URL('../vectors/routes.jsonl', import.meta.url), 'utf8')
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line))

for (const { name, options, restarts, asks } of cases)
  test(name, async () => {
    const clock = new FakeClock()
    let throttle = createThrottle({ ...options, clock })
    let hasRestarted = false
    const left: (number | null)[][] = []
    for (const { at, url, method, count = 1, takes = 10, status = 200, fields = {} } of asks) {
      await clock.advance(at - clock.now())
      if (restarts !== undefined && at >= restarts && !hasRestarted) {
        throttle = createThrottle({ ...options, clock, snapshot: throttle.snapshot() })
        hasRestarted = true
      }
      const sent = Array<number | null>(count).fill(null)
      left.push(sent)
      for (let n = 0; n < count; n++) {
        const to = url.replace('{n}', String(n))
        const answer = async () => {
          sent[n] = clock.now()
          await new Promise<void>((resolve) => void clock.setTimeout(resolve, takes))
          return { status, headers: fields }
        }
        throttle.run(method ? new Request(to, { method }) : to, answer).catch(() => undefined)
      }
    }
    await clock.advance(30_000)
    for (const [place, { url, leaves }] of asks.entries())
      assert.deepEqual(new Set(left[place]), new Set([leaves]), `${place}: ${url}`)
  })
