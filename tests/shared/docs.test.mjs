/**
 * The code of docs/shared.md in TypeScript, as it stands there: with a socket, with a real Redis, and in
 * workerd. Real time, since none of them can be played. The assertions are about the output that the blocks
 * state.
 *
 * Only places are replaced: the host by a server of the test's, the port of Redis, and where the package
 * lies.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { transform } from 'esbuild'
import { skipUnless } from '../required.mjs'
import { listen } from '../serve.mjs'
import { freePort, RedisServer, SERVERS } from './server.mjs'
import { WORKERD, Workers } from './workers.mjs'

const page = readFileSync(new URL('../../docs/shared.md', import.meta.url), 'utf8')
const blocks = [...page.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code]) => code)
const entries = { autothrottle: 'node/index', 'autothrottle/local': 'local', 'autothrottle/redis': 'redis' }

// Beside the clients, so that they can be imported.
const folder = mkdtempSync(fileURLToPath(new URL('.docs-', import.meta.url)))
const sockets = mkdtempSync(join(tmpdir(), 'at-'))
const site = await listen((request, response) => response.end(request.url))
after(() => {
  site.stop()
  for (const made of [folder, sockets]) rmSync(made, { recursive: true, force: true })
})
const here = (code) => code.replaceAll('https://api.example', site.url)

/** Runs a block as a program; it must end by itself. Gives what it printed. */
async function run(name, block) {
  const { code } = await transform(here(block), { loader: 'ts', target: 'es2022' })
  const places = code.replaceAll(/from "(autothrottle.*?)"/g, (_, entry) => {
    return `from ${JSON.stringify(new URL(`../../dist/${entries[entry]}.js`, import.meta.url).href)}`
  })
  const file = join(folder, `${name}.mjs`)
  writeFileSync(file, places)
  const env = { ...process.env, XDG_RUNTIME_DIR: sockets }
  const { stdout } = await promisify(execFile)(process.execPath, [file], { env, timeout: 60_000 })
  return stdout.trim().split('\n')
}

const said = (block) => [...block.matchAll(/^\/\/ → (.*)$/gm)].map(([, words]) => words)

test('each block has its test', () => assert.equal(blocks.length, 3))

test('one machine', async () => assert.deepEqual(await run('local', blocks[0]), said(blocks[0])))

test('Redis', { skip: skipUnless(SERVERS.length > 0, 'no redis-server') }, async () => {
  const port = await freePort()
  const store = await new RedisServer(port).start()
  try {
    const block = blocks[1]
    assert.ok(block.includes('new Redis()'))
    assert.deepEqual(await run('redis', block.replace('new Redis()', `new Redis(${port})`)), said(block))
  } finally {
    await store.stop()
  }
})

test('a Durable Object', { skip: skipUnless(existsSync(WORKERD), 'workerd is not installed') }, async () => {
  const workers = await new Workers().build(here(blocks[2]))
  try {
    await workers.start()
    assert.equal(await (await fetch(workers.url)).text(), '/items')
  } finally {
    await workers.stop()
  }
})
