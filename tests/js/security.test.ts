/** Promises of SECURITY.md that no other test holds; and each promise there names a test that is there. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { type LookupFunction, Socket } from 'node:net'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createThrottle } from 'autothrottle'
import { rules } from 'autothrottle/robots'
import { FakeClock } from 'autothrottle/testing'
import { Agent, fetch as undiciFetch } from 'undici'
import { serve } from './serve.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(`${root}/${path}`, 'utf8')

/** The worst that a server may say of its limits, and the best. */
const WORST = {
  ...{ 'retry-after': '31536000', ratelimit: '"a";r=0;t=31536000', 'ratelimit-policy': '"a";q=1;w=31536000' },
  ...{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '9999999999', 'x-ratelimit-bucket': 'b.example' },
  ...{ 'x-ratelimit-scope': 'global', 'x-ratelimit-global': 'true' },
}
const BEST = {
  ...{ 'retry-after': '0', ratelimit: '"a";r=1000000;t=1', 'ratelimit-policy': '"a";q=1000000;w=1' },
  ...{ 'x-ratelimit-limit': '1000000', 'x-ratelimit-remaining': '1000000', 'x-ratelimit-reset': '1' },
}

/** When requests to a host leave, with others to a server that answers so. */
async function sendsBeside(other: ResponseInit, options: object = {}) {
  const clock = new FakeClock()
  const sends: Record<string, number[]> = { 'a.example': [], 'b.example': [] }
  const fetch = async (url: string) => {
    const { host } = new URL(url)
    sends[host]!.push(clock.now())
    return new Response('', host === 'a.example' ? other : {})
  }
  const throttle = createThrottle({ seed: 1, clock, fetch: fetch as typeof globalThis.fetch, ...options })
  const all = Array.from({ length: 20 }, (_, page) =>
    ['a', 'b'].map((host) => throttle.fetch(`https://${host}.example/${page}`).catch(() => {})),
  )
  await clock.advance(200_000)
  throttle.close()
  await Promise.all(all.flat())
  return sends
}

test('a server slows down itself alone, whatever it says', async () => {
  const defaults = { delay: 1000, jitter: false }
  const beside = await sendsBeside({}, { defaults })
  for (const status of [200, 429, 503]) {
    const sends = await sendsBeside({ status, headers: WORST }, { defaults })
    assert.deepEqual(sends['b.example'], beside['b.example'], `${status}`)
    assert.ok(sends['a.example']!.length < 20, 'it was heard')
  }
})

test('no server makes requests go faster than you allow, whatever it says', async () => {
  for (const status of [200, 302, 404, 429, 503]) {
    const defaults = { delay: 1000, jitter: false, slotDelay: 0 }
    const sends = (await sendsBeside({ status, headers: BEST }, { defaults }))['a.example']!
    for (const [index, at] of sends.slice(1).entries())
      assert.ok(at - sends[index]! >= 1000, `${status}: ${at - sends[index]!} ms`)
  }
})

test('a clock that jumps and goes back makes no burst', async () => {
  const fake = new FakeClock()
  let shift = 0
  const clock = {
    now: () => fake.now() + shift,
    wallNow: () => fake.wallNow() + shift,
    setTimeout: (wake: () => void, ms: number) => fake.setTimeout(wake, ms),
    clearTimeout: (handle: unknown) => fake.clearTimeout(handle),
  }
  let sends = 0
  const fetch = async () => {
    sends++
    return new Response('')
  }
  const defaults = { delay: 1000, jitter: false, slotDelay: 0 }
  const throttle = createThrottle({ seed: 1, clock, fetch, defaults })
  const all = Array.from({ length: 100 }, () => throttle.fetch('https://a.example/').catch(() => {}))
  const jumps = [3_600_000, -3_600_000, 60_000, -10_000, 86_400_000, -86_400_000]
  for (const jump of jumps) {
    shift += jump
    for (let step = 0; step < 10; step++) {
      const before = sends
      await fake.advance(500)
      assert.ok(sends - before <= 1, `${sends - before} at once, after ${jump} ms`)
    }
  }
  const most = 1 + (jumps.length * 5000) / 1000 + jumps.length
  assert.ok(sends > 1 && sends <= most, `${sends} of ${most}`)
  throttle.close()
  await Promise.all(all)
})

test('of what a server says, names of budgets and their routes are kept: no bodies, queries, other values', async () => {
  const clock = new FakeClock()
  const headers = {
    ...{ 'x-ratelimit-bucket': 'named', 'x-ratelimit-remaining': '0', 'x-ratelimit-limit': '10' },
    ...{ 'x-ratelimit-reset-after': '50', etag: 'secret-1', 'set-cookie': 'secret-2', location: '/secret-3' },
  }
  const fetch = async () => new Response('secret-4', { headers })
  const throttle = createThrottle({ clock, fetch, release: 'body' })
  const init = { headers: { authorization: 'secret-5' }, body: 'secret-6', method: 'POST' }
  const running = throttle.fetch('https://u:secret-7@a.example/path?key=secret-8#secret-9', init)
  running.catch(() => {})
  await clock.advance(5000)
  await running.then((response) => response.text()).catch(() => {})
  await throttle.fetch('https://a.example/path?key=secret-8').then(
    (response) => response.text(),
    () => {},
  )
  const kept = JSON.stringify([throttle.snapshot(), throttle.stats()])
  assert.match(kept, /named/)
  assert.match(kept, /\/path/)
  assert.doesNotMatch(kept, /secret/)
})

