/** robots.txt through the public face: against a fake clock and a scripted web. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import {
  createThrottle,
  DisallowedError,
  type ThrottleOptions,
  type TimeoutError,
  type WarningEvent,
} from 'autothrottle'
import { parseRobots } from 'autothrottle/engine'
import { rules } from 'autothrottle/robots'
import { FakeClock } from 'autothrottle/testing'
import { Dice } from './serve.js'

/** Its types do not say what Node makes of a CommonJS module. */
const robotsParser = createRequire(import.meta.url)('robots-parser') as (
  url: string,
  text: string,
) => { getCrawlDelay(userAgent: string): number | undefined }

const delayed = 'User-agent: foobot\nCrawl-delay: 3\nDisallow: /private\n'

function make(robots: Record<string, () => Response>, options: ThrottleOptions = {}) {
  const clock = new FakeClock()
  const calls: [string, number][] = []
  const agents = new Set<string | null>()
  const fetch = async (input: RequestInfo | URL, init?: RequestInit) => {
    const request = new Request(input, init)
    calls.push([request.url, clock.now()])
    if (!request.url.endsWith('/robots.txt')) return new Response('page')
    agents.add(request.headers.get('user-agent'))
    return (robots[new URL(request.url).host] ?? (() => new Response('none', { status: 404 })))()
  }
  const warnings: WarningEvent[] = []
  const throttle = createThrottle({
    clock,
    fetch,
    defaults: { delay: 500, slotDelay: 0, concurrency: 4, jitter: false },
    robots: { userAgent: 'foobot/1.0' },
    ...options,
  })
  throttle.addEventListener('warning', (event) => warnings.push(event))
  return { clock, calls, throttle, warnings, agents }
}

test('each host is asked once, first, through the throttle, and its delay is kept', async () => {
  const { clock, calls, throttle, agents } = make({ 'a.example': () => new Response(delayed) })
  const pages = [
    'https://a.example/1',
    'https://a.example/2',
    'https://b.example/1',
    'https://a.example/private',
  ]
  const all = Promise.all(pages.map((page) => throttle.fetch(page)))
  await clock.advance(20_000)
  assert.equal((await all).length, 4, 'without rules only the pace is obeyed')
  const a = calls.filter(([url]) => url.includes('a.example'))
  assert.deepEqual(a, [
    ['https://a.example/robots.txt', 0],
    ['https://a.example/1', 3000],
    ['https://a.example/2', 6000],
    ['https://a.example/private', 9000],
  ])
  assert.equal(calls.filter(([url]) => url.endsWith('b.example/robots.txt')).length, 1)
  assert.deepEqual([...agents], ['foobot/1.0'])
  assert.equal(throttle.scope('a.example').stats.slots, 1)
  assert.equal(throttle.scope('b.example').stats.slots, 4)
  const later = throttle.fetch('https://a.example/3')
  await clock.advance(86_400_000)
  await later
  const again = throttle.fetch('https://a.example/4')
  await clock.advance(20_000)
  await again
  assert.equal(calls.filter(([url]) => url === 'https://a.example/robots.txt').length, 2, 'kept for a day')
})

test('robots.txt itself, and what comes from no host, needs no rules', async () => {
  const { clock, calls, throttle } = make({})
  const all = Promise.all([
    throttle.fetch('https://a.example/robots.txt'),
    throttle.fetch('data:text/plain,here'),
  ])
  await clock.advance(5000)
  assert.deepEqual(
    (await all).map(({ status }) => status),
    [404, 200],
  )
  assert.deepEqual(calls.map(([url]) => url).sort(), ['data:text/plain,here', 'https://a.example/robots.txt'])
})

