/**
 * The 20,000 steps of Scrapy's own AutoThrottle through the public face in milliseconds: equal to one part in
 * 10⁹.
 *
 * Each step is a request that is submitted, sent when its delay is over, and settled. Where Scrapy's slot was
 * given a delay of its own (DOWNLOAD_SLOTS), that is learned state: it comes in by a snapshot.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Engine, WAIT } from 'autothrottle/engine'

interface Vector {
  id: number
  settings: Record<string, number>
  slot?: { delay?: number }
  start: number
  steps: [latency: number | null, status: number, dontAdjust: boolean | 1 | null][]
  delays: number[]
}

const text = readFileSync(new URL('../vectors/autothrottle_vectors.jsonl', import.meta.url), 'utf8')
const vectors = text
  .trim()
  .split('\n')
  .slice(1)
  .map((line): Vector => JSON.parse(line))

test('20,000 of 20,000 steps', () => {
  let steps = 0
  for (const { id, settings, slot, start, steps: taken, delays } of vectors) {
    const engine = new Engine({
      defaults: {
        delay: (settings.DOWNLOAD_DELAY ?? 0) * 1000,
        slotDelay: 0,
        jitter: false,
        autothrottle: {
          startDelay: (settings.AUTOTHROTTLE_START_DELAY ?? 5) * 1000,
          maxDelay: (settings.AUTOTHROTTLE_MAX_DELAY ?? 60) * 1000,
          targetConcurrency: settings.AUTOTHROTTLE_TARGET_CONCURRENCY ?? 1,
        },
      },
    })
    if (slot?.delay !== undefined) {
      engine.restore({ version: 1, scopes: { x: { delaySeconds: slot.delay } } }, 0, 0)
    }
    const scope = engine.scope('x')
    close(engine.stats(scope).delayMs, start, `${id}: start`)
    let now = 0
    taken.forEach(([latency, status, dontAdjust], index) => {
      const ticket = engine.submit(now, [scope])
      let answer = engine.poll(now)
      if (answer === WAIT) {
        assert.ok(engine.wakeAt > now)
        now = engine.wakeAt
        answer = engine.poll(now)
      }
      assert.equal(answer, ticket, `${id}: step ${index} is sent`)
      engine.settle(now, ticket, {
        status,
        ...(latency === null ? {} : { latencyMs: latency * 1000 }),
        adjustDelay: dontAdjust !== true,
      })
      close(engine.stats(scope).delayMs, delays[index]!, `${id}: step ${index}`)
      steps++
    })
  }
  assert.equal(steps, 20_000)
})

function close(ms: number, seconds: number, what: string): void {
  const want = seconds * 1000
  assert.ok(Math.abs(ms - want) <= want * 1e-9, `${what}: want ${want}; got ${ms}`)
}
