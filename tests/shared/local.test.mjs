/**
 * Limits shared by processes of one machine, with real ones: a socket, its death and a stopped process cannot
 * be played. The assertions are about counts at the server, not times.
 */
import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { local } from '../../dist/local.js'
import { createThrottle } from '../../dist/node/index.js'
import { sharesWithRust, member as start, startSite, stopAll, until } from './processes.mjs'

const isPosix = process.platform !== 'win32'
const root = mkdtempSync(join(tmpdir(), 'at-'))
after(() => rmSync(root, { recursive: true, force: true }))

const member = (settings, workers) => start({ folder: join(root, settings.name), ...settings }, workers)

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
  return assert.fail('no process decides')
}

/** Counts that grow by `more` for each of them. */
async function allAreServed(members, seen, more = 3) {
  const before = new Map(seen.by)
  const has = ({ pid }) => (seen.by.get(pid) ?? 0) >= (before.get(pid) ?? 0) + more
  await until('everybody is served', () => members.every(has))
}

const two = { defaults: { concurrency: 2, delay: 0, slotDelay: 0 } }

test('two slots for four processes; one that decides or only asks may be killed or stopped', async (t) => {
  const seen = await startSite(30)
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
    // A request on its way out of the process when it stopped has left by now (docs/shared.md).
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

test('the slots that a writer held come back when it is killed, and not two leases later', async (t) => {
  const site = await startSite(300)
  t.after(site.stop)
  const settings = { name: 'held', options: { defaults: { concurrency: 4, delay: 0, slotDelay: 0 } } }
  const writer = member({ ...settings, url: `${site.url}held`, atOnce: 3 })
  await until('the writer holds three', () => site.total === 3)
  const other = member({ ...settings, url: site.url })
  const left = () => site.by.get(other.pid) ?? 0
  await until('the other has the fourth', () => left() > 2)
  assert.equal(site.most, 4)
  site.kill(writer)
  const before = left()
  site.most = 0
  await until('it has all four', () => site.most === 4)
  // In two leases ten would have left, one after another.
  assert.ok(left() - before <= 8, `${left() - before} left before there were four at a time`)
  await stopAll([other])
})

test("the workers of Node's cluster share one limit", async (t) => {
  const seen = await startSite(20)
  t.after(seen.stop)
  const program = member({ name: 'cluster', url: seen.url, options: two }, '3')
  await until('three workers', () => seen.by.size === 3 && [...seen.by.values()].every((count) => count > 5))
  assert.ok(seen.most <= 2, `${seen.most} at a time`)
  await stopAll([program])
})

test('other options are a warning, and those of the process that decides count', async (t) => {
  const seen = await startSite(20)
  t.after(seen.stop)
  const first = member({ name: 'options', url: seen.url, options: two })
  await allAreServed([first], seen)
  const many = { defaults: { ...two.defaults, concurrency: 9 } }
  const second = member({ name: 'options', url: seen.url, options: many, atOnce: 12 })
  await allAreServed([first, second], seen)
  await until('who differs warns', () => second.said.some(({ warning }) => warning === 'group-options'))
  assert.ok(!first.said.some(({ warning }) => warning), 'whose options count need not')
  assert.ok(seen.most <= 2, `${seen.most} at a time`)
  await stopAll([first, second])
})

test('Rust and Node: one quota for three processes, whichever decides', { skip: !isPosix }, async () => {
  const folder = join(root, 'languages')
  await sharesWithRust(folder, local({ name: 'languages', folder }))
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