test('a robots.txt whose headers or body take longer than requestTimeout is given up, and asked for again', async () => {
  const stalls = [
    () => new Promise<Response>(() => {}),
    () => new Response(new ReadableStream({ pull: () => new Promise(() => {}) })),
    () => new Response('User-agent: *\nDisallow: /1'),
  ]
  const signals: (AbortSignal | null | undefined)[] = []
  const fetch = async (input: RequestInfo | URL, init?: RequestInit) => {
    if (!String(input).endsWith('/robots.txt')) return new Response('page')
    signals.push(init?.signal)
    return await stalls.shift()!()
  }
  const { clock, throttle } = make({}, { fetch, requestTimeout: 5000 })
  for (const asked of [1, 2]) {
    const page = throttle.fetch('https://a.example/1')
    const refused = assert.rejects(page, (error) => {
      return error instanceof DisallowedError && (error.cause as TimeoutError).isSent
    })
    await clock.advance(4999)
    assert.deepEqual([signals.length, signals.at(-1)?.aborted], [asked, false])
    await clock.advance(1)
    await refused
    assert.equal(signals.at(-1)?.aborted, true, 'its connection is not kept')
    assert.deepEqual([throttle.stats().waiting, throttle.stats().inFlight], [0, 0])
    await clock.advance(60_000)
  }
  const page = throttle.fetch('https://a.example/1')
  await clock.advance(5000)
  assert.equal((await page).status, 200)
  assert.deepEqual([signals.at(-1)?.aborted, clock.timers], [false, 0])
})

test('with retry, robots.txt is sent again as any URL is, and its host is not lost', async () => {
  const broken = new ReadableStream({
    pull: (controller) => controller.error(new TypeError('terminated')),
  })
  const answers = [
    () => new Response(broken),
    () => new Response('', { status: 503, headers: { 'retry-after': '1' } }),
    () => Promise.reject(Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNRESET' } })),
    () => new Response('User-agent: *\nDisallow: /no'),
  ]
  let asked = 0
  const fetch = async (input: RequestInfo | URL) =>
    String(input).endsWith('/robots.txt') ? answers[asked++]!() : new Response('page')
  const { clock, throttle } = make({}, { fetch, retry: { limit: 3 } })
  const pages = Promise.all([1, 2, 3].map((page) => throttle.fetch(`https://a.example/${page}`)))
  await clock.advance(30_000)
  assert.deepEqual([(await pages).map(({ status }) => status), asked], [[200, 200, 200], 4])
})

test('a robots.txt that is not to be had says so: it is another thing than a path that is not allowed', async () => {
  const down = make({}, { fetch: async () => new Response('', { status: 503 }), retry: { limit: 1 } })
  const page = assert.rejects(down.throttle.fetch('https://a.example/'), { isUnavailable: true })
  await down.clock.advance(10_000)
  await page
  const robots = { 'a.example': () => new Response('User-agent: *\nDisallow: /') }
  const { clock, throttle } = make(robots, { robots: { userAgent: 'foobot', rules } })
  const forbidden = assert.rejects(throttle.fetch('https://a.example/'), { isUnavailable: false })
  await clock.advance(1000)
  await forbidden
})

test('with obey: false no rules are fetched', async () => {
  const { clock, calls, throttle } = make({}, { robots: { userAgent: 'foobot/1.0', obey: false } })
  const page = throttle.fetch('https://a.example/1')
  await clock.advance(1000)
  assert.equal((await page).status, 200)
  assert.deepEqual(calls, [['https://a.example/1', 0]])
})

test('a robots.txt that leads to no host is one without rules', async () => {
  for (const location of ['data:text/plain,User-agent:*', 'ftp://a.example/robots.txt', 'http://[']) {
    const away = () => new Response('', { status: 302, headers: { location } })
    const { clock, calls, throttle } = make({ 'a.example': away })
    const page = throttle.fetch('https://a.example/1')
    await clock.advance(5000)
    assert.equal((await page).status, 200)
    assert.equal(calls.length, 2, location)
  }
})

test('the longest delay to believe is a minute, or what you say', async () => {
  const greedy = () => new Response('User-agent: *\nCrawl-delay: 86400')
  const { clock, throttle, warnings } = make({ 'a.example': greedy })
  const page = throttle.fetch('https://a.example/')
  await clock.advance(60_000)
  await page
  const cut = 'robots.txt of a.example asks for 86400000 ms between requests; robots.maxDelay makes it 60000'
  assert.deepEqual(
    warnings.map(({ code, message }) => [code, message]),
    [['wait-capped', cut]],
  )
  assert.equal(throttle.scope('a.example').stats.delayMs, 60_000)
  const own = make({ 'a.example': greedy }, { robots: { userAgent: 'foobot', maxDelay: 5000 } })
  const other = own.throttle.fetch('https://a.example/')
  await own.clock.advance(5000)
  await other
  assert.equal(own.throttle.scope('a.example').stats.delayMs, 5000)
})

test('4xx means no rules; 5xx and no answer mean nothing may be fetched, and asking again later', async () => {
  let down = true
  const flaky = () =>
    down ? new Response('down', { status: 503 }) : new Response('User-agent: *\nDisallow:')
  const broken = () => {
    throw Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } })
  }
  const { clock, calls, throttle } = make({ 'a.example': flaky, 'c.example': broken })
  const pages = ['https://a.example/', 'https://b.example/', 'https://c.example/']
  const all = Promise.allSettled(pages.map((page) => throttle.fetch(page)))
  await clock.advance(5000)
  const [a, b, c] = await all
  assert.equal(b?.status, 'fulfilled')
  for (const each of [a, c]) assert.ok(each?.status === 'rejected' && each.reason instanceof DisallowedError)
  assert.equal((c as PromiseRejectedResult).reason.cause.cause.code, 'ECONNREFUSED')
  await assert.rejects(
    throttle.fetch('https://a.example/2'),
    { code: 'ERR_DISALLOWED' },
    'at once, without asking',
  )
  assert.equal(calls.filter(([url]) => url === 'https://a.example/robots.txt').length, 1)
  down = false
  await clock.advance(60_000)
  const again = throttle.fetch('https://a.example/')
  await clock.advance(5000)
  assert.equal((await again).status, 200)
})

