/** The command's output without a terminal: the picture, bars, lines, the plot; and time in few points. */

import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { after, before, test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import type { Reason, ScopeStats } from 'autothrottle'
import { codeOf, messageOf } from '../../js/command/failures.js'
import { Host } from '../../js/command/frontier.js'
import { fetchOf } from '../../js/command/network.js'
import { chart, plot, seconds, sparkline } from '../../js/command/plot.js'
import { Series } from '../../js/command/series.js'
import { networkOf, settingsOf } from '../../js/command/settings.js'
import { frame, gapOf, plainLine, type Shown } from '../../js/command/view.js'

const shown: Shown = {
  ...{ seconds: 12, pages: 120, rate: 9.87, inFlight: 3, left: 45, refused: 2, failed: 1, eta: 130 },
  rates: [0, 2, 4, 8, 10],
  delays: [1000, 500, 250],
  hosts: [
    {
      ...{ name: 'a.example', done: 100, left: 40, rate: 9.1, delayMs: 105.4, eta: 130 },
      ...{ why: 'hold 4 s, step 1', isSlowed: true, current: 'https://a.example/items?page=2' },
    },
    {
      ...{ name: 'b.example:81', done: 20, left: 0, rate: 0, delayMs: 0, eta: 0 },
      ...{ why: '', isSlowed: false, current: '' },
    },
  ],
  more: 3,
}

test('the picture: totals, rate against delay, why each host waits, until when, what was sent last', () => {
  assert.deepEqual(frame(shown, 120, false), [
    '120 pages  9.87/s  3 in flight  45 left  ETA 2 min  2 refused  1 failed',
    'rate ▁▂▄▇█ 10/s  busiest host’s delay █▅▃ 250 ms',
    'host          done  left    rate   delay    ETA  why',
    'a.example      100    40  9.10/s  105 ms  2 min  hold 4 s, step 1  /items?page=2',
    'b.example:81    20     0  0.00/s    0 ms',
    'and 3 more hosts',
  ])
})

test('no line is wider than the terminal, and colours are only for those who want them', () => {
  for (const width of [20, 40, 80])
    for (const line of frame(shown, width, false)) assert.ok(line.length < width, `${width}: ${line}`)
  const csi = '\x1b['
  assert.ok(!frame(shown, 80, false).join('').includes(csi))
  assert.ok(frame(shown, 120, true)[0]!.startsWith(`${csi}1m120 pages${csi}0m`))
  assert.ok(frame(shown, 120, true)[0]!.includes(`${csi}31m2 refused${csi}0m`))
})

test('a terminal without columns, or with a few, has lines that fit', () => {
  for (let width = 0; width < 20; width++)
    for (const line of frame(shown, width, true))
      assert.ok(stripVTControlCharacters(line).length <= Math.max(0, width - 1), `${width}: ${line}`)
})

test('bars end at the right, and nothing is drawn of nothing', () => {
  assert.equal(sparkline([], 10), '')
  assert.equal(sparkline([0, 0], 10), '▁▁ 0')
  assert.equal(sparkline([9, 1, 2], 2), '▅█ 2')
})

test('a line that is cut keeps its colours', () => {
  const row = frame(shown, 60, true)[3]!
  assert.ok(row.startsWith('\x1b[33ma.example'), JSON.stringify(row))
  assert.ok(row.endsWith('…'), JSON.stringify(row))
  assert.equal(stripVTControlCharacters(row), frame(shown, 60, false)[3], 'as wide as without colours')
  assert.ok(row.includes('\x1b[0m'), 'the colour ends')
})

test('a small chart has a scale, times, and a row for refusals', () => {
  const options = { height: 2, span: 600, isPlain: false }
  const values = [0, 2.5, 5, 7.5, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10]
  const marks = values.map((_, at) => (at === 5 ? 2 : 0))
  assert.deepEqual(chart(values, marks, options), {
    bars: ['     10 │   ▄████████████', '        │ ▄██████████████', '      0 └────────────────'],
    marks: 'refused       ×',
    times: '         0 s       10 min',
  })
  const plain = chart(
    values,
    values.map(() => 0),
    { ...options, isPlain: true },
  )
  assert.deepEqual(plain.bars, [
    '     10 |   #############',
    '        | ###############',
    '      0 +----------------',
  ])
  assert.equal(plain.marks, '')
})

test('one page is a page, and a host that is slowed stands out', () => {
  const [first, , , row] = frame({ ...shown, pages: 1 }, 120, true)
  assert.ok(first!.includes('1 page\x1b'), first)
  assert.ok(row!.startsWith('\x1b[33ma.example   \x1b[0m  '), row)
})

test('a line for a pipe says who waits, and why', () => {
  assert.equal(
    plainLine(shown),
    '120 pages  9.87/s  delay 105 ms  3 in flight  45 left (a.example: hold 4 s, step 1)' +
      '  ETA 2 min  2 refused  1 failed',
  )
})

test('a plot has a band for each line, and a scale', () => {
  const points = [
    [0, 1],
    [10, 300],
  ] as const
  const svg = plot('a < b', [{ name: 'rate', unit: 'a second', color: '#123', points }])
  assert.match(svg, /<title>a &lt; b<\/title>/)
  assert.match(svg, />300<\/text>/)
  assert.match(svg, /points="70\.0,163\.6 880\.0,50\.0"/)
  assert.deepEqual([59, 600, 9000, Number.POSITIVE_INFINITY].map(seconds), ['59 s', '10 min', '2.5 h', '–'])
})

test('a week of points are at most 600, and the totals stay', () => {
  const series = new Series(0)
  let answers = 0
  for (let second = 1; second <= 100_000; second++) {
    series.note(second % 10 === 0)
    answers++
    series.sample(second * 1000, 100)
  }
  const { points } = series
  assert.ok(points.length <= 600 && points.length >= 300, `${points.length}`)
  const mean = points.reduce((sum, { rate }) => sum + rate, 0) / points.length
  assert.ok(Math.abs(mean - answers / 100_000) < 0.01, `${mean}`)
  assert.equal(series.recent.length, 60)
})

test('the time left is told by the pace in force, not by the mean since the start', () => {
  const host = new Host('a.example')
  for (let at = 0; at < 20; at++) host.sent(at * 8000)
  host.answered(300)
  const of = (delayMs: number, slots: number, reason: Reason) =>
    gapOf(host, { delayMs, slots, reason } as ScopeStats, delayMs)
  assert.equal(of(250, 4, 'delay'), 250, 'the delay is over: eight seconds no longer count')
  assert.equal(of(0, 4, 'concurrency'), 75)
  assert.equal(of(8000, 4, 'backoff'), 8000)
  assert.equal(of(250, 4, 'quota'), 8000, 'another limit binds: as the last requests were sent')
})

// How the command reaches hosts: through a proxy, with certificates of one's own, or past both.

const NONE = { proxy: undefined, ca: undefined, isInsecure: false }
/** The URLs that went through the proxy. */
let through: string[] = []
const site = createServer((_, response) => void response.end('site'))
const proxy = createServer((request, response) => {
  through.push(`${request.method} ${request.url}`)
  response.end('proxied')
})
proxy.on('connect', (request, socket) => {
  through.push(`CONNECT ${request.url} ${request.headers['proxy-authorization'] ?? ''}`.trim())
  const { port } = site.address() as AddressInfo
  const there = connect(port, '127.0.0.1', () => {
    socket.write('HTTP/1.1 200 OK\r\n\r\n')
    there.pipe(socket).pipe(there)
  })
  for (const end of [socket, there]) end.on('error', () => {})
})
const portOf = (server: Server) => (server.address() as AddressInfo).port
before(() =>
  Promise.all(
    [site, proxy].map((server) => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))),
  ),
)
after(() => {
  for (const server of [site, proxy]) {
    server.closeAllConnections()
    server.close()
  }
})

