/**
 * Each row of the README's table "I want … → type …": its code, as it stands there, measured in virtual
 * time.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import * as autothrottle from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
const table = readme.slice(readme.indexOf('## I want'), readme.indexOf('Each row is measured'))
const rows = new Map([...table.matchAll(/^\| ([^|]+) \| `(.+?)` \| /gm)].map((row) => [row[1]!, row[2]!]))

interface Answer {
  status: number
  headers?: Record<string, string>
}

/**
 * Lets the row's throttle send as much as it may to one host for so long; gives the send times in
 * milliseconds.
 */
async function measure(row: string, ms: number, latency: number, answer: (at: number) => Answer) {
  const code = rows.get(row)
  assert.ok(code, `the README has a row "${row}"`)
  const clock = new FakeClock()
  const createThrottle = (options: object) => autothrottle.createThrottle({ ...options, clock, seed: 1 })
  const throttle = new Function('createThrottle', 'fromScrapySettings', `return ${code}`)(
    createThrottle,
    autothrottle.fromScrapySettings,
  ) as autothrottle.Throttle
  const sends: number[] = []
  let most = 0
  let flying = 0
  let isOver = false
  const start = clock.now()
  const send = async () => {
    while (!isOver) {
      await throttle.run('https://api.example/', async () => {
        const at = clock.now() - start
        sends.push(at)
        most = Math.max(most, ++flying)
        const { status, headers = {} } = answer(at)
        await new Promise<void>((done) => clock.setTimeout(done, latency))
        flying--
        return { status, headers }
      })
    }
  }
  const all = Array.from({ length: 40 }, send)
  await clock.advance(ms)
  isOver = true
  throttle.close()
  await Promise.allSettled([...all, clock.advance(latency)])
  const warnings = throttle.stats().scopes['api.example']?.withoutEffect
  assert.equal(warnings, undefined, 'everything that is typed has an effect')
  return { sends: sends.filter((at) => at < ms), most }
}

const good = () => ({ status: 200 })
const gaps = (sends: readonly number[]) => sends.slice(1).map((at, index) => at - sends[index]!)
const mostIn = (sends: readonly number[], per: number) =>
  Math.max(...sends.map((from) => sends.filter((at) => at >= from && at < from + per).length))

test('five requests a second', async () => {
  for (const latency of [20, 1500]) {
    const { sends } = await measure('five requests a second', 60_000, latency, good)
    assert.equal(sends.length, 300)
    for (const gap of gaps(sends)) assert.ok(Math.abs(gap - 200) < 0.01, `${gap}`)
  }
})

test('a hundred a minute, with bursts', async () => {
  const { sends } = await measure('a hundred a minute, with bursts', 180_000, 50, good)
  assert.deepEqual(sends.slice(0, 11), [...Array(10).fill(0), 600])
  assert.equal(sends.length, 309)
  assert.ok(mostIn(sends, 60_000) <= 110)
})

test('one at a time', async () => {
  const { sends, most } = await measure('one at a time', 10_000, 100, good)
  assert.equal(most, 1)
  assert.deepEqual([sends.length, sends[1]], [100, 100])
})

test('eight at a time at each host', async () => {
  const { sends, most } = await measure('eight at a time at each host', 1000, 100, good)
  assert.equal(most, 8)
  assert.equal(sends.length, 80)
})

test('as fast as it can bear', async () => {
  // A bucket of ten that fills with 20 a second.
  let tokens = 10
  let seen = 0
  let refused = 0
  const bucket = (at: number) => {
    tokens = Math.min(10, tokens + ((at - seen) / 1000) * 20)
    seen = at
    if (tokens < 1) {
      if (at > 120_000) refused++
      return { status: 429 }
    }
    tokens--
    return { status: 200 }
  }
  const { sends } = await measure('as fast as it can bear', 420_000, 100, bucket)
  const rate = sends.filter((at) => at >= 120_000).length / 300
  assert.ok(rate > 17 && rate < 20.5, `${rate.toFixed(2)} a second of 20`)
  assert.ok(refused <= 15, `${refused} refused in five minutes`)
})

test('what Scrapy does', async () => {
  const { sends } = await measure('what Scrapy does', 600_000, 2000, good)
  const learned = gaps(sends.filter((at) => at > 120_000))
  const mean = learned.reduce((sum, gap) => sum + gap, 0) / learned.length
  assert.ok(mean > 2000 && mean < 2600, `the delay follows the latency: ${mean.toFixed(0)} ms`)
})

test("what my API's headers say", async () => {
  // Sixty in ten seconds, counted from the first.
  let opened = Number.NEGATIVE_INFINITY
  let left = 0
  let refused = 0
  const window = (at: number) => {
    if (at >= opened + 10_000) [opened, left] = [at, 60]
    if (left === 0) refused++
    const isFull = left === 0
    left = Math.max(0, left - 1)
    const reset = Math.ceil((opened + 10_000 - at) / 1000)
    const headers = {
      'RateLimit-Limit': '60',
      'RateLimit-Remaining': String(left),
      'RateLimit-Reset': String(reset),
      'RateLimit-Policy': '60;w=10',
    }
    return { status: isFull ? 429 : 200, headers }
  }
  const { sends } = await measure("what my API's headers say", 300_000, 300, window)
  assert.equal(refused, 0)
  const rate = sends.length / 300
  assert.ok(rate > 4.5 && rate <= 6, `${rate.toFixed(2)} a second of 6`)
})

test('every row is measured', () => {
  assert.equal(rows.size, 7)
})