test('a 429 or 5xx is no file without rules: the one before counts, and is asked for again', async () => {
  for (const status of [429, 500, 503]) {
    let isDown = true
    const file = () => (isDown ? new Response('', { status }) : new Response('User-agent: *\nDisallow: /no'))
    const { clock, calls, throttle } = make({ 'a.example': file }, { robots: { userAgent: 'foobot', rules } })
    const asked = () => calls.filter(([url]) => url.endsWith('/robots.txt')).length
    const tries = async (path: string) => {
      const page = throttle.fetch(`https://a.example${path}`).then(
        ({ status }) => status,
        (error: DisallowedError) => error.isUnavailable,
      )
      await clock.advance(120_000)
      return page
    }
    assert.deepEqual([await tries('/'), asked()], [true, 1], 'nothing is known')
    isDown = false
    assert.deepEqual([await tries('/'), asked()], [200, 2])
    await clock.advance(86_400_000)
    isDown = true
    assert.deepEqual([await tries('/'), await tries('/no'), asked()], [200, false, 4], `${status}`)
    isDown = false
    assert.deepEqual([await tries('/'), await tries('/no'), asked()], [200, false, 5])
  }
})

test('with rules from autothrottle/robots, what is disallowed is not sent', async () => {
  const { clock, calls, throttle } = make(
    { 'a.example': () => new Response(delayed) },
    { robots: { userAgent: 'foobot', rules } },
  )
  const all = Promise.allSettled(
    ['https://a.example/private/x', 'https://a.example/'].map((page) => throttle.fetch(page)),
  )
  await clock.advance(10_000)
  const [first, second] = await all
  assert.ok(first?.status === 'rejected' && first.reason instanceof DisallowedError)
  assert.match(first.reason.message, /does not allow https:\/\/a\.example\/private\/x/)
  assert.equal(second?.status, 'fulfilled')
  assert.deepEqual(
    calls.map(([url]) => url),
    ['https://a.example/robots.txt', 'https://a.example/'],
  )
})

test('a scope with a pace of its own keeps it, with one warning; ignoreRobotsTxt silences it', async () => {
  const scopes = {
    'a.example': { delay: 100 },
    'b.example': { delay: 100, ignoreRobotsTxt: true },
    'c.example': { quota: 100 },
  }
  const { throttle, warnings } = make({}, { scopes })
  for (const host of ['a.example', 'a.example', 'b.example', 'c.example', 'https://d.example/robots.txt']) {
    assert.deepEqual(throttle.robots(host, delayed, { userAgent: 'foobot' }), { crawlDelayMs: 3000 })
  }
  assert.deepEqual(
    warnings.map(({ code, scope }) => [code, scope]),
    [['robots-overruled', 'a.example']],
  )
  assert.match(warnings[0]!.message, /3000 ms apart; the scope keeps its own settings/)
  const delayOf = (host: string) => throttle.scope(host).stats.delayMs
  assert.deepEqual(['a.example', 'b.example', 'c.example', 'd.example'].map(delayOf), [100, 100, 3000, 3000])
  assert.equal(throttle.robots('d.example', 'User-agent: *\nDisallow: /', { userAgent: 'foobot' }), null)
  assert.equal(delayOf('d.example'), 500, 'and back')
})

