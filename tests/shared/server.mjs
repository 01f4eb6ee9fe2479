/** A redis-server (or valkey-server) of the test's own, on a free port, that keeps no data. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The servers that are installed here. */
export const SERVERS = ['redis-server', 'valkey-server'].filter(
  (name) => spawnSync(name, ['--version']).status === 0,
)

/**
 * A free port, for a server that is about to start. Not one of those that connections go out from: until it
 * listens, one of them might get it.
 */
export async function freePort() {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 20_000)
    const server = createServer()
    const isFree = await new Promise((resolve) => {
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!isFree) continue
    await new Promise((resolve) => server.close(resolve))
    return port
  }
}

export class RedisServer {
  #process
  #folder = mkdtempSync(join(tmpdir(), 'autothrottle-redis-'))

  constructor(port, { binary = SERVERS[0], args = [] } = {}) {
    this.port = port
    this.binary = binary
    this.args = args
  }

  async start() {
    const quiet = ['--save', '', '--appendonly', 'no', '--bind', '127.0.0.1', '--dir', this.#folder]
    this.#process = spawn(this.binary, ['--port', String(this.port), ...quiet, ...this.args])
    await new Promise((resolve, reject) => {
      this.#process.stdout.on('data', (text) => /Ready to accept/.test(text) && resolve())
      this.#process.once('exit', () => reject(new Error(`${this.binary} has ended`)))
    })
    return this
  }

  /** All that it knew is lost. */
  async kill() {
    const ended = new Promise((resolve) => this.#process.once('exit', resolve))
    this.#process.kill('SIGKILL')
    await ended
  }

  /** It stands still for this many milliseconds. */
  async stand(ms) {
    this.#process.kill('SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, ms))
    this.#process.kill('SIGCONT')
  }

  async stop() {
    if (this.#process?.exitCode === null && this.#process.signalCode === null) await this.kill()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** A Sentinel that promotes the replica of `master` when that is gone for a second. */
export class Sentinel {
  #process
  #folder = mkdtempSync(join(tmpdir(), 'autothrottle-sentinel-'))

  constructor(port, master) {
    this.port = port
    this.master = master
  }

  async start() {
    const file = join(this.#folder, 'sentinel.conf')
    const lines = [
      `port ${this.port}`,
      `dir ${this.#folder}`,
      `sentinel monitor mine 127.0.0.1 ${this.master} 1`,
      'sentinel down-after-milliseconds mine 1000',
      'sentinel failover-timeout mine 5000',
    ]
    writeFileSync(file, `${lines.join('\n')}\n`)
    this.#process = spawn(SERVERS[0], [file, '--sentinel'])
    await new Promise((resolve, reject) => {
      this.#process.stdout.on('data', (text) => /\+monitor/.test(text) && resolve())
      this.#process.once('exit', () => reject(new Error('the sentinel has ended')))
    })
    return this
  }

  #ask(...args) {
    return spawnSync('redis-cli', ['-p', String(this.port), 'SENTINEL', ...args], { encoding: 'utf8' }).stdout
  }

  async #until(isSo) {
    for (let turn = 0; turn < 600; turn++) {
      if (isSo()) return
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    throw new Error('the sentinel: not within 30 s')
  }

  knowsReplica() {
    return this.#until(() => /\d/.test(this.#ask('replicas', 'mine')))
  }

  hasPromoted(port) {
    return this.#until(() => this.#ask('get-master-addr-by-name', 'mine').includes(String(port)))
  }

  async stop() {
    const ended = new Promise((resolve) => this.#process.once('exit', resolve))
    this.#process.kill('SIGKILL')
    await ended
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
