/**
 * Helpers of the tests with real processes: a server that counts, the processes of a group, and the program
 * of a group in Rust. The assertions are about counts at the server, not times.
 */
import assert from 'node:assert/strict'
import { fork, spawn, spawnSync } from 'node:child_process'
import { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createThrottle } from '../../dist/node/index.js'
import { listen } from '../serve.mjs'

const children = new Set()
after(() => {
  for (const child of children) child.kill('SIGKILL')
})

/** The child of `spawn` or `fork`: it is ended with the tests. */
function kept(child) {
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

/** A server that counts: how many at a time, how often by whom. `/held` is never answered. */
export async function startSite(latency) {
  const flying = new Map()
  // This process may hear that a connection has ended after what another was given leave for by that end: so
  // what `kill` has ended does not count.
  const dead = new Set()
  const site = {
    most: 0,
    by: new Map(),
    get total() {
      return [...site.by.values()].reduce((sum, count) => sum + count, 0)
    },
    kill(child) {
      dead.add(child.pid)
      child.kill('SIGKILL')
    },
  }
  const { server, url, stop } = await listen((request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://a')
    const pid = Number(searchParams.get('by'))
    flying.set(pid, (flying.get(pid) ?? 0) + 1)
    const now = [...flying].reduce((sum, [who, count]) => sum + (dead.has(who) ? 0 : count), 0)
    site.most = Math.max(site.most, now)
    site.by.set(pid, (site.by.get(pid) ?? 0) + 1)
    const timer = pathname === '/held' ? undefined : setTimeout(() => response.end('ok'), latency)
    response.on('close', () => {
      clearTimeout(timer)
      flying.set(pid, flying.get(pid) - 1)
    })
  })
  // A process that was stopped for longer must not find its connections closed.
  server.keepAliveTimeout = 120_000
  return Object.assign(site, { url: `${url}/`, stop })
}

/** Waits until it is so; fails after half a minute. */
export async function until(what, isSo) {
  for (let turn = 0; turn < 600; turn++) {
    if (await isSo()) return
    await sleep(50)
  }
  assert.fail(`${what}: not within 30 s`)
}

/** A process of a group, or a program with workers that are. */
export function member(settings, workers = '') {
  const file = fileURLToPath(new URL('member.mjs', import.meta.url))
  const child = kept(fork(file, [JSON.stringify(settings), workers]))
  child.said = []
  child.on('message', (message) => child.said.push(message))
  return child
}

export async function stopAll(members) {
  for (const child of members) if (child.connected) child.send('end')
  await until('all have ended', () => members.every((child) => !children.has(child)))
}

/** The program of the crate for tower that joins a group (`tower/examples/group.rs`), compiled: its path. */
function groupInRust() {
  const how = ['build', '--locked', '--example', 'group', '--all-features', '--message-format=json']
  const args = [...how, '--manifest-path', 'tower/Cargo.toml']
  const built = spawnSync('cargo', args, { encoding: 'utf8', maxBuffer: 2 ** 26 })
  if (built.status !== 0) throw new Error(built.stderr)
  const made = built.stdout.split('\n').filter(Boolean)
  return made.map((line) => JSON.parse(line)).findLast(({ executable }) => executable).executable
}

/** Two processes in Rust and this one have one quota, whichever decides: the group `languages` at `place`. */
export async function sharesWithRust(place, shared) {
  const binary = groupInRust()
  const site = await startSite(0)
  const options = { quota: { limit: 12, window: 600_000 }, delay: 0, concurrency: 30 }
  const urls = Array.from({ length: 10 }, () => `${site.url}?by=2`)
  const rust = () => kept(spawn(binary, [place, 'languages', JSON.stringify(options), ...urls]))
  const first = rust()
  await until('Rust decides', () => site.total > 0)
  const throttle = createThrottle({ ...options, shared })
  const settled = Promise.allSettled(urls.map(() => throttle.fetch(`${site.url}?by=1`)))
  const second = rust()
  await until('twelve leave', () => site.total >= 12)
  // The one that decided is gone: another one does, and knows what was spent.
  site.kill(first)
  await until('another decides', () => {
    const { isWriter, epoch } = throttle.stats().shared
    return isWriter || epoch > 1
  })
  await sleep(300)
  assert.equal(site.total, 12)
  second.kill('SIGKILL')
  throttle.close()
  await settled
  await throttle[Symbol.asyncDispose]()
  site.stop()
}