test('an abort ends the wait for the page, not for the robots.txt of others', async () => {
  const { clock, throttle } = make({ 'a.example': () => new Response(delayed) })
  const controller = new AbortController()
  const aborted = assert.rejects(
    throttle.fetch('https://a.example/1', { signal: controller.signal }),
    /enough/,
  )
  const other = throttle.fetch('https://a.example/2')
  controller.abort(new Error('enough'))
  await aborted
  assert.equal(getEventListeners(controller.signal, 'abort').length, 0)
  await clock.advance(10_000)
  assert.equal((await other).status, 200)
})

/**
 * Random files that leave no doubt, beside robots-parser. Of several delays ours is the largest and theirs
 * the last, so they grow; a group without a line is none to them.
 */
test('delays are read as robots-parser reads them', () => {
  const dice = new Dice(20_261_122)
  const one = <T>(list: readonly T[]) => list[dice.below(list.length)]!
  const key = (text: string) => one([text, text.toLowerCase(), text.toUpperCase()])
  let asked = 0
  for (let round = 0; round < 5000; round++) {
    let [delay, text] = [0, '']
    const line = (name: string, value: string) => {
      text += `${one(['', ' ', '\t'])}${key(name)}${one(['', ' '])}:${one(['', ' ', '  '])}${value}`
      text += one(['', ' ', ' # so', '#']) + one(['\n', '\r\n', '\r', '\n\n', '\n# a word\n'])
    }
    for (let group = 1 + dice.below(5); group > 0; group--) {
      for (let agent = 1 + dice.below(3); agent > 0; agent--)
        line('User-agent', one(['*', 'foobot', 'FooBot', 'foobot/2.1', 'foo', 'otherbot', 'bot']))
      for (let rule = 1 + dice.below(3); rule > 0; rule--) {
        const isDelay = dice.below(3) === 0
        if (isDelay) delay += 1 + dice.below(8)
        line(
          isDelay ? 'Crawl-delay' : one(['Disallow', 'Allow']),
          isDelay ? `${delay / 4}` : one(['', '/x', '/*']),
        )
      }
    }
    const theirs = robotsParser('https://a.example/robots.txt', text).getCrawlDelay('foobot/1.0')
    const ours = parseRobots(text, 'foobot/1.0')?.crawlDelayMs
    assert.equal(ours, theirs === undefined ? undefined : theirs * 1000, JSON.stringify(text))
    if (theirs !== undefined) asked++
  }
  assert.ok(asked > 1000 && asked < 4500, `${asked} of 5000 ask for a delay`)
})

test('rules find the group of a whole User-Agent, and keep to the rows of RFC 9309', () => {
  const url = 'https://a.example/robots.txt'
  const allows = (text: string, userAgent: string, path: string) =>
    rules(url, text, userAgent)(`https://a.example${path}`)
  const foobot = 'User-agent: foobot\nDisallow: /private\n\nUser-agent: *\nDisallow: /all'
  for (const agent of [
    'foobot',
    'FooBot/2.1',
    'Mozilla/5.0 (compatible; foobot/2.1; +https://a.example/bot)',
  ]) {
    assert.deepEqual([allows(foobot, agent, '/private'), allows(foobot, agent, '/all')], [false, true], agent)
  }
  for (const agent of ['foo', 'Mozilla/5.0 (compatible; barbot/1.0)', 'ours', 'other'])
    assert.deepEqual([allows(foobot, agent, '/private'), allows(foobot, agent, '/all')], [true, false], agent)
  for (const name of ['foobot*', 'foobot/3', 'FOOBOT # comment'])
    assert.equal(allows(`user-agent : ${name}\nDisallow: /x`, 'foobot/2.1', '/x'), false, name)
  // §5.1: a group of its own that has no rules.
  const empty = 'User-agent: *\nDisallow: *.gif$\nDisallow: /example/\n\nUser-agent: quxbot\n\nEOF'
  assert.deepEqual(
    [allows(empty, 'quxbot', '/example/'), allows(empty, 'foobot', '/example/')],
    [true, false],
  )
  // §2.2.2: the same letter, with and without percent-encoding.
  const rows = ['/foo/bar?baz=quz', '/foo/bar?baz=https%3A%2F%2Ffoo.bar', '/foo/bar/\u30C4', '/c/%62%61%7A']
  for (const row of [...rows, '/c/baz'])
    for (const path of [row, encodeURI(decodeURI(row)).replace(/%25/g, '%')])
      assert.equal(allows(`User-agent: *\nDisallow: ${row}`, 'foobot', path), false, `${row} ${path}`)
  assert.equal(allows('User-agent: *\nDisallow: /c/baz', 'foobot', '/c/%62%61%7A'), false)
  assert.equal(allows('User-agent: *\nDisallow: /c/%62%61%7A', 'foobot', '/c/baz'), false)
  assert.equal(allows('User-agent: *\nDisallow: /a%2Fb', 'foobot', '/a/b'), true, 'a slash is another one')
})

