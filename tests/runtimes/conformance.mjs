/**
 * Features that a user relies on, in any runtime: web APIs only, a real clock, a few milliseconds. Prints one
 * line.
 *
 * Timers are the runtime's own, so no test here says how long anything takes: only order, and not before.
 */
import {
  ConfigError,
  createThrottle,
  DisallowedError,
  fromScrapySettings,
  RetryAfterTooLongError,
  TimeoutError,
  throttledFetch,
} from 'autothrottle'
import { Engine, IDLE, parseHints, parseRobots, WAIT } from 'autothrottle/engine'
import { FakeClock } from 'autothrottle/testing'

let checks = 0
function check(what, got, want) {
  const [a, b] = [JSON.stringify(got), JSON.stringify(want)]
  if (a !== b) throw new Error(`${what}: got ${a}, want ${b}`)
  checks++
}
const thrown = async (work) => {
  try {
    await work()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}

// The engine, with a clock of our own: the draft's example to the millisecond.
const engine = new Engine({ defaults: { concurrency: 2, delay: 300, slotDelay: 1000, jitter: false } })
const scope = engine.scope('example.com')
const sent = []
const tickets = [1, 2, 3].map(() => engine.submit(0, [scope]))
for (let now = 0; sent.length < 3; ) {
  const ticket = engine.poll(now)
  if (ticket >= 0) {
    sent.push([tickets.indexOf(ticket), now])
    engine.settle(now, ticket, { status: 200, latencyMs: 0 })
  } else {
    check('what it says', ticket, WAIT)
    now = engine.wakeAt
  }
}
check('sends', sent, [
  [0, 0],
  [1, 300],
  [2, 1000],
])
check('idle', engine.poll(2000), IDLE)

// The readers.
check('hints', parseHints(new Headers({ 'Retry-After': '120' }), { status: 429 }).delayMs, 120_000)
check('robots', parseRobots('User-agent: *\nCrawl-delay: 2', 'any'), { crawlDelayMs: 2000 })

// A real fetch against a real clock; the server is a function.
const calls = []
const script = [
  new Response('busy', { status: 503 }),
  new Response('gone', { status: 429, headers: { 'retry-after': '3600' } }),
]
const fetch = async (input, init) => {
  const request = new Request(input, init)
  const { pathname } = new URL(request.url)
  calls.push(pathname)
  if (pathname === '/robots.txt') return new Response('User-agent: *\nDisallow:', { status: 200 })
  if (pathname === '/retry') return script.shift() ?? new Response('late')
  return new Response(`${request.method} ${pathname}`)
}
const fast = { delay: 5, slotDelay: 0, jitter: false, backoff: { minDelay: 5 } }
const throttle = createThrottle({
  fetch,
  defaults: fast,
  retry: { limit: 3 },
  robots: { userAgent: 'conformance' },
})
const texts = await Promise.all(
  [1, 2, 3].map(async (page) => (await throttle.fetch(`https://a.example/${page}`)).text()),
)
check('pages', texts, ['GET /1', 'GET /2', 'GET /3'])
check('calls', calls, ['/robots.txt', '/1', '/2', '/3'])
const tooLong = await thrown(() => throttle.fetch('https://a.example/retry'))
check(
  'a Retry-After that is too long',
  [tooLong instanceof RetryAfterTooLongError, tooLong.retryAfterMs],
  [true, 3_600_000],
)
check('the hold', throttle.scope('a.example').stats.holdUntil > 0, true)

// Giving up: by signal, by time, by closing.
const controller = new AbortController()
const held = throttle.fetch('https://a.example/never', { signal: controller.signal })
setTimeout(() => controller.abort(new Error('enough')), 5)
check('aborted', (await thrown(() => held)).message, 'enough')
const late = await thrown(() => throttle.fetch('https://a.example/never', { throttle: { maxWait: 5 } }))
check('timed out', late instanceof TimeoutError, true)
const closing = thrown(() => throttle.fetch('https://a.example/never'))
throttle.close()
check('closed', (await closing).code, 'ERR_CLOSED')

// Options, clocks, snapshots.
check(
  'all problems',
  (await thrown(() => createThrottle({ delay: 1, defaults: { delay: -1 } }))).problems.length,
  2,
)
check('of their class', (await thrown(() => fromScrapySettings({ NO_SUCH: 1 }))) instanceof ConfigError, true)
const clock = new FakeClock()
const slow = createThrottle({ clock, fetch, defaults: { delay: 60_000, jitter: false } })
const two = Promise.all([slow.fetch('https://b.example/1'), slow.fetch('https://b.example/2')])
await clock.advance(60_000)
check('an hour takes a millisecond', (await two).length, 2)
const again = createThrottle({
  clock,
  fetch,
  snapshot: JSON.parse(JSON.stringify(slow.snapshot())),
  defaults: { delay: 60_000, jitter: false },
})
check('a snapshot goes on', again.peek('https://b.example/').at, 120_000)
check(
  'throttledFetch',
  await (
    await throttledFetch({ fetch, defaults: fast })('https://c.example/x', { method: 'POST', body: 'y' })
  ).text(),
  'POST /x',
)
const mapped = []
for await (const item of createThrottle({ defaults: fast }).map([1, 2, 3], async (n) => n * 2, {
  target: () => ({ scopes: 'm' }),
}))
  mapped.push(item)
check('map', mapped, [2, 4, 6])
const strict = createThrottle({ fetch, defaults: fast, robots: { userAgent: 'x', rules: () => () => false } })
check('disallowed', (await thrown(() => strict.fetch('https://d.example/'))) instanceof DisallowedError, true)

console.log(`conformance: ${checks} checks passed`)