async function text(network: typeof NONE | { proxy: string }, env: NodeJS.ProcessEnv, url: string) {
  through = []
  const send = await fetchOf({ ...NONE, ...network }, env)
  assert.ok(send)
  return (await send(url)).text()
}

test('--proxy: everything goes through it, its password too, also hosts of this machine', async () => {
  const at = `http://me:secret@127.0.0.1:${portOf(proxy)}`
  assert.equal(await text({ proxy: at }, { NO_PROXY: '*' }, 'http://nowhere.example/'), 'site')
  const basic = `Basic ${Buffer.from('me:secret').toString('base64')}`
  assert.deepEqual(through, [`CONNECT nowhere.example:80 ${basic}`])
  assert.equal(await text({ proxy: at }, {}, `http://127.0.0.1:${portOf(site)}/`), 'site')
  assert.equal(through.length, 1)
})

test('HTTP_PROXY and NO_PROXY count, in any letters; hosts of this machine are asked directly', async () => {
  const at = `http://127.0.0.1:${portOf(proxy)}`
  for (const name of ['HTTP_PROXY', 'http_proxy']) {
    assert.equal(await text(NONE, { [name]: at }, 'http://nowhere.example/'), 'site')
    assert.deepEqual(through, ['CONNECT nowhere.example:80'])
  }
  assert.equal(await text(NONE, { HTTP_PROXY: at }, `http://127.0.0.1:${portOf(site)}/`), 'site')
  assert.deepEqual(through, [])
  const env = { HTTP_PROXY: at, NO_PROXY: '.invalid' }
  await assert.rejects(text(NONE, env, 'http://nowhere.invalid/'), /fetch failed/)
  assert.deepEqual(through, [])
})