test('the engine is given no file, no socket and no clock', () => {
  for (const name of ['autothrottle', 'shared', 'llm']) {
    const glue = read(`pkg/${name}.js`)
    const start = glue.indexOf('function __wbg_get_imports')
    const given = glue.slice(start, glue.indexOf('\nfunction ', start + 1))
    assert.ok(start >= 0 && given.length > 100, name)
    assert.doesNotMatch(
      given,
      /\b(?:fetch|performance|Date|setTimeout|process|require|import|Socket|XMLHttp)\b/,
    )
  }
})

test('the package has no dependency of its own, no script at its installation, and makes no code of text', () => {
  const { dependencies, scripts, peerDependencies, peerDependenciesMeta } = JSON.parse(read('package.json'))
  assert.equal(dependencies, undefined)
  for (const name of Object.keys(peerDependencies)) assert.equal(peerDependenciesMeta[name].optional, true)
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare']) assert.ok(!(name in scripts), name)
  const files = readdirSync(`${root}/dist`, { recursive: true }).map(String)
  const code = files.filter((file) => /\.[cm]?js$/.test(file))
  assert.ok(code.length > 50, `${code.length} files`)
  for (const file of code) assert.doesNotMatch(read(`dist/${file}`), /(?<![.\w])eval\(|new Function\(/, file)
})

test('no request is sent but yours: no telemetry, whatever happens', async () => {
  const { connect } = Socket.prototype
  const { fetch } = globalThis
  const reached: unknown[] = []
  Socket.prototype.connect = function (this: Socket, ...to: unknown[]) {
    reached.push(to)
    return this
  } as typeof connect
  globalThis.fetch = (async (to: unknown) => {
    reached.push(to)
    return new Response('')
  }) as typeof fetch
  try {
    const clock = new FakeClock()
    const own: string[] = []
    const answers = [200, 429, 503, 404]
    const send = async (url: string) => {
      own.push(url)
      if (own.length % 5 === 0) throw new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } })
      return new Response('', { status: answers[own.length % 4]! })
    }
    const throttle = createThrottle({
      clock,
      fetch: send as typeof fetch,
      retry: { limit: 2 },
      downAfter: 1000,
    })
    throttle.addEventListener('warning', () => {})
    const all = Array.from({ length: 20 }, () => throttle.fetch('https://a.example/x').catch(() => {}))
    const lost = throttle.run('https://a.example/', () => Promise.reject(new Error('own'))).catch(() => {})
    await clock.advance(600_000)
    throttle.snapshot()
    throttle.stats()
    throttle.close()
    await Promise.all([...all, lost])
    assert.ok(own.length >= 5 && own.every((url) => url === 'https://a.example/x'), String(own))
    assert.deepEqual(reached, [])
  } finally {
    Socket.prototype.connect = connect
    globalThis.fetch = fetch
  }
})

test('it is published with provenance, and each night two builds are compared', () => {
  const workflow = read('.github/workflows/npm.yml')
  for (const folder of ['package', 'package-cli'])
    assert.ok(workflow.includes(`npm publish ./target/${folder} --provenance `), folder)
  assert.match(workflow, /id-token: write/)
  const nightly = read('tools/scripts/test.mjs')
  assert.match(nightly.slice(nightly.indexOf('async function nightly')), /'reproducible'/)
})

test('a lookup that refuses addresses of the inside is asked where the connection is made', async () => {
  let hits = 0
  const origin = await serve((_, response) => {
    hits++
    response.end('inside')
  })
  const lookup: LookupFunction = (_, __, done) => done(new Error('127.0.0.1 is inside'), '', 4)
  const dispatcher = new Agent({ connect: { lookup } })
  const throttle = createThrottle({
    fetch: ((url: string, init: object) =>
      undiciFetch(url, { ...init, dispatcher })) as unknown as typeof fetch,
  })
  const url = origin.replace('127.0.0.1', 'rebound.example')
  await assert.rejects(throttle.fetch(url), ({ cause }: Error) => /is inside/.test(String(cause)))
  assert.equal(hits, 0)
  await dispatcher.close()
})

test('the fetch option sees all that is sent: retries, redirects, robots.txt, calls that name their scopes', async () => {
  const seen: string[] = []
  const asked: string[] = []
  const answers = [429, 302]
  const fetch = async (input: RequestInfo | URL) => {
    seen.push(String(input))
    if (String(input).endsWith('robots.txt')) return new Response('')
    const status = answers.shift() ?? 200
    return new Response('', { status, headers: { location: 'https://b.example/' } })
  }
  const clock = new FakeClock()
  const getScopes = ({ url }: { url: string }) => {
    asked.push(url)
    return 'all'
  }
  const options = { retry: { limit: 1 }, redirects: 'throttle', robots: { userAgent: 'x', rules } } as const
  const throttle = createThrottle({ ...options, clock, fetch, getScopes })
  const running = throttle.fetch('https://a.example/', { throttle: { scopes: 'mine' } })
  for (let step = 0; step < 200; step++) await clock.advance(500)
  assert.equal((await running).status, 200)
  const robots = ['https://a.example/robots.txt', 'https://b.example/robots.txt']
  const pages = ['https://a.example/', 'https://a.example/', 'https://b.example/']
  assert.deepEqual(seen.toSorted(), [...robots, ...pages].toSorted())
  assert.ok(!asked.includes('https://a.example/'), 'a call that names its scopes does not ask')
})

test('each promise of SECURITY.md names a test that is there', () => {
  const rows = [...read('SECURITY.md').matchAll(/^\| .* \| `([\w./-]+)` \| (.+) \|$/gm)]
  assert.ok(rows.length > 30, `${rows.length} rows`)
  for (const [, file, title] of rows) {
    const text = read(file!)
    for (const each of title!.split(' · ')) assert.ok(text.includes(each), `${file}: ${each}`)
  }
})
