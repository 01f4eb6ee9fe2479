/**
 * Every block of code in the guides runs as it stands there: those in JavaScript and TypeScript here, in
 * virtual time, the others where `ELSEWHERE` says. A block's output must be that of its comments: `// → 200`.
 * `UNRUN` has the blocks that cannot run, each with its reason.
 *
 * The world of the guides: hosts answer 200 with "ok" after 100 ms; `busy.example` refuses the first request
 * with `Retry-After: 2`; `soft.example` answers 200 and says no in its body; `shop.example/graphql` says in
 * its body what is left; `pages.example` answers three items on two pages, with a cursor.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mock, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { format } from 'node:util'
import * as autothrottle from 'autothrottle'
import * as testing from 'autothrottle/testing'
import { FakeClock } from 'autothrottle/testing'
import { transform } from 'esbuild'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string) => readFileSync(`${root}${path}`, 'utf8')
const text = (page: string) => read(`docs/${page}.md`)
const PAGES = readdirSync(`${root}docs`)
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name}`)
  .concat('README.md', 'python/README.md', 'tower/README.md', 'site/pages/index.md')

/** Blocks of a page in a language that another test runs: that test names the page. */
const ELSEWHERE: Record<string, string> = {
  'docs/clients.md js': 'tests/js/conformance.ts',
  'docs/component.md js': 'tests/package/component.test.mjs',
  'docs/component.md rust': 'tests/native/tidy.rs',
  'docs/shared.md ts': 'tests/shared/docs.test.mjs',
  'docs/testing.md ts': 'tests/clients/timers.test.mjs',
  'docs/simulate.md ts': 'tests/js/simulate.test.ts',
  'docs/scrapy.md python': 'python/tests/with_scrapy/test_settings.py',
  'docs/shared.md python': 'python/tests/shared/test_redis.py',
  'python/README.md python': 'python/scripts/check.py',
  'README.md js': 'tests/js/pages.test.ts',
  'tower/README.md rust': 'tower/tests/layer.rs',
}

/** Blocks that no test runs, by page and language. */
const UNRUN: Record<string, string> = {
  'docs/command.md json': 'a line of a list; it is parsed here',
  'docs/component.md sh': 'fetches jco; tests/package/component.test.mjs calls the same code',
  'docs/runtimes.md http': 'a header that a site sends',
  'docs/runtimes.md json': 'a part of a manifest; it is parsed here',
  'docs/scrapy.md sh': 'the package is not published',
  'docs/start.md sh': 'the package is not published, and the clone has no address yet',
  'docs/trace.md sh': 'needs jq and the index of a crawl',
  'python/README.md console': 'the package is not published',
  'README.md sh': 'the package is not published',
}

