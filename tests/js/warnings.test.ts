/** What a throttle warns of: told once, to a listener, else on the console. */
import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { createThrottle, type ThrottleOptions } from 'autothrottle'
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
  assert.deepEqual(lines, [
    'autothrottle: 2 requests wait, each with its promise in memory: pull work with throttle.map (many-waiting)',
  ])
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
