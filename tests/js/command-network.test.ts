/** How the command reaches hosts: through a proxy, with certificates of one's own, or past both. */
import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { after, before, test } from 'node:test'
import { codeOf, messageOf } from '../../js/command/failures.js'
import { fetchOf } from '../../js/command/network.js'
import { networkOf, settingsOf } from '../../js/command/settings.js'

const NONE = { proxy: undefined, ca: undefined, isInsecure: false }
/** What went through the proxy. */
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

test('what makes no sense is refused before anything is sent', () => {
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

test('what OpenSSL says is told without its numbers and places', () => {
  const said =
    '804C49F8:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:../s3_record.c:350:\n'
  const cause = Object.assign(new Error(said), { code: 'EPROTO' })
  const error = new TypeError('fetch failed', { cause })
  assert.deepEqual([messageOf(error), codeOf(error)], ['fetch failed (TLS: wrong version number)', 'ERR_TLS'])
})