/** The blocks of a page, each with its line. */
function blocksOf(page: string): { line: number; code: string; kind: string }[] {
  const whole = read(page)
  return [...whole.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(({ 1: kind, 2: code, index }) => ({
    line: whole.slice(0, index).split('\n').length,
    code: code!,
    kind: kind!,
  }))
}

/** Servers of the guides. */
function world(clock: testing.FakeClock): typeof fetch {
  let isBusy = true
  return async (input) => {
    const url = input instanceof Request ? input.url : String(input)
    await new Promise<void>((done) => clock.setTimeout(done, 100))
    let response = new Response('ok')
    if (url.startsWith('file:')) {
      response = new Response(readFileSync(new URL(url)), { headers: { 'content-type': 'application/wasm' } })
    }
    if (url.includes('soft.example')) response = Response.json({ error: 'too many requests' })
    if (url.includes('shop.example/graphql')) {
      const throttleStatus = { currentlyAvailable: 40, restoreRate: 10 }
      response = Response.json({ extensions: { cost: { throttleStatus } } })
    }
    if (url.includes('pages.example'))
      response = Response.json(url.includes('cursor') ? { data: [3] } : { data: [1, 2], cursor: 'next' })
    if (url.includes('busy.example') && isBusy) {
      isBusy = false
      response = new Response('', { status: 429, headers: { 'retry-after': '2' } })
    }
    Object.defineProperty(response, 'url', { value: url })
    return response
  }
}

const AsyncFunction = (async () => {}).constructor as new (
  ...source: string[]
) => (...args: unknown[]) => Promise<unknown>

/** The exports of a block: a Worker, a job of one, or an application of Express. */
type Exported =
  | { fetch?: () => Promise<Response>; scheduled?: unknown; listen?: Server['listen'] }
  | undefined

/** The one of this machine: a socket needs real turns of the loop, and no time. */
const fetchOf = globalThis.fetch

/** Runs a block with a clock of its own; gives what it printed. */
async function play(source: string): Promise<string[]> {
  const { code } = await transform(source, { loader: 'ts', format: 'esm', target: 'es2022' })
  const clock = new testing.FakeClock()
  const fetch = world(clock)
  const printed: string[] = []
  const modules: Record<string, object> = {
    autothrottle: {
      ...autothrottle,
      createThrottle: (options: autothrottle.ThrottleOptions = {}) =>
        autothrottle.createThrottle({ clock, fetch, seed: 1, ...options }),
    },
    'autothrottle/testing': testing,
    'autothrottle/slim.wasm?url': { default: pathToFileURL(`${root}pkg/autothrottle_bg.wasm`).href },
  }
  const body = code
    .replaceAll(/^import (\w+) from "(.+?)";$/gm, 'const { default: $1 } = await load("$2")')
    .replaceAll(/^import (\{.+?\}) from "(.+?)";$/gms, 'const $1 = await load("$2")')
    .replace(/^export \{\s*(\w+) as default\s*\};$/m, 'return $1')
    .replace(/^export default /m, 'return ')
    .replace(/^export \{\s*\w+\s*\};$/m, '')
  const load = async (name: string) => modules[name] ?? (await import(name))
  const console = { log: (...words: unknown[]) => void printed.push(format(...words)) }
  let isOver = false
  const run = new AsyncFunction('load', 'console', 'fetch', body)(load, console, fetch)
  const ended = run.finally(() => {
    isOver = true
  })
  ended.catch(() => {})
  for (let turn = 0; turn < 50_000 && !isOver; turn++) {
    await clock.advance(Number.isFinite(clock.nextAt) ? Math.max(0, clock.nextAt - clock.now()) : 0)
  }
  assert.ok(isOver, 'it ends')
  const exported = (await ended) as Exported
  if (exported?.listen) {
    const server = exported.listen(0, '127.0.0.1')
    try {
      await new Promise((done) => server.once('listening', done))
      const { port } = server.address() as AddressInfo
      let isAnswered = false
      const answer = fetchOf(`http://127.0.0.1:${port}/quote`).finally(() => {
        isAnswered = true
      })
      while (!isAnswered) await clock.advance(clock.timers > 0 ? clock.nextAt - clock.now() : 0)
      const response = await answer
      assert.deepEqual([response.status, await response.text()], [200, 'ok'])
    } finally {
      server.closeAllConnections()
      server.close()
    }
  }
  if (exported?.fetch) {
    const response = exported.fetch()
    await clock.advance(1000)
    assert.equal((await response).status, 200)
  }
  if (typeof exported?.scheduled === 'function') {
    const kept = new Map<string, string>()
    const KV = {
      get: async (key: string) => JSON.parse(kept.get(key) ?? 'null'),
      put: async (key: string, value: string) => void kept.set(key, value),
    }
    for (let minute = 0; minute < 2; minute++) {
      const done = exported.scheduled({}, { KV })
      await clock.advance(10_000)
      await done
    }
    assert.equal(JSON.parse(kept.get('pace')!).version > 0, true)
  }
  return printed
}

for (const page of PAGES) {
  for (const { line, code, kind } of blocksOf(page)) {
    const place = `${page} ${kind}`
    if (place in ELSEWHERE || place in UNRUN || kind === 'sh') continue
    test(`${page}, line ${line}`, async () => {
      assert.ok(kind === 'js' || kind === 'ts', `${kind}: say where it runs, or why it cannot`)
      const expected = [...code.matchAll(/^\/\/ → (.*)$/gm)].map(([, said]) => said)
      assert.ok(expected.length > 0 || /^export /m.test(code), 'it says what it prints')
      const warn = mock.method(console, 'warn', () => {})
      assert.deepEqual(await play(code).finally(() => warn.mock.restore()), expected)
      const said = warn.mock.calls.map(({ arguments: [words] }) => words)
      assert.deepEqual(said, [], 'no program of a page is warned')
    })
  }
}

test('each block runs here, in another test, or has its reason', () => {
  const places = new Set(PAGES.flatMap((page) => blocksOf(page).map(({ kind }) => `${page} ${kind}`)))
  for (const [place, file] of Object.entries(ELSEWHERE)) {
    assert.ok(places.has(place), `${place}: there is none any more`)
    assert.ok(existsSync(`${root}${file}`), file)
    const [, name] = place.match(/([\w-]+\.md)/)!
    assert.ok(read(file).includes(name!), `${file} reads ${name}`)
  }
  for (const place of Object.keys(UNRUN)) assert.ok(places.has(place), `${place}: there is none any more`)
  const fences = PAGES.flatMap((page) => read(page).match(/^\s*```.+$/gm) ?? [])
  assert.equal(fences.length, PAGES.flatMap(blocksOf).length, 'each fence says its language, at the margin')
})

test('JSON is JSON', () => {
  const found = PAGES.flatMap(blocksOf).filter(({ kind }) => kind === 'json')
  assert.ok(found.length >= 3)
  for (const { code } of found) JSON.parse(code)
})

test('the pages type commands and options in a shell that exist', () => {
  const help = (name: string) =>
    execFileSync(process.execPath, [`${root}dist/cli/bin.js`, name, '--help'], { encoding: 'utf8' })
  const typed = PAGES.flatMap(blocksOf)
    .filter(({ kind }) => kind === 'sh')
    .flatMap(({ code }) => [...code.matchAll(/^(?:.*\| )?npx autothrottle-cli (\w+)(.*?)(?: \| .*)?$/gm)])
  assert.ok(typed.length >= 4)
  for (const [line, name, rest] of typed) {
    const known = help(name!)
    for (const [option] of rest!.matchAll(/--[\w-]+/g))
      assert.ok(known.includes(option), `${line}: ${option}`)
  }
})

test('every error is in docs/errors.md, every event in docs/events.md', () => {
  const source = (name: string) => readFileSync(new URL(`../../js/${name}.ts`, import.meta.url), 'utf8')
  const codes = new Set([...source('base/errors').matchAll(/'(ERR_\w+)'/g)].map(([, code]) => code!))
  assert.ok(codes.size >= 12)
  for (const code of codes) assert.ok(text('errors').includes(`| \`${code}\` |`), code)
  const events = source('core/events').match(/export interface ThrottleEvents \{(.*?)^\}/ms)![1]!
  const names = [...events.matchAll(/^ {2}(\w+):/gm)].map(([, name]) => name!)
  assert.ok(names.length >= 9)
  for (const name of names) assert.ok(text('events').includes(`| \`${name}\` |`), name)
})

test('errors are found by the text that one pastes', () => {
  const { ClosedError, EngineBrokenError, QueueFullError, ScopeDownError, StalledError } = autothrottle
  const { BodyNotReplayableError, CostExceedsQuotaError, RetryAfterTooLongError, TimeoutError } = autothrottle
  const errors = [
    ...[
      new ClosedError(undefined),
      new EngineBrokenError(),
      new QueueFullError(),
      new BodyNotReplayableError(),
    ],
    ...[new ScopeDownError('a.example', 60_000), new StalledError('a.example', 60_000)],
    ...[
      new TimeoutError(5000),
      new TimeoutError(5000, true),
      new CostExceedsQuotaError('a.example', 'quota'),
    ],
    new RetryAfterTooLongError(600_000, 300_000, new Response()),
  ]
  for (const { code, message } of errors) {
    const [said] = message.replaceAll(/\d+|a\.example(?: \(quota\))?/g, '…').split(/ \(|: status/)
    const row = text('errors').match(new RegExp(`^\\| \`${code}\`.*$`, 'm'))![0]
    assert.ok(row.includes(said!), `${code}: ${said}`)
  }
})

// Each row of the README's table "I want … → type …": its code, as it stands there, measured in virtual
// time.

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

test('a hundred a minute, in bursts', async () => {
  const { sends, most } = await measure('a hundred a minute, in bursts', 180_000, 50, good)
  assert.deepEqual(sends.slice(0, 11), [...Array(10).fill(0), 50])
  assert.deepEqual([sends.length, most, sends[99], sends[100]], [300, 10, 450, 60_000])
  assert.equal(mostIn(sends, 60_000), 100)
})

test('one at a time', async () => {
  const { sends, most } = await measure('one at a time', 10_000, 100, good)
  assert.equal(most, 1)
  assert.deepEqual([sends.length, sends[1]], [100, 100])
})

test('eight at a time', async () => {
  const { sends, most } = await measure('eight at a time', 1000, 100, good)
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

test('I want what Scrapy does', async () => {
  const { sends } = await measure('what Scrapy does', 600_000, 2000, good)
  const learned = gaps(sends.filter((at) => at > 120_000))
  const mean = learned.reduce((sum, gap) => sum + gap, 0) / learned.length
  // Scrapy's slots are no bound, so the mean is that of the delay with its jitter.
  assert.ok(mean > 1900 && mean < 2100, `the delay follows the latency: ${mean.toFixed(0)} ms`)
})

test("I want what my API's headers say", async () => {
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

/** Two hundred pages at a server of thirty in ten seconds that says so: their time, and what it refused. */
async function pages(options: autothrottle.ThrottleOptions): Promise<[seconds: number, refused: number]> {
  const clock = new FakeClock()
  let opened = Number.NEGATIVE_INFINITY
  let used = 0
  let refused = 0
  const fetch = async () => {
    const at = clock.now()
    if (at >= opened + 10_000) [opened, used] = [at, 0]
    const left = Math.max(0, 30 - ++used)
    const isRefused = used > 30
    if (isRefused) refused++
    await new Promise<void>((done) => clock.setTimeout(done, 50))
    const says = `"30-in-10sec"; r=${left}; t=${Math.ceil((opened + 10_000 - at) / 1000)}`
    const headers = { 'ratelimit-policy': '"30-in-10sec"; q=30; w=10', ratelimit: says }
    return new Response('', { status: isRefused ? 429 : 200, headers })
  }
  const throttle = autothrottle.createThrottle({ ...options, clock, fetch, seed: 1 })
  let seconds = 0
  const all = Array.from({ length: 200 }, (_, page) => throttle.fetch(`https://api.example/${page}`))
  const ended = Promise.all(all).then(() => {
    seconds = Math.ceil(clock.now() / 1000)
  })
  await clock.advance(100_000)
  await ended
  return [seconds, refused]
}

test('docs/which-setting.md says how long an API takes whose headers say a limit', async () => {
  const [at, even] = [await pages({ concurrency: 8 }), await pages({ concurrency: 8, followRateLimit: true })]
  const said = text('which-setting').replaceAll(/\s+/g, ' ')
  assert.ok(said.includes(`take ${at[0]} s, and none is refused`), `${at}`)
  assert.ok(said.includes(`until the reset, which takes ${even[0]} s`), `${even}`)
  assert.deepEqual([at[1], even[1]], [0, 0])
})

/** Most in flight at one host with an answer of half a second, and what left in ten seconds. */
async function inFlight(options: autothrottle.ThrottleOptions): Promise<[most: number, sent: number]> {
  const clock = new FakeClock()
  let [flying, most, sent] = [0, 0, 0]
  const fetch = async () => {
    sent++
    most = Math.max(most, ++flying)
    await new Promise<void>((done) => clock.setTimeout(done, 500))
    flying--
    return new Response('ok')
  }
  const throttle = autothrottle.createThrottle({ ...options, clock, fetch, seed: 1, warnings: false })
  const all = Array.from({ length: 900 }, (_, page) => throttle.fetch(`https://api.example/${page}`))
  await clock.advance(9999)
  throttle.close()
  await Promise.allSettled([...all, clock.advance(500)])
  return [most, sent]
}

test('docs/start.md says how many requests are in flight', async () => {
  assert.deepEqual(await inFlight({ concurrency: 10 }), [10, 200])
  assert.deepEqual(await inFlight({ concurrency: 40 }), [40, 800])
  assert.deepEqual(await inFlight({ maxInFlight: 10, delay: 0 }), [1, 20])
  assert.equal((await inFlight({ concurrency: 10, delay: 1000, jitter: false }))[1], 10)
})

test('docs/which-setting.md says what `delay` is beside other settings', async () => {
  const lines = [
    ...text('which-setting').matchAll(/^\| (.+) \| ([\w,]+)(?: ms)?(?: .*)? \| \S+(?: ms)? \|$/gm),
  ]
  const typed = {
    concurrency: 3,
    rate: 5,
    quota: 100,
    rampup: true,
    delay: 70,
    slotDelay: 70,
    autothrottle: true,
  }
  let looked = 0
  for (const [, cell, says] of lines) {
    for (const name of cell === 'no pace'
      ? ['maxWaiting']
      : [...cell!.matchAll(/`(\w+)`/g)].map((all) => all[1]!)) {
      const throttle = autothrottle.createThrottle({ [name]: typed[name as keyof typeof typed] ?? 1000 })
      const { delayMs } = throttle.scope('api.example').stats
      const expected = says === 'yours' ? 70 : Number(says!.replace(',', ''))
      // A rate's gap, and the pace that rampup begins with, are no delays that were typed.
      if (name === 'rate' || name === 'rampup') continue
      looked++
      if (name === 'autothrottle') assert.ok(delayMs >= expected)
      else assert.equal(delayMs, expected, name)
    }
  }
  assert.ok(looked >= 6, `${looked}`)
})

/** Three minutes at a server of a hundred in each minute that says so with a bare 429: served, refused. */
async function minutes(options: autothrottle.ThrottleOptions): Promise<[served: number, refused: number]> {
  const clock = new FakeClock()
  let opened = Number.NEGATIVE_INFINITY
  let used = 0
  const counts: [number, number] = [0, 0]
  const fetch = async () => {
    if (clock.now() >= opened + 60_000) [opened, used] = [clock.now(), 0]
    const isRefused = ++used > 100
    counts[isRefused ? 1 : 0]++
    await new Promise<void>((done) => clock.setTimeout(done, 100))
    return new Response('', { status: isRefused ? 429 : 200 })
  }
  const retry = { limit: 5 }
  const throttle = autothrottle.createThrottle({ ...options, clock, fetch, seed: 1, warnings: false, retry })
  const all = Array.from({ length: 400 }, (_, page) => throttle.fetch(`https://api.example/${page}`))
  await clock.advance(179_999)
  throttle.close()
  await Promise.allSettled([...all, clock.advance(100)])
  return counts
}

test('docs/which-setting.md says what a limit of exactly the rate serves, and that a burst is refused', async () => {
  assert.deepEqual(await minutes({ rate: '100/min' }), [300, 0])
  assert.deepEqual(await minutes({ quota: { limit: 100, window: 60_000 }, concurrency: 10 }), [300, 0])
  const [served, refused] = await minutes({ rate: { limit: 100, window: 60_000, burst: 10 } })
  assert.ok(served < 300 && refused > 0, `${served} served, ${refused} refused`)
})

test('every row is measured', () => {
  assert.equal(rows.size, 7)
})
