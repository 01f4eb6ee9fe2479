/**
 * Limits shared by processes of one machine, with real ones: a socket, its death and a stopped process cannot
 * be played. What is asserted are counts at the server, not times.
 */
import assert from 'node:assert/strict'
import { fork, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { local } from '../../dist/local.js'
import { createThrottle } from '../../dist/node/index.js'
import { listen } from '../serve.mjs'
import { groupInRust } from './rust.mjs'

const isPosix = process.platform !== 'win32'
const root = mkdtempSync(join(tmpdir(), 'at-'))
const children = new Set()
after(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(root, { recursive: true, force: true })
})

/** A server that counts how many are there at a time, and how often by whom. */
async function site(latency) {
  const seen = { most: 0, by: new Map() }
  const flying = new Map()
  // This process may hear that a connection has ended after what another was given leave for by that end: so
  // a killed process does not count.
  const dead = new Set()
  const { server, url, stop } = await listen((request, response) => {
    const pid = Number(new URL(request.url, 'http://a').searchParams.get('by'))
    flying.set(pid, (flying.get(pid) ?? 0) + 1)
    const now = [...flying].reduce((sum, [who, count]) => sum + (dead.has(who) ? 0 : count), 0)
    seen.most = Math.max(seen.most, now)
    seen.by.set(pid, (seen.by.get(pid) ?? 0) + 1)
    const timer = setTimeout(() => response.end('ok'), latency)
    response.on('close', () => {
      clearTimeout(timer)
      flying.set(pid, flying.get(pid) - 1)
    })
  })
  // A process that was stopped for longer must not find its connections closed.
  server.keepAliveTimeout = 120_000
  seen.kill = (child) => {
    dead.add(child.pid)
    child.kill('SIGKILL')
  }
  return Object.assign(seen, { url: `${url}/`, stop })
}