test('without any of it the usual fetch is used; NO_PROXY=* turns the environment off', async () => {
  assert.equal(await fetchOf(NONE, {}), undefined)
  assert.equal(await fetchOf(NONE, { HTTPS_PROXY: 'http://proxy.example', NO_PROXY: '*' }), undefined)
})

test('--insecure is said to Node, which warns about it', async () => {
  const env: NodeJS.ProcessEnv = {}
  assert.equal(await fetchOf({ ...NONE, isInsecure: true }, env), undefined)
  assert.deepEqual(env, { NODE_TLS_REJECT_UNAUTHORIZED: '0' })
})

test('options that make no sense are refused before anything is sent', () => {
  assert.throws(() => networkOf({ proxy: 'proxy.example:3128' }), /--proxy: want a URL that starts with http/)
  assert.throws(() => networkOf({ ca: 'none.pem' }), /--ca: there is no file none.pem/)
  assert.throws(() => networkOf({ ca: 'package.json' }), /--ca: want a file of certificates in PEM/)
  for (const [option, typed] of [
    ['max-size', '-1'],
    ['retries', '1.5'],
    ['concurrency', '0'],
    ['total', '0'],
    ['timeout', '0'],
  ] as const)
    assert.throws(() => settingsOf({ [option]: typed }), new RegExp(`^Error: --${option}: want a`), option)
})

test('the pace is what was typed, all of it', () => {
  const of = (values: Record<string, string | boolean>) => settingsOf(values).throttle.defaults
  assert.deepEqual(of({ rate: '5' }), { rate: 5 })
  assert.deepEqual(of({ rate: '5', delay: '100', concurrency: '2' }), { rate: 5, delay: 100, concurrency: 2 })
  assert.deepEqual(of({ rate: '5', 'start-delay': '9' }), { rate: 5, autothrottle: { startDelay: 9 } })
  assert.deepEqual(of({ rampup: true }), { rampup: true })
  assert.deepEqual(of({ rampup: true, delay: '10', concurrency: '8', 'start-delay': '5' }), {
    rampup: { startDelay: 5, minDelay: 10, maxConcurrency: 8 },
  })
})

test('an error of OpenSSL is printed without its numbers and places', () => {
  const said =
    '804C49F8:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:../s3_record.c:350:\n'
  const cause = Object.assign(new Error(said), { code: 'EPROTO' })
  const error = new TypeError('fetch failed', { cause })
  assert.deepEqual([messageOf(error), codeOf(error)], ['fetch failed (TLS: wrong version number)', 'ERR_TLS'])
})