/** Both took time that grows as the square: half an hour of the event loop for a file of newlines. */
test('the longest robots.txt of what a pattern goes back over is read in one go', async () => {
  const most = 512_000
  const begin = (filler: string) => filler.repeat(most / filler.length - 100)
  for (const filler of ['\n', ' ', '\t', '\r\n', ' \n', 'disallow', 'disallow\n', 'disallow:\n']) {
    const text = `${begin(filler)}\nUser-agent: *\nDisallow: /private`
    const { clock, throttle, warnings } = make(
      { 'a.example': () => new Response(text) },
      { robots: { userAgent: 'foobot' } },
    )
    const page = throttle.fetch('https://a.example/1')
    await clock.advance(10_000)
    assert.equal((await page).status, 200)
    assert.match(String(warnings[0]?.message), /^Disallow in robots\.txt of a\.example has no effect/)
  }
  for (const [filler, end] of [
    ['*', 'x'],
    [' ', 'x'],
    ['* ', 'x'],
  ] as const) {
    const text = `User-agent: foobot${begin(filler)}${end}\nDisallow: /\nUser-agent: *\nDisallow: /private`
    const isAllowed = rules('https://a.example/robots.txt', text, 'foobot')
    assert.deepEqual([isAllowed('https://a.example/'), isAllowed('https://a.example/private')], [true, false])
  }
})

test('a Crawl-delay binds requests whose scopes do not name their host, too', async () => {
  const clock = new FakeClock()
  const sent: [string, number][] = []
  const fetch = async (input: RequestInfo | URL) => {
    const { pathname } = new URL(input as string)
    sent.push([pathname, clock.now()])
    return new Response(pathname === '/robots.txt' ? 'User-agent: *\nCrawl-delay: 5' : 'page')
  }
  for (const how of [{ getScopes: () => 'group' }, { throttle: { scopes: 'group' } }, {}]) {
    sent.length = 0
    const { throttle: own, ...options } = { throttle: {}, ...how }
    const throttle = createThrottle({ clock, fetch, delay: 0, robots: { userAgent: 'foobot' }, ...options })
    const start = clock.now()
    const urls = ['/1', '/2', '/3'].map((path) => `https://a.example${path}`)
    const all = Promise.all(urls.map((url) => throttle.fetch(url, { throttle: own })))
    await clock.advance(60_000)
    await all
    const times = sent.slice(1).map(([, at]) => at - start)
    assert.ok(times[1]! - times[0]! >= 5000 && times[2]! - times[1]! >= 5000, String(times))
  }
})

/** The same vectors are played by Rust and Python. */
test('rules: all vectors', () => {
  type Case = { name: string; ua: string; text: string; allowed: string[]; refused: string[] }
  const file = new URL('../vectors/robots-rules.jsonl', import.meta.url)
  const wrong: string[] = []
  for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
    const { name, ua, text, allowed, refused } = JSON.parse(line) as Case
    const isAllowed = rules('https://a.example/robots.txt', text, ua)
    for (const path of allowed)
      if (!isAllowed(`https://a.example${path}`)) wrong.push(`${name}: refuses ${path}`)
    for (const path of refused)
      if (isAllowed(`https://a.example${path}`)) wrong.push(`${name}: allows ${path}`)
  }
  assert.deepEqual(wrong, [])
})
