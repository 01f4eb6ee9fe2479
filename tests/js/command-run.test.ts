/** Crawls and lists in this process, against a web of functions and a clock that is moved on. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { FakeClock } from 'autothrottle/testing'
import { receive } from '../../js/command/body.js'
import { readingOf } from '../../js/command/links.js'
import { fileOf } from '../../js/command/store.js'
import { json, shown } from '../../js/command/terminal.js'
import { broken, fresh, html, listOf, type Page, run } from './command-web.js'

const robotsOnce = (first: Page): Page => {
  const answers = [first]
  return (init, clock) =>
    (answers.shift() ?? (() => new Response('User-agent: *\nDisallow: /no')))(init, clock)
}

for (const [how, first] of [
  ['is refused', () => new Response('', { status: 503, headers: { 'retry-after': '1' } })],
  ['drops its connection', broken('ECONNRESET')],
] as const)
  test(`a robots.txt that ${how} once is asked for again, and its host is not lost`, async () => {
    const urls = Array.from({ length: 20 }, (_, page) => `https://a.example/${page}`)
    const web = Object.fromEntries(urls.map((url) => [url, html('x')]))
    const { totals, codes, seconds } = await run('get', [listOf(...urls, 'https://a.example/no')], {
      ...web,
      'https://a.example/robots.txt': robotsOnce(first),
    })
    assert.deepEqual([totals.pages, totals.disallowed, totals.failed], [20, 1, 0])
    assert.equal(codes['https://a.example/no'], 'ERR_ROBOTS')
    assert.ok(seconds < 120, `${seconds} s`)
  })

test('a robots.txt that never comes: its host is left alone, and what it has stays in the state', async () => {
  const urls = Array.from({ length: 20 }, (_, page) => `https://a.example/${page}`)
  const web: Record<string, Page> = Object.fromEntries(urls.map((url) => [url, html('x')]))
  const robots = 'https://a.example/robots.txt'
  web[robots] = () => new Response('', { status: 503 })
  const list = listOf(...urls)
  const state = ['--state', fresh('.state')]
  const first = await run('get', [list, ...state], web)
  assert.deepEqual(first.asked, [robots, robots, robots, robots])
  assert.deepEqual([first.totals.stalled, first.totals.disallowed, first.lines.length], [20, 0, 0])
  delete web[robots]
  const second = await run('get', [list, ...state], web, first.out)
  assert.deepEqual([second.totals.pages, second.lines.length], [20, 20])
  web[robots] = () => new Response('', { status: 503 })
  const without = await run('get', [list], web)
  assert.deepEqual([without.lines.length, without.totals.failed], [20, 20], 'each has its line')
  assert.ok(without.lines.every(({ code }) => code === 'ERR_ROBOTS'))
})

test('failures have codes of their own, with robots.txt and without', async () => {
  const kinds = {
    ENOTFOUND: 'ERR_DNS',
    ECONNREFUSED: 'ERR_CONNECTION_REFUSED',
    ECONNRESET: 'ERR_CONNECTION_RESET',
    DEPTH_ZERO_SELF_SIGNED_CERT: 'ERR_TLS',
    CERT_HAS_EXPIRED: 'ERR_TLS',
    EHOSTUNREACH: 'ERR_UNREACHABLE',
    UND_ERR_CONNECT_TIMEOUT: 'ERR_TIMEOUT',
  }
  const web: Record<string, Page> = {}
  for (const [at, code] of Object.keys(kinds).entries())
    for (const path of ['robots.txt', '']) web[`https://${at}.example/${path}`] = broken(code)
  const urls = Object.keys(kinds).map((_, at) => `https://${at}.example/`)
  for (const more of [[], ['--ignore-robots']]) {
    const { lines, totals } = await run('get', [listOf(...urls), '--retries', '0', ...more], web)
    const codes = urls.map((url) => lines.find((line) => line.url === url)?.code)
    assert.deepEqual(codes, Object.values(kinds), more.join())
    assert.deepEqual([totals.failed, totals.disallowed], [urls.length, 0])
  }
})

test('a start that redirects to another host goes on there, without what says who we are', async () => {
  const seen: Record<string, string | null> = {}
  const note =
    (name: string, page: Page): Page =>
    (init, clock) => {
      seen[name] = new Headers(init.headers).get('authorization')
      return page(init, clock)
    }
  const to = (location: string) => () => new Response('', { status: 301, headers: { location } })
  const web = {
    'http://site.example/': note('start', to('https://site.example/')),
    'https://site.example/': to('https://www.site.example/'),
    'https://www.site.example/': note(
      'www',
      html('<a href="/a">a</a><a href="https://other.example/">o</a>'),
    ),
    'https://www.site.example/a': note('a', to('https://elsewhere.example/')),
  }
  const { codes } = await run('crawl', ['http://site.example/', '--header', 'Authorization: me'], web)
  assert.deepEqual(codes, {
    'http://site.example/': 301,
    'https://site.example/': 301,
    'https://www.site.example/': 200,
    'https://www.site.example/a': 301,
  })
  assert.deepEqual(seen, { start: 'me', www: null, a: null })
})

test('credentials go to the origins that were given: no other scheme, no other port', async () => {
  const seen: Record<string, string | null> = {}
  const note =
    (name: string, body: string): Page =>
    (init) => {
      seen[name] = new Headers(init.headers).get('cookie')
      return html(body)()
    }
  const web = {
    'https://site.example/': note('start', '<a href="http://site.example/">plain</a><a href="/own">own</a>'),
    'https://site.example/own': note('own', ''),
    'http://site.example/': note('plain', ''),
  }
  const { codes } = await run('crawl', ['https://site.example/', '--header', 'Cookie: me'], web)
  assert.equal(codes['http://site.example/'], 200)
  assert.deepEqual(seen, { start: 'me', own: 'me', plain: null })
})

test('a sitemap is read in one look at each character, whatever it holds', () => {
  const base = new URL('https://a.example/sitemap.xml')
  const read = (text: string) => {
    const reading = readingOf('application/xml', base)!
    reading.write(new TextEncoder().encode(text))
    const { urls, isSitemap } = reading.end()
    return [isSitemap, [...urls].map(({ href }) => href)]
  }
  const comments = '<!---->'.repeat(40)
  // Once in exponential time, and with the fifth power of the blanks.
  assert.deepEqual(read(`${comments}<x`), [false, []])
  assert.deepEqual(read(`<urlset><loc>${' '.repeat(1e6)}`), [true, []])
  assert.deepEqual(read(`<urlset><loc>${' '.repeat(1e6)}/a</loc></urlset>`), [true, []])
  assert.deepEqual(read(`${'<!-- - -->'.repeat(1e5)}<urlset></urlset>`), [true, []])
  const text =
    '<?xml version="1.0"?><!-- c --><s:urlset xmlns:s="x"><s:url><s:loc> /a?b=1&amp;c=&#50; </s:loc></s:url>' +
    '<url><loc><![CDATA[/d?e&f]]></loc></url><url><loc>mailto:g</loc></url><!-- <loc>/h</loc> --></s:urlset>'
  assert.deepEqual(read(text), [true, ['https://a.example/a?b=1&c=2', 'https://a.example/d?e&f']])
  assert.deepEqual(read('<rss><loc>/a</loc></rss>'), [false, []])
})

test('no byte of a stranger is a command for a terminal', () => {
  for (let code = 0; code < 0x3000; code++) {
    const text = shown(`a${String.fromCharCode(code)}b`)
    assert.match(text, /^a(?:[\n -~\u00a0-\u2fff]|\\u[0-9a-f]{4})b$/)
    assert.ok(!/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u.test(text.replaceAll('\n', '')), text)
    assert.equal(JSON.parse(json({ text: String.fromCharCode(code) })).text, String.fromCharCode(code))
  }
})

test('two URLs never share a file, and no content type is a property of objects', () => {
  const files = new Set<string>()
  const count = 200_000
  for (let page = 0; page < count; page++)
    files.add(fileOf(new URL(`https://a.example/list?page=${page}`), 'text/html').toLowerCase())
  assert.equal(files.size, count)
  for (const type of ['constructor', '__proto__', 'toString; charset=x'])
    assert.match(fileOf(new URL('https://a.example/x'), type), /\.bin$/)
})

test('a Location in UTF-8, whose bytes come as letters, leads to its page', async () => {
  const location = Buffer.from('/zürich').toString('latin1')
  const web = {
    'https://a.example/': () => new Response('', { status: 302, headers: { location } }),
    'https://a.example/z%C3%BCrich': html('x'),
  }
  const { codes } = await run('crawl', ['https://a.example/'], web)
  assert.deepEqual(codes, { 'https://a.example/': 302, 'https://a.example/z%C3%BCrich': 200 })
})

test('links are those of tags: odd pages, in one piece and byte by byte', () => {
  const pages: [page: string, paths: string][] = [
    [
      `<A HREF=a/>1</A><a href='b&amp;c=&#x41;&copy=1' href=no>2</a><area href="d&eacute;">`,
      'a/ b&c=A&copy=1 d%C3%A9',
    ],
    ['<p title="<a href=no>" / <a href=a><b></p></i><a\nhref\n=\nb>', 'b'],
    ['<a href><a =href=no><a href=c#d><base target=x><base href=e/><base href=no/><a href=f>', ' c e/f'],
    ['<!-- <a href=no> --><!--> <a href=a> <!-- --!><a href=b><!x <a href=c><?x <a href=d>', 'a b'],
    ['<script>"<a href=no></a>"</script><style><a href=no></style><title><a href=no></title><a href=a>', 'a'],
    ['<textarea><a href=no></textarea><xmp><a href=no></xmp><iframe><a href=no></iframe><a href=a>', 'a'],
    ['<noscript><style><a href=no></noscript><noembed><a href=no></noembed><a href=a>', 'a'],
    ['<template><template></template><a href=no></template></template><a href=a>', 'a'],
    ['<svg><style/><script/><a href=a></svg><style/><a href=no></style><math/><title><a href=no>', 'a'],
    ['<scripts><a href=a></scripts><plaintext><a href=no></plaintext><a href=no>', 'a'],
    // A browser takes the first two for text, and the third for a link.
    ['<script><!-- <script></script><a href=a> --></script></b title="><a href=b>">', 'a b'],
    ['<svg><![CDATA[<a href=no>]]></svg><![CDATA[<a href=no>]]><a href=a>', 'a'],
  ]
  const base = new URL('https://a.example/x/')
  for (const [page, paths] of pages)
    for (const size of [1, page.length]) {
      const reading = readingOf('text/html', base)!
      for (let at = 0; at < page.length; at += size) reading.write(Buffer.from(page.slice(at, at + size)))
      const found = [...reading.end().urls].map(({ href }) => href.slice(base.href.length))
      assert.deepEqual(found, paths.split(' '), page)
    }
})

test('a page with a hundred thousand open tags is read as fast as others: a stack of them takes minutes', () => {
  const reading = readingOf('text/html', new URL('https://a.example/'))!
  const opened = Buffer.from('<svg><template><b>'.repeat(1000))
  for (let part = 0; part < 100; part++) reading.write(opened)
  reading.write(Buffer.from('</template></svg>'.repeat(100_000)))
  reading.write(Buffer.from('<a href=a>'))
  assert.deepEqual([...reading.end().urls].map(String), ['https://a.example/a'])
})

test('one page that drops its connection costs one step of backoff, not four', async () => {
  const urls = Array.from({ length: 60 }, (_, page) => `https://a.example/${page}`)
  const web: Record<string, Page> = Object.fromEntries(urls.map((url) => [url, html('x')]))
  const usual = await run('get', [listOf(...urls)], web)
  web['https://a.example/20'] = broken('ECONNRESET')
  const dropped = await run('get', [listOf(...urls)], web)
  assert.deepEqual([dropped.totals.pages, dropped.lines.find(({ error }) => error)?.attempts], [59, 4])
  assert.ok(dropped.seconds < usual.seconds + 60, `${dropped.seconds} s after ${usual.seconds} s`)
})

test('--state tries again what had no answer; --retry-failed what was refused and not allowed, too', async () => {
  const web: Record<string, Page> = {
    'https://a.example/ok': html('x'),
    'https://a.example/down': broken('ECONNREFUSED'),
    'https://a.example/gone': () => new Response('', { status: 500 }),
  }
  web['https://a.example/robots.txt'] = () => new Response('User-agent: *\nDisallow: /no')
  const list = listOf(...['ok', 'down', 'gone', 'no'].map((path) => `https://a.example/${path}`), 'nonsense')
  const usual = [list, '--retries', '0', '--state', fresh('.state')]
  const first = await run('get', usual, web)
  assert.deepEqual(first.codes, {
    'https://a.example/ok': 200,
    'https://a.example/down': 'ERR_CONNECTION_REFUSED',
    'https://a.example/gone': 500,
    'https://a.example/no': 'ERR_ROBOTS',
    nonsense: 'ERR_LINE',
  })
  for (const path of ['down', 'gone', 'no']) web[`https://a.example/${path}`] = html('x')
  delete web['https://a.example/robots.txt']
  const second = await run('get', usual, web, first.out)
  const pages = (asked: string[]) => asked.filter((url) => !url.endsWith('robots.txt')).sort()
  assert.deepEqual(pages(second.asked), ['https://a.example/down'])
  assert.deepEqual([second.codes['https://a.example/down'], second.lines.length], [200, 5])
  const third = await run('get', [...usual, '--retry-failed'], web, first.out)
  assert.deepEqual(pages(third.asked), ['https://a.example/gone', 'https://a.example/no'])
  assert.equal(third.lines.length, 5, 'nothing is in the index twice')
})

test('a line that is no URL is a line with an error, and the list goes on', async () => {
  const list = listOf(
    'https://a.example/1',
    'www.example.com/x',
    '{"url": 7}',
    '{',
    '',
    '# no',
    'https://a.example/2',
  )
  const web = { 'https://a.example/1': html('x'), 'https://a.example/2': html('x') }
  const { lines, totals } = await run('get', [list], web)
  const wrong = lines.filter(({ code }) => code === 'ERR_LINE')
  assert.deepEqual(
    wrong.map(({ url, line }) => [url, line]),
    [
      ['www.example.com/x', 2],
      ['{"url": 7}', 3],
      ['{', 4],
    ],
  )
  assert.match(String(wrong[0]!.error), /^line 2: want a URL that starts with http/)
  assert.deepEqual([totals.pages, totals.failed], [2, 3])
})

test('response headers only where they are asked for, and cookies only by name', async () => {
  const headers = { 'content-type': 'text/html', etag: '"1"', age: '3', 'set-cookie': 'session=1' }
  const web = { 'https://a.example/': () => new Response('x', { headers }) }
  const of = async (...args: string[]) => {
    const { lines } = await run('get', [listOf('https://a.example/'), ...args], web)
    return Object.keys((lines[0]!.headers as object | undefined) ?? {}).sort()
  }
  assert.deepEqual(await of(), [])
  assert.deepEqual(await of('--headers'), ['age', 'content-type', 'etag'])
  assert.deepEqual(await of('--headers', 'ETag,set-cookie'), ['etag', 'set-cookie'])
})

test('a body goes to its file piece by piece; one that breaks off leaves none', async () => {
  const piece = Buffer.alloc(100_000, 'x')
  let given = 0
  const long = (breaksAt: number) => () => {
    given = 0
    const pull = (controller: ReadableStreamDefaultController) => {
      if (++given === breaksAt) controller.error(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))
      else if (given > 20) controller.close()
      else controller.enqueue(piece)
    }
    return new Response(new ReadableStream({ pull }), { headers: { 'content-type': 'text/plain' } })
  }
  const list = listOf('https://a.example/long.txt')
  const whole = await run('get', [list], { 'https://a.example/long.txt': long(0) })
  const [{ file, bytes } = {}] = whole.lines
  assert.deepEqual([bytes, readFileSync(join(whole.out, String(file))).length], [2_000_000, 2_000_000])
  const cut = await run('get', [list, '--max-size', '700000'], { 'https://a.example/long.txt': long(0) })
  assert.deepEqual([cut.lines[0]!.bytes, cut.lines[0]!.truncated, given < 12], [700_000, true, true])
  const torn = await run('get', [list], { 'https://a.example/long.txt': long(9) })
  assert.deepEqual(
    [torn.codes, torn.lines[0]!.file],
    [{ 'https://a.example/long.txt': 'ERR_CONNECTION_RESET' }, undefined],
  )
  assert.equal(existsSync(join(torn.out, String(file))), false)
})

test('a long body in a line comes piece by piece, and no line comes in between', async () => {
  // Pieces end in the middle of letters, and of three bytes.
  const text = Buffer.from('a "quoted" line\\n\n\u0001 é€😀'.repeat(60_000))
  const page = (type: string) => () => {
    let at = 0
    const pull = (controller: ReadableStreamDefaultController) => {
      if (at >= text.length) return controller.close()
      controller.enqueue(text.subarray(at, at + 49_999))
      at += 49_999
    }
    return new Response(new ReadableStream({ pull }), { headers: { 'content-type': type } })
  }
  const web = {
    'https://a.example/long': page('text/plain; charset=utf-8'),
    'https://b.example/long': page('application/octet-stream'),
    'https://c.example/short': () => new Response('short', { headers: { 'content-type': 'text/plain' } }),
  }
  const { lines, out } = await run('get', [listOf(...Object.keys(web)), '--body'], web)
  const of = (url: string) => lines.find((line) => line.url === url)!
  assert.equal(lines.length, 3)
  assert.equal(of('https://a.example/long').body, text.toString())
  assert.ok(Buffer.from(String(of('https://b.example/long').base64), 'base64').equals(text))
  assert.equal(of('https://c.example/short').body, 'short')
  assert.equal(of('https://a.example/long').bytes, text.length)
  assert.deepEqual(readdirSync(out).sort(), ['index.jsonl', 'pages'])
})

test('a body without a file of its own has one until it was read', async () => {
  const long = () => new Response(Buffer.alloc(3_000_000, 'é'))
  const within = { ms: 1000, clock: new FakeClock() }
  const ways = { most: 1e9, within, file: undefined, isReadAgain: true, spare: () => fresh('.spare') }
  let spare = ''
  const body = await receive(long(), { ...ways, spare: () => (spare = fresh('.spare')) })
  assert.deepEqual([body.held, existsSync(spare)], [undefined, true])
  const parts: Uint8Array[] = []
  for await (const part of body.read()) parts.push(part)
  assert.ok(Buffer.concat(parts).equals(Buffer.alloc(3_000_000, 'é')))
  await body.drop()
  assert.equal(existsSync(spare), false)
  const short = await receive(new Response('short'), ways)
  assert.equal(short.held?.toString(), 'short')
  await short.drop()
  const none = await receive(long(), { ...ways, isReadAgain: false })
  await none.drop()
  assert.deepEqual([...(none.read() as Iterable<Uint8Array>)], [])
  let pulled = 0
  const pull = (controller: ReadableStreamDefaultController) => {
    if (++pulled > 5) controller.error(new Error('torn'))
    else controller.enqueue(Buffer.alloc(400_000))
  }
  const torn = new Response(new ReadableStream({ pull }))
  await assert.rejects(receive(torn, { ...ways, spare: () => (spare = fresh('.spare')) }), /torn/)
  assert.equal(existsSync(spare), false)
})

test('pages are those with a 2xx; answers are of URLs, and robots.txt and retries are requests', async () => {
  const refusals = [429, 503]
  const web = {
    'https://a.example/': () => new Response('x', { status: refusals.shift() ?? 200 }),
    'https://a.example/2': () => new Response('', { status: 410 }),
  }
  const { totals } = await run('get', [listOf('https://a.example/', 'https://a.example/2')], web)
  const { pages, requests, refused, statuses } = totals
  assert.deepEqual(
    { pages, requests, refused, statuses: Object.fromEntries(statuses) },
    {
      ...{ pages: 1, requests: 5, refused: 2 },
      statuses: { 200: 1, 410: 1 },
    },
  )
})

test('a disk that is full ends the run: no page is fetched to be thrown away', async () => {
  const urls = Array.from({ length: 50 }, (_, page) => `https://a.example/${page}`)
  let asked = 0
  const page = () => {
    asked++
    return html('x')()
  }
  const web = Object.fromEntries(urls.map((url) => [url, page]))
  const [out, state, list] = [fresh(''), fresh('.state'), listOf(...urls)]
  // A file stands where the folder of the pages belongs.
  mkdirSync(out)
  writeFileSync(join(out, 'pages'), '')
  await assert.rejects(run('get', [list, '--state', state], web, out), ({ message, cause }: Error) => {
    assert.equal(message, 'the pages cannot be kept')
    return /^E/.test((cause as NodeJS.ErrnoException).code!)
  })
  assert.ok(asked >= 1 && asked <= 4, `${asked}`)
  // There is room again: all of them are to do still.
  rmSync(join(out, 'pages'))
  const { totals } = await run('get', [list, '--state', state], web, out)
  assert.deepEqual([totals.pages, totals.failed], [50, 0])
})

test('only where a name is known, http:// is proposed for a host that does not answer', async () => {
  const refused = 'https://a.example/robots.txt'
  for (const [code, is] of [
    ['ECONNREFUSED', true],
    ['ENOTFOUND', false],
  ] as const) {
    const { lines } = await run('crawl', ['a.example'], { [refused]: broken(code) })
    assert.equal(/try http:\/\/a\.example$/.test(String(lines[0]!.error)), is, String(lines[0]!.error))
  }
})

test('a list in UTF-16, and one without a URL, are named', async () => {
  const wide = fresh('.txt')
  writeFileSync(wide, Buffer.from('\ufeffhttps://a.example/1\r\nhttps://a.example/2\r\n', 'utf16le'))
  await assert.rejects(run('get', [wide], {}), /UTF-16; want UTF-8/)
})

test('a URL with a user, and one with a wrong port, say what is wrong with them', async () => {
  const { lines } = await run('get', [listOf('http://me:secret@a.example/', 'http://a.example:99999/')], {})
  const errors = lines.map(({ error }) => String(error))
  assert.match(
    errors[0]!,
    /want a URL without a user and a password: --header 'Authorization: …' sends them$/,
  )
  assert.doesNotMatch(errors[0]!, /secret/)
  assert.match(
    errors[1]!,
    /want a URL with a host, and a port below 65536; got "http:\/\/a\.example:99999\/"/,
  )
})
