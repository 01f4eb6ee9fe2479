/**
 * Limits shared by Workers through a Durable Object, in workerd: real time, since neither its scheduler nor
 * its storage can be played. What is asserted are counts.
 *
 * Needs `npm install --prefix tests/runtimes`; without it, the test is skipped by name.
 * In `npm run test:all` it fails.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { skipUnless } from '../required.mjs'
import { freePort } from './server.mjs'

const WORKERD = fileURLToPath(new URL('../runtimes/node_modules/.bin/workerd', import.meta.url))
const skip = skipUnless(existsSync(WORKERD), 'workerd is not installed')

const config = (port, disk) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "internet", network = (allow = ["private"])),
    (name = "disk", disk = (path = "${disk}", writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  compatibilityDate = "2026-01-01",
  compatibilityFlags = ["enable_request_signal"],
  durableObjectNamespaces = [(className = "Limiter", uniqueKey = "limiter", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [(name = "LIMITER", durableObjectNamespace = "Limiter")],
  modules = [
    (name = "worker.mjs", esModule = embed "worker.mjs"),
    (name = "autothrottle_bg.wasm?module", wasm = embed "autothrottle_bg.wasm"),
    (name = "shared_bg.wasm?module", wasm = embed "shared_bg.wasm"),
  ],
);`

class Workers {
  #folder = mkdtempSync(join(tmpdir(), 'autothrottle-workers-'))
  #process
  said = ''

  async build() {
    const { build } = await import('esbuild')
    await build({
      entryPoints: [fileURLToPath(new URL('worker.mjs', import.meta.url))],
      bundle: true,
      format: 'esm',
      target: 'es2022',
      conditions: ['workerd', 'worker'],
      external: ['cloudflare:workers'],
      loader: { '.wasm': 'copy' },
      assetNames: '[name]',
      outdir: this.#folder,
      outExtension: { '.js': '.mjs' },
      logLevel: 'error',
    })
    mkdirSync(join(this.#folder, 'disk'))
    return this
  }

  async start() {
    const port = await freePort()
    this.url = `http://127.0.0.1:${port}`
    writeFileSync(join(this.#folder, 'config.capnp'), config(port, join(this.#folder, 'disk')))
    this.#process = spawn(WORKERD, ['serve', 'config.capnp'], { cwd: this.#folder })
    this.#process.stderr.on('data', (text) => {
      this.said += text
    })
    for (let tries = 0; tries < 200; tries++) {
      const isUp = await fetch(`${this.url}/up`).then(
        (response) => response.ok,
        () => false,
      )
      if (isUp) return
      await sleep(50)
    }
    throw new Error(`workerd: ${this.said}`)
  }

  async kill() {
    const ended = new Promise((resolve) => this.#process.once('exit', resolve))
    this.#process.kill('SIGKILL')
    await ended
  }

  async stop() {
    await this.kill()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  get(path, query, init) {
    return fetch(`${this.url}/${path}?${new URLSearchParams(query)}`, init)
  }

  /**
   * A client that asks, and can go. A reset is what workerd notices: a mere end might be half a connection.
   */
  client(path, query) {
    const { hostname, port } = new URL(this.url)
    const socket = connect(Number(port), hostname).on('error', () => {})
    socket.unref()
    socket.write(`GET /${path}?${new URLSearchParams(query)} HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`)
    return { go: () => socket.resetAndDestroy() }
  }
}

