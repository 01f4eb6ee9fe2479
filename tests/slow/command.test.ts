/** The command as a program: what it fetches, keeps, prints, and the code that it ends with. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { fileOf } from '../../js/command/store.js'
import { bundled, deadOrigin, serve } from '../js/serve.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'autothrottle-command-'))
const at = (name: string) => join(folder, name)
let hits: IncomingMessage[] = []
const paths = () => hits.map(({ url }) => url)
const pages: Record<string, (request: IncomingMessage, response: ServerResponse) => void> = {}
const html = (body: string) => (_: IncomingMessage, response: ServerResponse) =>
  void response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(body)
const origin = await serve((request, response) => {
  hits.push(request)
  const page = pages[request.url!]
  if (page) page(request, response)
  else response.writeHead(404).end('not here')
})
let bin = ''
before(async () => {
  bin = await bundled(folder)
  writeFileSync(at('fast.json'), '{"defaults":{"delay":0,"slotDelay":0,"concurrency":4}}')
})
beforeEach(() => {
  hits = []
  for (const name of Object.keys(pages)) delete pages[name]
})
after(() => {
  rmSync(folder, { recursive: true, force: true })
})

const run = (args: readonly string[], input = '', cwd = folder) =>
  spawned(process.execPath, [bin, ...args], input, cwd)
const shellOf = (command: string) => spawned('sh', ['-c', command], '', folder)

async function spawned(program: string, args: readonly string[], input: string, cwd: string) {
  const child = spawn(program, args, { cwd })
  let [out, said] = ['', '']
  child.stdout.on('data', (part) => {
    out += part
  })
  child.stderr.on('data', (part) => {
    said += part
  })
  child.stdin.end(input)
  const code = await new Promise<number>((resolve) => child.on('close', resolve))
  const lines = out.trim().split('\n').filter(Boolean)
  const json = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  return { code, out, said, json }
}
const FAST = ['--options', 'fast.json']

test('crawl: links of a host, robots.txt, depth, include and exclude, a redirect, other hosts', async () => {
  pages['/robots.txt'] = (_, response) => void response.end('User-agent: *\nDisallow: /private\n')
  pages['/'] = html(
    `<base href="/docs/"><a href="a">a</a><a href="/private">no</a><a href="/go">go</a>
     <a href="https://elsewhere.example/">else</a><a href="mailto:a@b.c">m</a><a href="b.zip">zip</a>`,
  )
  pages['/docs/a'] = html('<a href="deep">deep</a><a href="a#x">itself</a>')
  pages['/docs/deep'] = html('<a href="deeper">deeper</a>')
  pages['/go'] = (_, response) => void response.writeHead(302, { location: '/there' }).end()
  pages['/there'] = html('there')
  const args = ['crawl', origin, ...FAST, '--depth', '2', '--exclude', '\\.zip$']
  const { code, json, said } = await run(args)
  assert.equal(code, 0, said)
  const found = Object.fromEntries(
    json().map(({ url, status, code, location }) => [
      String(url).slice(origin.length),
      status ?? code ?? location,
    ]),
  )
  assert.deepEqual(found, {
    '/': 200,
    '/docs/a': 200,
    '/docs/deep': 200,
    '/private': 'ERR_ROBOTS',
    '/go': 302,
    '/there': 200,
  })
  assert.equal(paths().filter((path) => path === '/robots.txt').length, 1)
  assert.match(said, /5 pages|4 pages/)
  assert.match(said, /disallowed {2}1\n/)
})

test('crawl --out: bodies, and an index with status, headers, times; --max-size cuts', async () => {
  pages['/'] = html('<a href="/a">a</a><a href="/a/b">b</a><a href="/a?q=1">q</a><a href="/long">l</a>')
  for (const path of ['/a', '/a/b', '/a?q=1']) pages[path] = html(`body of ${path}`)
  pages['/long'] = (_, response) => void response.end('x'.repeat(5000))
  const { code, said, out } = await run([
    'crawl',
    origin,
    ...FAST,
    '--out',
    'kept',
    '--max-size',
    '2000',
    '--headers',
    'date,etag',
  ])
  assert.deepEqual([code, out], [0, ''], said)
  const index = readFileSync(at('kept/index.jsonl'), 'utf8').trim().split('\n')
  const entries = index.map((line) => JSON.parse(line))
  assert.equal(entries.length, 5)
  for (const { url, file, bytes, status, headers, sentAt, latencyMs, totalMs, attempts } of entries) {
    const path = url.slice(origin.length)
    const body = readFileSync(at(`kept/${file}`), 'utf8')
    assert.deepEqual([status, body.length, attempts], [200, bytes, 1])
    if (path.startsWith('/a')) assert.equal(body, `body of ${path}`)
    assert.deepEqual(Object.keys(headers), ['date'])
    assert.ok(totalMs >= latencyMs - 1 && Math.abs(Date.parse(sentAt) - Date.now()) < 60_000)
  }
  const long = entries.find(({ url }) => url.endsWith('/long'))
  assert.deepEqual([long.truncated, long.bytes], [true, 2000])
  const again = await run(['crawl', origin, ...FAST, '--out', 'kept'])
  assert.deepEqual([again.code, /is there already/.test(again.said)], [2, true])
})

test('files of bodies have names that every system takes, also Windows', () => {
  const folders = (path: string) =>
    fileOf(new URL(`https://a.example:8080${path}`), 'text/html')
      .split('/')
      .slice(1, -1)
  assert.deepEqual(folders('/con/AUX.d/lpt1/console/page'), [
    'a.example_8080',
    ...['_con', '_AUX.d', '_lpt1', 'console'],
  ])
  assert.deepEqual(folders('/a./b:c/.../%2e%2e%2f/page'), ['a.example_8080', 'a_', 'b_c', '_', '_2e_2e_2f'])
  assert.match(
    fileOf(new URL('https://a.example/nul'), 'text/html'),
    /^pages\/a\.example\/_?nul-\w{32}\.html$/,
  )
})

test('crawl: sitemaps of robots.txt, their index, packed ones, and a URL that is one', async () => {
  const map = (urls: string[]) =>
    `<?xml version="1.0"?><!-- ours --><urlset>${urls.map((url) => `<url><loc>${url}</loc></url>`)}</urlset>`
  pages['/robots.txt'] = (_, response) => void response.end(`Sitemap: ${origin}/maps.xml`)
  pages['/maps.xml'] = (_, response) =>
    void response
      .writeHead(200, { 'content-type': 'application/xml' })
      .end(`<sitemapindex><sitemap><loc>${origin}/one.xml.gz</loc></sitemap></sitemapindex>`)
  pages['/one.xml.gz'] = (_, response) =>
    void response.end(gzipSync(map([`${origin}/a?x=1&amp;y=2`, 'https://elsewhere.example/'])))
  pages['/'] = html('start')
  pages['/a?x=1&y=2'] = html('a')
  const both = await run(['crawl', `${origin}/`, ...FAST, '--sitemaps'])
  const urlsOf = ({ json }: typeof both) => json().map(({ url }) => String(url).slice(origin.length))
  assert.deepEqual(urlsOf(both).sort(), ['/', '/a?x=1&y=2', '/maps.xml', '/one.xml.gz'], both.said)
  const alone = await run(['crawl', `${origin}/maps.xml`, ...FAST])
  assert.deepEqual(urlsOf(alone).sort(), ['/a?x=1&y=2', '/maps.xml', '/one.xml.gz'])
})

test('get: lines and objects from a pipe; headers, method, body; what it does not know comes back', async () => {
  pages['/a'] = (request, response) =>
    void response.setHeader('content-type', 'text/plain').end(`${request.method} ${request.headers['x-a']}`)
  pages['/go'] = (_, response) => void response.writeHead(302, { location: '/a' }).end()
  const list = [
    '# a comment',
    `${origin}/a`,
    '',
    JSON.stringify({ url: `${origin}/a`, method: 'POST', headers: { 'x-a': '2' }, body: { b: 1 }, id: 7 }),
    `${origin}/go`,
  ]
  const args = ['get', '-', ...FAST, '--header', 'X-A: 1', '--body', '--ignore-robots']
  const { code, json, said } = await run(args, list.join('\n'))
  assert.equal(code, 0, said)
  const told = json().map(({ url, status, body, input, finalUrl }) => ({
    url,
    status,
    body,
    input,
    finalUrl,
  }))
  const none = { input: undefined, finalUrl: undefined }
  assert.deepEqual(
    told.sort(
      (a, b) => String(a.body).localeCompare(String(b.body)) || String(a.url).length - String(b.url).length,
    ),
    [
      { url: `${origin}/a`, status: 200, body: 'GET 1', ...none },
      { url: `${origin}/go`, status: 200, body: 'GET 1', input: undefined, finalUrl: `${origin}/a` },
      { url: `${origin}/a`, status: 200, body: 'POST 2', input: { id: 7 }, finalUrl: undefined },
    ],
  )
})

test('refusals are tried again at the host’s pace, and told', async () => {
  let left = 2
  pages['/'] = (_, response) =>
    void response.writeHead(left-- > 0 ? 503 : 200, { 'retry-after': '0' }).end('x')
  writeFileSync(at('one.txt'), `${origin}/\n`)
  const options = { backoff: false, defaults: { delay: 0, slotDelay: 0 } }
  writeFileSync(at('patient.json'), JSON.stringify(options))
  const args = [
    'get',
    'one.txt',
    '--options',
    'patient.json',
    '--json',
    '--ignore-robots',
    '--plot',
    'plot.svg',
  ]
  const { code, json, said } = await run(args)
  assert.equal(code, 0, said)
  assert.deepEqual([json()[0]!.status, json()[0]!.attempts], [200, 3])
  const { summary } = JSON.parse(said.trim().split('\n').at(-1)!)
  assert.deepEqual(
    [summary.pages, summary.requests, summary.refused, summary.statuses],
    [1, 3, 2, { 200: 1 }],
  )
  const svg = readFileSync(at('plot.svg'), 'utf8')
  assert.match(svg, /^<svg [\s\S]*<polyline[\s\S]*delay of the busiest host[\s\S]*<\/svg>\n$/)
})

test('exit codes: nothing answered is 1, some failed is 3, wrong usage is 2 and says what', async () => {
  pages['/'] = html('x')
  const down = `${await deadOrigin()}/`
  const usual = [...FAST, '--ignore-robots', '--retries', '0']
  const nothing = await run(['crawl', down, ...usual])
  assert.deepEqual([nothing.code, /ECONNREFUSED/.test(nothing.said)], [1, true], nothing.said)
  const some = await run(['crawl', down, origin, ...usual])
  assert.equal(some.code, 3, some.said)
  assert.match(some.said, /failed {6}1\n/)
  const help = await run([])
  assert.deepEqual([help.code, /crawl URL/.test(help.out)], [0, true])
  writeFileSync(at('bad.json'), '{"defaults":{"delya":5}}')
  writeFileSync(at('other.state'), '{"autothrottle":1,"of":"get"}\n')
  const wrong: [string[], RegExp][] = [
    [['fetch'], /there is no command "fetch"\n/],
    [['crwal'], /there is no command "crwal": did you mean crawl\?/],
    [['crawl', origin, '--rat', '5'], /there is no option --rat: did you mean --rate\?/],
    [['crawl', origin, '--rate', '5', '--rate=2'], /--rate: want it once; got 5 and 2/],
    [['crawl', origin, '--max-pages', '0'], /--max-pages: want a whole number from 1; got "0"/],
    [['crawl', origin, '--rate', '5', '--delay', '100'], /delay/],
    [['crawl', origin, '--retry-failed'], /--retry-failed: want --state FILE as well/],
    [['crawl'], /want a URL to start from/],
    [['crawl', origin, '--delay', 'fast'], /--delay: want a number from 0; got "fast"/],
    [['crawl', origin, '--rate', '5 a second'], /--rate: want requests a second, or like 100\/min; got "5 a/],
    [['crawl', origin, '--include', '('], /--include: Invalid regular expression/],
    [['crawl', origin, '--header', 'nonsense'], /--header: want 'Name: value'; got "nonsense"/],
    [['crawl', origin, '--options', 'bad.json'], /delya/],
    [['crawl', origin, '--options', 'none.json'], /--options: none.json: ENOENT/],
    [['crawl', origin, '--state', 'other.state'], /want a state of crawl; got one of get/],
    [['crawl', origin, '--state', 'fast.json'], /--state: .*got another file/],
    [['get', 'none.txt'], /there is no file none.txt/],
    [['get'], /want one file, or - for standard input; got 0/],
    [['simulate', 'bad.json'], /delya|server/],
    [['robots'], /want a host or a URL/],
  ]
  const before = readFileSync(at('fast.json'), 'utf8')
  for (const [args, text] of wrong) {
    const { code, said } = await run(args)
    assert.match(said, text)
    assert.equal(code, 2, args.join(' '))
  }
  assert.equal(readFileSync(at('fast.json'), 'utf8'), before, 'what is no state is left as it was')
})

test('robots: the delay, sitemaps, and which paths are allowed', async () => {
  pages['/robots.txt'] = (_, response) =>
    void response.end('User-agent: foobot\nCrawl-delay: 2\nDisallow: /no\nSitemap: https://a.example/s.xml\n')
  const { code, json } = await run(['robots', origin, '/yes', '/no/x', '--user-agent', 'foobot', '--json'])
  assert.equal(code, 3)
  assert.deepEqual(json()[0], {
    ...{ url: `${origin}/robots.txt`, status: 200, userAgent: 'foobot', crawlDelayMs: 2000 },
    sitemaps: ['https://a.example/s.xml'],
    paths: { '/yes': true, '/no/x': false },
  })
  const plain = await run(['robots', `${origin}/yes`])
  assert.deepEqual([plain.code, /allowed {5}\/yes\n$/.test(plain.out)], [0, true], plain.out)
  delete pages['/robots.txt']
  assert.match((await run(['robots', origin])).out, /404, no rules/)
})

test('simulate: figures, JSON and a picture', async () => {
  const options = { server: { model: 'nginx', rate: 10 }, throttle: { rampup: true }, duration: 60_000 }
  writeFileSync(at('options.json'), JSON.stringify(options))
  const plain = await run(['simulate', 'options.json', '--plot', 'simulated.svg'])
  assert.equal(plain.code, 0, plain.said)
  assert.match(
    plain.out,
    /^sent +\d+ requests\n[\s\S]*settled at +\d+(\.\d+)? % of what the limit allows\n[\s\S]*requests per second, .* s a column\n/,
  )
  assert.match(readFileSync(at('simulated.svg'), 'utf8'), /refused, a second/)
  const { json } = await run(['simulate', '-', '--json'], JSON.stringify(options))
  assert.ok(Number(json()[0]!.sent) > 100)
})

test('--state: a crawl goes on where it stopped, from the state alone; a second process is told off', async () => {
  pages['/'] = html('<a href="/a">a</a><a href="/b">b</a>')
  pages['/a'] = html('<a href="/c">c</a>')
  for (const path of ['/b', '/c']) pages[path] = html('x')
  const usual = ['--state', 'crawl.state', '--out', 'stated', ...FAST]
  const first = await run(['crawl', origin, ...usual, '--max-pages', '1'])
  assert.match(first.said, /as many as asked for/)
  const second = await run(['crawl', ...usual])
  assert.equal(second.code, 0, second.said)
  const index = readFileSync(at('stated/index.jsonl'), 'utf8').trim().split('\n')
  const urls = index.map((line) => new URL(JSON.parse(line).url).pathname)
  assert.deepEqual(urls.sort(), ['/', '/a', '/b', '/c'])
  assert.equal(existsSync(at('crawl.state.lock')), false)
  assert.ok(JSON.parse(readFileSync(at('crawl.state.pace'), 'utf8')).scopes)
  writeFileSync(at('crawl.state.lock'), String(process.pid))
  const refused = await run(['crawl', ...usual])
  assert.deepEqual([refused.code, refused.said.includes(`process ${process.pid} uses it`)], [2, true])
})

test('help names every option, and the documentation every command and exit code', async () => {
  for (const command of ['crawl', 'get', 'simulate', 'robots']) {
    const { code, out } = await run([command, '--help'])
    assert.deepEqual([code, out.startsWith(`autothrottle-cli ${command} `)], [0, true])
  }
  const { out } = await run(['--help'])
  for (const word of ['crawl', 'get', 'simulate', 'robots', 'Exit codes']) assert.ok(out.includes(word))
})

test('a list that is longer than what is held at a time: Ctrl-C ends it, and the state goes on', async () => {
  pages['/x'] = html('x')
  const count = 50_300
  writeFileSync(at('long.txt'), Array.from({ length: count }, (_, n) => `${origin}/x?${n}`).join('\n'))
  const args = ['get', 'long.txt', ...FAST, '--ignore-robots', '--state', 'long.state', '--out', 'long']
  const child = spawn(process.execPath, [bin, ...args], { cwd: folder, stdio: 'ignore' })
  // Enough for the list to be read as far as there is room, and for that to be waited for.
  while (hits.length < 100) await new Promise((resolve) => setTimeout(resolve, 5))
  child.kill('SIGINT')
  const code = await new Promise((resolve) => child.on('close', resolve))
  assert.equal(code, 130)
  const found = readFileSync(at('long.state'), 'utf8').trim().split('\n').length - 1
  assert.ok(found > 50_000 && found < count, `${found} lines were read`)
})

test('nothing is there: exit 1, whatever robots.txt had to do with it', async () => {
  const { port } = new URL(await deadOrigin())
  const dead = await run(['crawl', `http://127.0.0.1:${port}/`, '--retries', '0', ...FAST])
  assert.equal(dead.code, 1)
  assert.match(dead.said, /could not be had .*ECONNREFUSED/)
  assert.match(dead.said, /disallowed {2}0\nfailed {6}1\n/)
  pages['/robots.txt'] = (_, response) => void response.end('User-agent: *\nDisallow: /\n')
  const forbidden = await run(['crawl', `${origin}/`, ...FAST])
  assert.equal(forbidden.code, 1)
  assert.match(forbidden.said, /disallowed {2}1\nfailed {6}0\n/)
  const host = await run(['robots', `127.0.0.1:${port}`, '--timeout', '2000'])
  assert.equal(host.code, 1)
  assert.match(
    host.said,
    new RegExp(`no server answers at https://127.0.0.1:${port}; try http://127.0.0.1:${port}`),
  )
  const file = await run(['get', `${origin}/`])
  assert.match(file.said, /there is no file http.*; for one URL: echo http.* \| autothrottle-cli get -/)
})

test('--ca trusts a certificate of one’s own, --insecure any; without them it is ERR_TLS', async (t) => {
  const made = spawnSync('openssl', [
    ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'],
    ...['-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', at('key.pem'), '-out', at('cert.pem')],
  ])
  if (made.status !== 0) return t.skip('openssl is not there')
  const tls = { key: readFileSync(at('key.pem')), cert: readFileSync(at('cert.pem')) }
  const secure = createSecureServer(tls, (_, response) => void response.end('x'))
  await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve))
  t.after(() => secure.close())
  const url = `https://127.0.0.1:${(secure.address() as AddressInfo).port}/`
  const of = async (...args: string[]) => {
    // undici is installed where this repository is.
    const { json } = await run(
      ['crawl', url, '--options', at('fast.json'), '--ignore-robots', '--retries', '0', ...args],
      '',
      root,
    )
    return json().map(({ status, code }) => status ?? code)
  }
  assert.deepEqual([await of(), await of('--insecure')], [['ERR_TLS'], [200]])
  assert.deepEqual(await of('--ca', at('cert.pem')), [200])
})

test('without undici a proxy is an error that says what to install; nothing is sent past it', async () => {
  const { code, said } = await run(['crawl', origin, '--proxy', 'http://127.0.0.1:9'])
  assert.deepEqual([code, hits.length], [2, 0])
  assert.match(said, /^--proxy: needs the package undici: npm install undici\n/)
})

test('a list into a pipe with --state: what had no answer comes again, the rest does not', async () => {
  pages['/a'] = html('a')
  let isDown = true
  pages['/b'] = (request, response) => void (isDown ? request.socket.destroy() : response.end('b'))
  pages['/c'] = (_, response) => void response.writeHead(isDown ? 500 : 200).end('c')
  writeFileSync(at('three.txt'), ['a', 'b', 'c'].map((path) => `${origin}/${path}`).join('\n'))
  const args = ['get', 'three.txt', ...FAST, '--ignore-robots', '--retries', '0', '--state', 'three.state']
  const of = async (...more: string[]) =>
    Object.fromEntries(
      (await run([...args, ...more]))
        .json()
        .map(({ url, status, code }) => [String(url).at(-1), status ?? code]),
    )
  assert.deepEqual(await of(), { a: 200, b: 'ERR_CONNECTION_RESET', c: 500 })
  isDown = false
  assert.deepEqual(await of(), { b: 200 })
  assert.deepEqual(await of('--retry-failed'), { c: 200 })
  assert.deepEqual(await of('--retry-failed'), {})
})

test('output that cannot be written is one line, and progress without a reader stops no work', async () => {
  for (const page of ['/1', '/2', '/3', '/4']) pages[page] = html(page)
  writeFileSync(at('four.txt'), ['/1', '/2', '/3', '/4'].map((path) => `${origin}${path}\n`).join(''))
  const get = `'${process.execPath}' '${bin}' get four.txt --ignore-robots --delay 300`
  if (existsSync('/dev/full')) {
    const full = await shellOf(`${get} --quiet >/dev/full`)
    assert.deepEqual([full.code, full.said.split('\n').length], [1, 2], full.said)
    assert.match(full.said, /^autothrottle-cli: standard output: ENOSPC/m)
  }
  const deaf = await shellOf(`${get} >deaf.jsonl 2>&- `)
  assert.equal(deaf.code, 0)
  const gone = await shellOf(`(${get} 2>&1 >gone.jsonl; echo $? >gone.code) | head -n 1`)
  assert.match(gone.out, /^\d pages? /)
  assert.equal(readFileSync(at('gone.code'), 'utf8'), '0\n')
  assert.equal(readFileSync(at('gone.jsonl'), 'utf8').trim().split('\n').length, 4)
  const empty = await run(['get', '-'])
  assert.match(empty.said, /standard input has no lines/)
})
