/** What a throttle warns of: told once, to a listener, else on the console. */
import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import { createThrottle, type Permit, type Target, type ThrottleOptions } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

/** The lines that `console.warn` gets while `work` runs. */
async function printed(work: () => unknown): Promise<string[]> {
  const lines: string[] = []
  const printing = mock.method(console, 'warn', (line: string) => void lines.push(line))
  try {
    await work()
  } finally {
    printing.mock.restore()
  }
  return lines
}

const slow = (options: ThrottleOptions = {}) =>
  createThrottle({ clock: new FakeClock(), delay: 1000, warnThreshold: 2, ...options })

const fill = async (throttle = slow()) => {
  const left = [1, 2, 3, 4].map(() => throttle.acquire('https://a.example/').catch(() => {}))
  throttle.close()
  await Promise.all(left)
}

test('a warning that nobody listens to is one line', async () => {
  const lines = await printed(() => fill())
  assert.deepEqual(lines, ['autothrottle: 2 requests wait: pull work with throttle.map (many-waiting)'])
})

test('a setting without effect is a line, too', async () => {
  const lines = await printed(async () => {
    createThrottle({ concurrency: 2, scopes: { 'a.example': { concurrency: 5 } } })
    await undefined
  })
  assert.equal(lines.length, 1)
  assert.match(lines[0]!, /^autothrottle: scopes\."a\.example"\.concurrency has no effect.*\(no-effect\)$/)
})

test('who listens gets the event, and there is no line', async () => {
  const codes: string[] = []
  const lines = await printed(() => {
    const throttle = slow()
    throttle.addEventListener('warning', ({ code }) => codes.push(code))
    return fill(throttle)
  })
  assert.deepEqual([codes, lines], [['many-waiting'], []])
})

test('warnings: false prints nothing', async () => {
  assert.deepEqual(await printed(() => fill(slow({ warnings: false }))), [])
  assert.throws(() => createThrottle({ warnings: 'no' as never }), /warnings: want true or false; got "no"/)
})

test('a warning about a scope is told once for each scope', async () => {
  const lines = await printed(() => {
    const own = { delay: 2000 }
    const throttle = slow({ scopes: { 'a.example': own, 'b.example': own } })
    const text = 'User-agent: *\nCrawl-delay: 4\n'
    for (const host of ['a.example', 'b.example', 'a.example'])
      throttle.robots(host, text, { userAgent: 'x' })
  })
  assert.equal(lines.length, 2)
  assert.match(lines[1]!, /robots\.txt of b\.example .*\(robots-overruled\)$/)
})

describe('answers that a function keeps to itself', () => {
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

  test('the recipe of many URLs stops at a 429 with Retry-After', async () => {
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
})