function member(settings, workers = '') {
  const file = fileURLToPath(new URL('local-member.mjs', import.meta.url))
  const child = fork(file, [JSON.stringify({ folder: join(root, settings.name), ...settings }), workers])
  child.said = []
  child.on('message', (message) => child.said.push(message))
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

async function until(what, isSo) {
  for (let turn = 0; turn < 600; turn++) {
    if (await isSo()) return
    await sleep(50)
  }
  assert.fail(`${what}: not within 30 s`)
}

/** Which of them decides. */
async function writerOf(members) {
  for (let turn = 0; turn < 200; turn++) {
    for (const child of members) {
      const count = child.said.length
      child.send('state')
      for (let wait = 0; wait < 20 && child.said.length === count; wait++) await sleep(10)
      if (child.said.slice(count).some(({ state }) => state?.isWriter)) return child
    }
    await sleep(50)
  }
  return assert.fail('nobody decides')
}

async function stopAll(members) {
  for (const child of members) if (child.connected) child.send('end')
  await until('all have ended', () => members.every((child) => !children.has(child)))
}

/** Counts that grow by `more` for each of them. */
async function allAreServed(members, seen, more = 3) {
  const before = new Map(seen.by)
  const has = ({ pid }) => (seen.by.get(pid) ?? 0) >= (before.get(pid) ?? 0) + more
  await until('everybody is served', () => members.every(has))
}

const two = { defaults: { concurrency: 2, delay: 0, slotDelay: 0 } }

test('two slots for four processes; whoever decides or only asks may be killed or stopped', async (t) => {
  const seen = await site(30)
  t.after(seen.stop)
  let members = Array.from({ length: 4 }, () => member({ name: 'kill', url: seen.url, options: two }))
  await allAreServed(members, seen)
  for (const who of ['writer', 'other']) {
    const writer = await writerOf(members)
    const victim = who === 'writer' ? writer : members.find((child) => child !== writer)
    seen.kill(victim)
    members = members.filter((child) => child !== victim)
    await allAreServed(members, seen)
  }
  members.push(member({ name: 'kill', url: seen.url, options: two }))
  if (isPosix) {
    const writer = await writerOf(members)
    const others = members.filter((child) => child !== writer)
    writer.kill('SIGSTOP')
    await allAreServed(others, seen, 10)
    assert.ok(seen.most <= 2, `${seen.most} at a time`)
    writer.kill('SIGCONT')
    await allAreServed(members, seen, 10)
    // What was on its way out of the process when it stopped has left by now (docs/shared.md).
    seen.most = 0
    await allAreServed(members, seen, 10)
  }
  assert.ok(seen.most <= 2, `${seen.most} at a time`)
  await stopAll(members)
  assert.deepEqual(
    members.flatMap(({ said }) => said.filter(({ error, warning }) => error ?? warning)),
    [],
  )
  const left = readdirSync(join(root, 'kill')).filter(
    (name) => !/\.(?:epoch|state)$|^kill-[0-9a-f]+$/.test(name),
  )
  assert.deepEqual(
    left,
    [],
    'nothing is left but the number of the lease, what was learned, and what was killed',
  )
})

test("the workers of Node's cluster share one limit", async (t) => {
  const seen = await site(20)
  t.after(seen.stop)
  const program = member({ name: 'cluster', url: seen.url, options: two }, '3')
  await until('three workers', () => seen.by.size === 3 && [...seen.by.values()].every((count) => count > 5))
  assert.ok(seen.most <= 2, `${seen.most} at a time`)
  await stopAll([program])
})

test('other options are a warning, and those of the process that decides count', async (t) => {
  const seen = await site(20)
  t.after(seen.stop)
  const first = member({ name: 'options', url: seen.url, options: two })
  await allAreServed([first], seen)
  const many = { defaults: { ...two.defaults, concurrency: 9 } }
  const second = member({ name: 'options', url: seen.url, options: many, atOnce: 12 })
  await allAreServed([first, second], seen)
  await until('who differs warns', () => second.said.some(({ warning }) => warning === 'shared-options'))
  assert.ok(!first.said.some(({ warning }) => warning), 'whose options count need not')
  assert.ok(seen.most <= 2, `${seen.most} at a time`)
  await stopAll([first, second])
})

test('Rust and Node: one quota for three processes, whoever decides', { skip: !isPosix }, async (t) => {
  const binary = groupInRust()
  const seen = await site(0)
  t.after(seen.stop)
  const total = () => [...seen.by.values()].reduce((sum, count) => sum + count, 0)
  const [name, folder] = ['languages', join(root, 'languages')]
  const options = { quota: { limit: 12, window: 600_000 }, delay: 0, concurrency: 30 }
  const urls = Array.from({ length: 10 }, () => `${seen.url}?by=2`)
  const rust = () => {
    const child = spawn(binary, [folder, name, JSON.stringify(options), ...urls])
    children.add(child)
    return child
  }
  const first = rust()
  await until('Rust decides', () => total() > 0)
  const throttle = createThrottle({ ...options, shared: local({ name, folder }) })
  const settled = Promise.allSettled(urls.map(() => throttle.fetch(`${seen.url}?by=1`)))
  const second = rust()
  await until('twelve leave', () => total() >= 12)
  // The one that decided is gone: another one does, and knows what was spent.
  seen.kill(first)
  await until('another decides', () => {
    const { isWriter, epoch } = throttle.stats().shared
    return isWriter || epoch > 1
  })
  await sleep(300)
  assert.equal(total(), 12)
  second.kill('SIGKILL')
  throttle.close()
  await settled
  await throttle[Symbol.asyncDispose]()
})

test('the socket is for the same user alone', { skip: !isPosix }, async () => {
  const folder = join(root, 'own')
  const throttle = createThrottle({ ...two, shared: local({ name: 'own', folder }) })
  assert.ok(!existsSync(folder), 'nothing is made before the first request')
  const permit = await throttle.acquire({ scopes: 'x' })
  assert.equal(statSync(folder).mode & 0o777, 0o700)
  const socket = readdirSync(folder).find((name) => !name.includes('.'))
  assert.equal(statSync(join(folder, socket)).mode & 0o777, 0o600)
  assert.equal(throttle.stats().ageMs, 0)
  permit.settle()
  await throttle[Symbol.asyncDispose]()
  assert.deepEqual(readdirSync(folder).sort(), [`${socket}.epoch`, `${socket}.state`])
  const open = join(root, 'open')
  mkdirSync(open)
  chmodSync(open, 0o755)
  const refused = createThrottle({ ...two, shared: local({ name: 'own', folder: open, offline: 'fail' }) })
  const error = await refused.acquire({ scopes: 'x' }).catch((error) => error)
  assert.equal(error.code, 'ERR_CONFIG')
  assert.match(error.message, /want a folder of this user's that no other user may open/)
  await refused[Symbol.asyncDispose]()
})
