/**
 * What a throttle hears of answers that a function keeps to itself, and what it says where it hears none.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createThrottle, type Permit, type Target } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

const page = 'https://a.example/'
const refused = () => new Response('busy', { status: 429, headers: { 'retry-after': '600' } })

function make(answer = refused) {
  const clock = new FakeClock()
  let sent = 0
  const fetch = async () => {
    sent++
    return answer()
  }
  const throttle = createThrottle({ clock, fetch, rate: 100, warnings: false })
  const warned: string[] = []
  throttle.addEventListener('warning', ({ code, scope }) => warned.push(`${code} ${scope}`))
  const heard: (number | undefined)[] = []
  throttle.addEventListener('settle', ({ status }) => heard.push(status))
  return { clock, throttle, fetch, warned, heard, sent: () => sent }
}

/** Runs a function twenty-five times, and gives what was warned of. */
async function many(work: (permit: Permit) => unknown, target: Target = page) {
  const { clock, throttle, warned, heard } = make()
  const all = Promise.allSettled(Array.from({ length: 25 }, () => throttle.run(target, work)))
  await clock.advance(1000)
  throttle.close()
  await all
  return { warned, heard: heard[0] }
}

test('S2: the recipe of many URLs stops at a 429 with Retry-After', async () => {
  const { clock, throttle, sent, warned } = make()
  const urls = Array.from({ length: 100 }, (_, n) => page + n)
  const pages = (async () => {
    for await (const _ of throttle.map(urls, async (url, { fetch }) => (await fetch(url)).text()));
  })()
  const failed = assert.rejects(pages, { code: 'ERR_CLOSED' })
  await clock.advance(60_000)
  assert(sent() <= 16, `${sent()} requests after a 429`)
  assert.deepEqual(warned, [])
  throttle.close()
  await failed
})

test('a scope that is told nothing twenty times in a row says so, once', async () => {
  const silent = ['unheard a.example']
  const cases: [unknown, (permit: Permit) => unknown][] = [
    [silent, () => 'a string'],
    [silent, () => Promise.reject(new Error('HTTP 429'))],
    [[], () => 'jobs'],
  ]
  for (const [index, [expected, work]] of cases.entries())
    assert.deepEqual((await many(work, index === 2 ? { scopes: 'jobs' } : page)).warned, expected)
  const { clock, throttle, warned } = make()
  const all = (async () => {
    for (let n = 0; n < 60; n++) {
      const permit = await throttle.acquire(page)
      if (n % 19 === 0) permit.settle({ status: 200 })
      else permit.settle()
    }
  })()
  await clock.advance(5000)
  await all
  assert.deepEqual(warned, [])
})

test('heard: a response in the result, in the error, in its cause, at both depths', async () => {
  const response = refused()
  const thrown = (error: unknown) => () => Promise.reject(error)
  for (const work of [
    () => response,
    () => ({ response }),
    thrown(Object.assign(new Error('x'), { response })),
    thrown(new Error('x', { cause: response })),
    thrown(new Error('x', { cause: Object.assign(new Error('y'), { response }) })),
    thrown(new Error('x', { cause: { response: { statusCode: 429, headers: {} } } })),
  ])
    assert.equal((await many(work)).heard, 429)
  assert.equal((await many(thrown(new Error('HTTP 429')))).heard, undefined)
})
