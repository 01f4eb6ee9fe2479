/**
 * `--state`: a crawl that is killed twenty times, and goes on each time; and a list that is killed twice. No page
 * is lost, and none is in the index twice; with bodies, WARC and a torn line as a kill may leave it.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { bundled, serve } from '../js/serve.js'
// @ts-expect-error: a script without types.
import { skipUnless } from '../required.mjs'

const PAGES = 400
const KILLS = 20
const folder = mkdtempSync(join(tmpdir(), 'autothrottle-kill-'))
const warcio = fileURLToPath(new URL('../clients/node_modules/warcio', import.meta.url))

let hits: string[] = []
let onHit = () => {}
/** A tree of pages, each with links to pages that others lead to as well, and a redirect now and then. */
const origin = await serve((request, response) => {
  const page = Number(request.url!.slice(2))
  hits.push(request.url!)
  onHit()
  if (request.url === '/robots.txt') return void response.writeHead(404).end()
  if (request.url!.startsWith('/r')) return void response.writeHead(302, { location: `/p${page}` }).end()
  const links = [page * 2 + 1, page * 2 + 2, Math.floor(page / 2), (page * 7) % PAGES]
    .filter((each) => each < PAGES)
    .map((each) => `<a href="/${each % 10 === 3 ? 'r' : 'p'}${each}#x">${each}</a>`)
  response.writeHead(200, { 'content-type': 'text/html' }).end(`<p>page ${page}</p>${links.join(' ')}`)
})
let bin = ''
before(async () => {
  bin = await bundled(folder)
  const options = { defaults: { delay: 0, slotDelay: 0, concurrency: 8 } }
  writeFileSync(join(folder, 'options.json'), JSON.stringify(options))
})
after(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** Runs it, and kills it once the server has seen that many requests more. */
async function run(args: readonly string[], killAfter = Number.POSITIVE_INFINITY) {
  const child = spawn(process.execPath, [bin, ...args], { cwd: folder })
  let said = ''
  child.stderr.on('data', (part) => {
    said += part
  })
  child.stdout.resume()
  const from = hits.length
  onHit = () => {
    if (hits.length - from >= killAfter) child.kill('SIGKILL')
  }
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
    child.on('close', (...how) => resolve(how))
  })
  onHit = () => {}
  return { code, signal, said }
}

const linesOf = (file: string): Record<string, unknown>[] =>
  readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

/** Installed where the command is started. */
function symlinkWarcio(): void {
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(warcio, join(folder, 'node_modules/warcio'))
}

/** Registers the test of one way of keeping what is fetched. */
function survives(way: string, more: readonly string[], skip: string | false = false): void {
  test(`killed ${KILLS} times, nothing twice and nothing lost: ${way}`, { skip }, async () => {
    hits = []
    const name = way.replaceAll(' ', '-')
    const [out, state] = [join(folder, name), join(folder, `${name}.state`)]
    if (more.length > 0) symlinkWarcio()
    const usual = ['crawl', '--options', 'options.json', '--out', out, '--state', state, ...more]
    let killed = 0
    for (let round = 0; round < KILLS; round++) {
      const { signal, said } = await run([...usual, `${origin}/p0`], 1 + ((round * 7) % 17))
      assert.equal(signal, 'SIGKILL', said)
      killed++
      // As a kill in the middle of a write would leave them.
      if (round % 5 === 1) appendFileSync(state, '{"url":"http://torn')
      if (round % 5 === 2 && existsSync(join(out, 'index.jsonl')))
        appendFileSync(join(out, 'index.jsonl'), '{"url":"')
      if (round % 5 === 3 && more[1]) appendFileSync(join(folder, more[1]), 'torn')
    }
    const last = await run(usual)
    assert.deepEqual([killed, last.code], [KILLS, 0], last.said)
    const entries = linesOf(join(out, 'index.jsonl'))
    const urls = entries.map(({ url }) => String(url).slice(origin.length))
    const wanted = Array.from({ length: PAGES }, (_, page) => `/p${page}`)
    const pages = urls.filter((url) => url.startsWith('/p'))
    assert.equal(new Set(urls).size, urls.length, 'nothing twice')
    assert.deepEqual(pages.sort(), wanted.sort(), 'nothing lost')
    for (const { file, bytes, url, status } of entries) {
      if (status !== 200) continue
      const body = readFileSync(join(out, String(file)), 'utf8')
      assert.match(body, new RegExp(`page ${String(url).slice(origin.length + 2)}<`))
      assert.equal(body.length, bytes)
    }
    // Only what was in flight at a kill is asked for again.
    const asked = hits.filter((url) => url !== '/robots.txt').length
    assert.ok(asked <= urls.length + KILLS * 10, `${asked} requests for ${urls.length} URLs`)
    if (!more[1]) return
    const bytes = readFileSync(join(folder, more[1]))
    for (const { warc, url, status } of entries as { warc: Part; url: string; status: number }[]) {
      const record = gunzipSync(bytes.subarray(warc.offset, warc.offset + warc.length)).toString()
      assert.ok(record.startsWith('WARC/1.1'), record.slice(0, 50))
      assert.ok(record.includes(`WARC-Target-URI: ${url}\r\n`) && record.includes(`HTTP/1.1 ${status} `))
    }
    const ends = (entries as { warc: Part }[]).map(({ warc }) => warc.offset + warc.length)
    assert.equal(Math.max(...ends), bytes.length, 'nothing after the last record')
  })
}

interface Part {
  offset: number
  length: number
}

survives('bodies and index', [])
const noWarcio = skipUnless(existsSync(warcio), 'not installed: npm install --prefix tests/clients')
survives('WARC', ['--warc', 'crawl.warc.gz'], noWarcio)

test('a list is gone on with after a kill', async () => {
  const list = Array.from({ length: 60 }, (_, page) => `${origin}/p${page}`).join('\n')
  writeFileSync(join(folder, 'list.txt'), `# pages\n${list}\n`)
  const [out, state] = [join(folder, 'list'), join(folder, 'list.state')]
  const usual = ['get', 'list.txt', '--options', 'options.json', '--out', out, '--state', state]
  for (const after of [5, 20]) assert.equal((await run(usual, after)).signal, 'SIGKILL')
  const last = await run(usual)
  assert.equal(last.code, 0, last.said)
  const urls = linesOf(join(out, 'index.jsonl')).map(({ url }) => url)
  assert.deepEqual([urls.length, new Set(urls).size], [60, 60])
})
