/** Files of others are not touched by `--warc`, and each `set-cookie` is kept: with the library warcio. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import { fresh, html, listOf, run } from '../js/command-web.js'
// @ts-expect-error: a script without types.
import { skipUnless } from '../required.mjs'

const clients = fileURLToPath(new URL('../clients', import.meta.url))
const isThere = existsSync(join(clients, 'node_modules/warcio'))
const noWarcio = skipUnless(isThere, 'not installed: npm install --prefix tests/clients')
// The command looks for the library where it was started.
if (isThere) process.chdir(clients)

const url = 'https://a.example/'
const cookies = ['a=1; Path=/', 'b=2,,,3']
const web = {
  [url]: () => {
    const headers = new Headers({ 'content-type': 'text/html', etag: '"1"' })
    for (const cookie of cookies) headers.append('set-cookie', cookie)
    return new Response('x', { headers })
  },
}

test('a WARC that is not of this run is not touched, whatever it is', noWarcio, async () => {
  const info = 'WARC/1.1\r\nWARC-Type: warcinfo\r\nContent-Length: 17\r\n\r\nsoftware: other\r\n\r\n\r\n'
  const first = await run('get', [listOf(url), '--warc', fresh('.warc.gz')], web)
  assert.equal(first.totals.pages, 1)
  const own = fresh('.warc.gz')
  await run('get', [listOf(url), '--warc', own], web)
  const others = [
    Buffer.from('x'),
    Buffer.from('{"mine":1}\n'),
    Buffer.alloc(5000, 'y'),
    Buffer.from(info),
    gzipSync(info),
    gzipSync(Buffer.alloc(1_000_000)),
    readFileSync(own),
  ]
  const [out, state, warc] = [fresh(''), fresh('.state'), fresh('.warc.gz')]
  await run('get', [listOf(url), '--state', state, '--warc', warc], web, out)
  for (const bytes of others)
    for (const isGoneOn of [false, true]) {
      const file = fresh('.warc.gz')
      writeFileSync(file, bytes)
      const going = isGoneOn && bytes !== others.at(-1)
      const args = [listOf(`${url}2`), '--warc', file, ...(going ? ['--state', state] : [])]
      await assert.rejects(run('get', args, web, going ? out : fresh('')), /--warc: .* is there already/)
      assert.ok(readFileSync(file).equals(bytes), bytes.subarray(0, 40).toString('latin1'))
    }
  mkdirSync(fresh('.warc'))
  await assert.rejects(run('get', [listOf(url), '--warc', clients], web), /is no file/)
  const gone = run('get', [listOf(url), '--warc', fresh('.warc.gz'), '--state', state], web, out)
  await assert.rejects(gone, /is not there, but the index speaks of it/)
  const again = await run('get', [listOf(url, `${url}3`), '--warc', warc, '--state', state], web, out)
  assert.equal(again.lines.length, 2, 'its own is gone on with')
})

test('a WARC that was started and has no record yet is started anew', noWarcio, async () => {
  const warc = fresh('.warc.gz')
  await run('get', [listOf('# none'), '--warc', warc], web)
  assert.match(gunzipSync(readFileSync(warc)).toString(), /software: autothrottle/)
  for (const rest of [readFileSync(warc), Buffer.alloc(0)]) {
    writeFileSync(warc, rest)
    const { lines } = await run('get', [listOf(url), '--warc', warc], web)
    assert.equal(lines.length, 1)
  }
})

test('each cookie is kept: in the archive, and in the line if it is asked for', noWarcio, async () => {
  const warc = fresh('.warc')
  const { lines } = await run('get', [listOf(url), '--warc', warc, '--headers', 'etag,set-cookie'], web)
  assert.deepEqual(lines[0]!.headers, { etag: '"1"', 'set-cookie': cookies })
  const archive = readFileSync(warc, 'utf8')
  for (const cookie of cookies) assert.ok(archive.includes(`set-cookie: ${cookie}\r\n`), archive)
  const { lines: one } = await run('get', [listOf(url), '--headers', 'set-cookie'], { [url]: html('x') })
  assert.deepEqual(one[0]!.headers, {})
})