/** A site that counts how many it serves at a time. Pages of `/held` are answered when the test says so. */
async function siteOf(t, latency, status = 200) {
  const counts = { now: 0, most: 0, all: 0, paths: [] }
  const held = []
  const server = createServer((request, response) => {
    counts.all++
    counts.paths.push(request.url)
    counts.most = Math.max(counts.most, ++counts.now)
    response.on('close', () => counts.now--)
    const answer = () => response.writeHead(status).end('page')
    if (request.url.startsWith('/held')) held.push(answer)
    else setTimeout(answer, latency)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const answerHeld = () => {
    for (const answer of held.splice(0)) answer()
  }
  return { counts, answerHeld, url: `http://127.0.0.1:${server.address().port}/` }
}

if (skip) test('limits shared through a Durable Object', { skip }, () => {})
else {
  let workers
  before(async () => {
    workers = await new Workers().build()
    await workers.start()
  })
  after(() => workers.stop())

  /** How many requests wait at the object. */
  const waits = async () => Number(await (await workers.get('waits', {})).text())

  async function until(isSo) {
    for (let tries = 0; tries < 200; tries++) {
      if (await isSo()) return
      await sleep(20)
    }
    throw new Error(`not within four seconds: ${isSo} ${workers.said}`)
  }

  const times = (count, call) => Promise.all(Array.from({ length: count }, call))

  test('thirty Workers want a quota of ten: ten get it, twenty are told when to come back', async () => {
    const answers = await times(30, () => workers.get('run', { scope: 'quota', maxWait: 5000 }))
    const statuses = answers.map(({ status }) => status).sort()
    assert.deepEqual(statuses, [...Array(10).fill(200), ...Array(20).fill(503)], workers.said)
    const refused = answers.find(({ status }) => status === 503)
    const { retryAfterMs } = await refused.json()
    assert.ok(retryAfterMs > 500_000 && retryAfterMs <= 600_000, `come back in ${retryAfterMs} ms`)
    await sleep(1100)
  })

  test('killed and started again, the object goes on: the quota is spent', async () => {
    await workers.kill()
    await workers.start()
    const answers = await times(5, () => workers.get('run', { scope: 'quota', maxWait: 700 }))
    assert.deepEqual(
      answers.map(({ status }) => status),
      Array(5).fill(503),
      workers.said,
    )
  })

  test('two slots for all Workers', async (t) => {
    const site = await siteOf(t, 60)
    const answers = await times(20, () => workers.get('run', { scope: 'slots', target: site.url }))
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200], workers.said)
    assert.equal(site.counts.most, 2)
  })

  // The bar is a second, so whoever comes after them waits for less. Two leases are six seconds: without
  // disposal the places would come back after that.
  const goOn = async (site) => {
    const query = { scope: 'slots', maxWait: 950, ...(site && { target: `${site.url}next` }) }
    const answers = await times(4, () => workers.get('run', query))
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200], workers.said)
    if (site) assert.ok(site.counts.most <= 2, `${site.counts.most} at a time`)
  }

  const ask = (site, page, more) =>
    workers.client('run', { scope: 'slots', target: `${site.url}${page}`, ...more })

  test('Workers that throw while they hold give their places back within a second', async () => {
    const died = await times(8, () => workers.get('die', { scope: 'slots' }))
    assert.deepEqual([...new Set(died.map(({ status }) => status))], [500])
    await goOn()
  })

  // With its signal the Worker is told; without it the platform ends the Worker, and disposes.
  for (const signal of ['yes', 'no'])
    test(`clients that go while they wait, signal ${signal}: nothing is sent, the next goes on`, async (t) => {
      const site = await siteOf(t, 30)
      for (const page of ['held-1', 'held-2']) ask(site, page)
      await until(() => site.counts.now === 2)
      const waiting = ['gone-1', 'gone-2', 'gone-3'].map((page) => ask(site, page, { signal }))
      await until(async () => (await waits()) === 3)
      for (const client of waiting) client.go()
      await until(async () => (await waits()) === 0)
      const next = goOn(site)
      await until(async () => (await waits()) === 4)
      site.answerHeld()
      await next
      assert.deepEqual(
        site.counts.paths.filter((path) => path.startsWith('/gone')),
        [],
      )
    })

  test('clients that go while they hold: their places are free within a second', async (t) => {
    // Two sites: the next may be there before the first has seen its connection end.
    const [left, site] = [await siteOf(t, 30), await siteOf(t, 30)]
    const holding = ['held-1', 'held-2'].map((page) => ask(left, page))
    await until(() => left.counts.now === 2)
    for (const client of holding) client.go()
    await goOn(site)
    await until(() => left.counts.now === 0)
  })

  test('killed while Workers hold: the places of the dead are free within a second', async (t) => {
    const site = await siteOf(t, 30)
    for (const page of ['held-1', 'held-2']) ask(site, page)
    await until(() => site.counts.now === 2)
    // What they hold is stored once a second.
    await sleep(1500)
    await workers.kill()
    await workers.start()
    await goOn(site)
  })

  test('what one Worker is told, all are: a refusal slows them down', async (t) => {
    const site = await siteOf(t, 5, 429)
    const query = { scope: 'bad', target: site.url, maxWait: 3000 }
    assert.equal((await workers.get('run', query)).status, 429)
    const answers = await times(3, () => workers.get('run', query))
    assert.deepEqual(
      answers.map(({ status }) => status),
      [503, 503, 503],
      workers.said,
    )
    assert.equal(site.counts.all, 1)
  })
}
