/**
 * The packed tarball where other programs load it: Jest (with Node's globals and with jsdom's), Parcel,
 * Next.js.
 *
 * Each is a project below `tests/runtimes`, so that it finds what is installed there.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { isAll, skipUnless } from '../required.mjs'
import { packed } from './install.mjs'

const runtimes = fileURLToPath(new URL('../runtimes', import.meta.url))
const bin = (path) => join(runtimes, 'node_modules', path)
const { scratch, remove } = packed(runtimes)
after(remove)
const skipWithout = (path) => skipUnless(existsSync(bin(path)))

/** A project with these files and the package. */
function project(name, files) {
  const folder = join(scratch, name)
  for (const [path, text] of Object.entries({ 'package.json': '{ "private": true }', ...files })) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  cpSync(join(scratch, 'node_modules'), join(folder, 'node_modules'), { recursive: true })
  return folder
}

/** Runs a program of npm's to its end; what it said where it fails. */
function runs(cwd, path, args, env = {}) {
  const options = { cwd, encoding: 'utf8', env: { ...process.env, NO_COLOR: '1', ...env } }
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin(path), ...args], options)
  assert.equal(status, 0, stdout + stderr)
  return stdout + stderr
}

const JEST = `
const { createThrottle, ConfigError } = require('autothrottle')
const { Engine, parseHints } = require('autothrottle/engine')
const { FakeClock } = require('autothrottle/testing')
const { simulate } = require('autothrottle/simulate')

test('it throttles', async () => {
  const clock = new FakeClock()
  const throttle = createThrottle({ clock, defaults: { delay: 1000, jitter: false } })
  const sent = []
  const send = () => throttle.run('https://ä.example/', ({ sentAt }) => sent.push(sentAt))
  const done = Promise.all([send(), send()])
  await clock.advance(1000)
  await done
  expect(sent).toEqual([0, 1000])
  expect(Object.keys(throttle.stats().scopes)).toEqual(['xn--4ca.example'])
  expect(() => new Engine({ concurency: 1 })).toThrow(ConfigError)
  expect(parseHints({ 'retry-after': '1', 'x-ü': 'ü' }).delayMs).toBe(1000)
  expect(simulate({ server: { model: 'nginx', rate: 5 }, duration: 1000 }).summary.served).toBeGreaterThan(0)
})
`

test('Jest, CommonJS: with globals of Node and of jsdom', { skip: skipWithout('jest') }, () => {
  const folder = project('jest', {
    'package.json': '{ "private": true, "jest": { "rootDir": "." } }',
    'node.test.js': JEST,
    'jsdom.test.js': `/** @jest-environment jsdom */\nglobal.TextDecoder = undefined\n${JEST}`,
  })
  assert.match(runs(folder, 'jest/bin/jest.js', ['--ci', '-i']), /Tests: +2 passed, 2 total/)
})

test('Parcel: as it comes, and with the exports of packages', { skip: skipWithout('parcel') }, () => {
  const program = (imported, expression) => `${imported}
    const throttle = createThrottle({ fetch: async () => new Response('page'), defaults: { delay: 1 } })
    const print = async (response) => console.log(await response.text(), ${expression})
    throttle.fetch('https://a.example/').then(print)`
  const plain = "import { createThrottle } from 'autothrottle'"
  const folder = project('parcel', {
    // Where Parcel takes its settings from.
    'package-lock.json': '{}',
    'main.js': program(plain, '1'),
    'both.js': program(
      `${plain}\nimport { parseHints } from 'autothrottle/engine'`,
      "parseHints({ 'retry-after': '1' }).delayMs",
    ),
  })
  const bundled = (entry) => {
    const args = ['build', `${entry}.js`, '--no-cache', '--no-source-maps', '--dist-dir', 'out']
    runs(folder, 'parcel/lib/bin.js', args, { PARCEL_WORKERS: '0' })
    return spawnSync(process.execPath, [`out/${entry}.js`], { cwd: folder, encoding: 'utf8' }).stdout
  }
  assert.equal(bundled('main'), 'page 1\n')
  const settings = { private: true, '@parcel/resolver-default': { packageExports: true } }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(settings))
  assert.equal(bundled('both'), 'page 1000\n')
})

const ROUTE = `
import { createThrottle } from 'autothrottle'
import { parseHints } from 'autothrottle/engine'
import { simulate } from 'autothrottle/simulate'
export const runtime = 'RUNTIME'
export const dynamic = 'force-dynamic'
const throttle = createThrottle({ fetch: async () => new Response('page'), defaults: { delay: 1 } })
export async function GET() {
  const text = await (await throttle.fetch('https://a.example/')).text()
  const { summary } = simulate({ server: { model: 'nginx', rate: 5 }, duration: 1000 })
  const { delayMs } = parseHints({ 'retry-after': '1' })
  return Response.json([text, delayMs, summary.served > 0, typeof EdgeRuntime])
}
`
const MIDDLEWARE = `
import { NextResponse } from 'next/server'
import { createThrottle } from 'autothrottle'
const throttle = createThrottle()
export const config = { matcher: '/node' }
export async function middleware() {
  const response = NextResponse.next()
  response.headers.set('x-sent', await throttle.run('https://a.example/', ({ sentAt }) => typeof sentAt))
  return response
}
`

// A minute of work: only where no person waits for it.
test('Next.js: node, edge and middleware, built and run', {
  skip: isAll ? false : 'npm run test:all runs it',
}, async () => {
  const folder = project('next', {
    'next.config.mjs': `export default { turbopack: { root: ${JSON.stringify(runtimes)} } }`,
    'app/layout.js': 'export default ({ children }) => <html><body>{children}</body></html>',
    'app/page.js': 'export default () => <p>page</p>',
    'app/node/route.js': ROUTE.replace('RUNTIME', 'nodejs'),
    'app/edge/route.js': ROUTE.replace('RUNTIME', 'edge'),
    'middleware.js': MIDDLEWARE,
  })
  const next = 'next/dist/bin/next'
  const quiet = { NEXT_TELEMETRY_DISABLED: '1' }
  const said = runs(folder, next, ['build'], quiet)
  assert.doesNotMatch(said, /Node\.js API|Dynamic (?:Code|WASM)/, said)
  const port = await freePort()
  const server = spawn(process.execPath, [bin(next), 'start', '-p', String(port), '-H', '127.0.0.1'], {
    cwd: folder,
    stdio: 'ignore',
    env: { ...process.env, ...quiet },
  })
  try {
    const node = await get(`http://127.0.0.1:${port}/node`, server)
    assert.equal(node.headers.get('x-sent'), 'number', 'middleware')
    assert.deepEqual(await node.json(), ['page', 1000, true, 'undefined'])
    const edge = await get(`http://127.0.0.1:${port}/edge`, server)
    assert.deepEqual(await edge.json(), ['page', 1000, true, 'string'])
  } finally {
    server.kill('SIGKILL')
  }
})

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Asks until the server is up. */
async function get(url, server) {
  for (let tries = 0; ; tries++) {
    try {
      return await fetch(url)
    } catch (error) {
      if (tries > 300 || server.exitCode !== null) throw error
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}
