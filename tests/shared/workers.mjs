/** workerd for tests: a program is bundled as wrangler would, and served with a Durable Object on a disk. */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from './server.mjs'

const at = (name) => fileURLToPath(new URL(`../runtimes/node_modules/${name}/bin/workerd`, import.meta.url))
export const WORKERD = at('workerd')
/** The oldest that the entry can be imported in: before it `cloudflare:workers` has no `waitUntil`. */
export const OLDEST = at('workerd-oldest')
const config = (port, disk, date) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .worker),
    (name = "internet", network = (allow = ["private"])),
    (name = "disk", disk = (path = "${disk}", writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const worker :Workerd.Worker = (
  compatibilityDate = "${date}",
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

/** A Worker and its object in workerd, from a file or from code. */
export class Workers {
  #folder = mkdtempSync(join(tmpdir(), 'autothrottle-workers-'))
  #workerd
  #process
  said = ''

  constructor(workerd = WORKERD) {
    this.#workerd = workerd
  }

  async build(code) {
    const { build } = await import('esbuild')
    const resolveDir = fileURLToPath(new URL('.', import.meta.url))
    const contents = code ?? "export * from './worker.mjs'\nexport { default } from './worker.mjs'"
    await build({
      stdin: { contents, resolveDir, sourcefile: 'worker.ts', loader: 'ts' },
      bundle: true,
      format: 'esm',
      target: 'es2022',
      alias: { 'autothrottle/durable-object': join(resolveDir, '../../dist/edge/durable-object.js') },
      conditions: ['workerd', 'worker'],
      external: ['cloudflare:workers'],
      loader: { '.wasm': 'copy' },
      assetNames: '[name]',
      outdir: this.#folder,
      entryNames: 'worker',
      outExtension: { '.js': '.mjs' },
      logLevel: 'error',
    })
    mkdirSync(join(this.#folder, 'disk'))
    return this
  }

  async start() {
    const port = await freePort()
    this.url = `http://127.0.0.1:${port}`
    const date = this.#workerd === OLDEST ? '2025-07-01' : '2026-01-01'
    writeFileSync(join(this.#folder, 'config.capnp'), config(port, join(this.#folder, 'disk'), date))
    this.#process = spawn(this.#workerd, ['serve', 'config.capnp'], { cwd: this.#folder })
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
