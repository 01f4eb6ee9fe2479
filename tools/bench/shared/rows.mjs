/**
 * Cases that once starved a group, by real processes: `npm run test:shared -- --case rows`. A process that
 * asks for 40,000 permits at once; a writer with 3,000 hosts that is killed within a window, and its slots; a
 * connection of commands that is half open; a folder of sockets that vanishes; and the silence when a writer
 * is killed. `tools/bench/shared.md` has what was seen.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, RedisServer } from '../../../tests/shared/server.mjs'
import { member } from './play.mjs'
import { openWay } from './proxy.mjs'

const SCOPES = {
  control: { rate: 20 },
  slots: { concurrency: 4 },
  minute: { rate: 30, quota: { limit: 600, window: 60_000 } },
}

/** Processes of one group, the first of which writes: when each got which permit, by the wall clock. */
async function group(way, count, { ways = [], ...more } = {}) {
  const server = way === 'redis' ? await new RedisServer(await freePort()).start() : undefined
  const name = `rows-${process.pid}-${Date.now()}`
  const all = []
  for (let index = 0; index < count; index++) {
    const through = server && ways.includes(index) ? await openWay(server.port) : undefined
    const store = through?.port ?? server?.port
    const child = member('probe', { name, store, scopes: SCOPES, ...more })
    Object.assign(child, { given: [], through })
    child.on('message', (given) => child.given.push(given))
    ask(child, 'first', 1)
    while (child.given.length === 0) await sleep(20)
    all.push(child)
  }
  const stop = async () => {
    for (const child of all) {
      child.kill('SIGKILL')
      child.through?.stop()
    }
    await server?.stop()
  }
  return { all, stop }
}

const ask = (child, scope, count, then) => child.send({ scope, count, then })
const times = (child, scope) => child.given.filter((given) => given.scope === scope).map(({ at }) => at)

async function crowd(way) {
  const { all, stop } = await group(way, 2)
  const [writer, other] = all
  for (const child of all) ask(child, 'control', 4, 'again')
  await sleep(2000)
  const from = Date.now()
  ask(other, 'many', 40_000)
  ask(other, 'one', 1)
  await sleep(15_000)
  const [one] = times(other, 'one')
  const since = (child) => times(child, 'control').filter((at) => at > from + 5000).length / 10
  await stop()
  const rest = `then ${since(writer)}/s of 20 in the writer, ${since(other)}/s in this one`
  return `another permit after ${one ? ((one - from) / 1000).toFixed(2) : 'more than 15'} s; ${rest}`
}

async function slots(way) {
  const { all, stop } = await group(way, 2)
  const [writer, other] = all
  ask(writer, 'slots', 3, 'hold')
  await sleep(500)
  const from = Date.now()
  writer.kill('SIGKILL')
  ask(other, 'slots', 4, 'hold')
  await sleep(6000)
  const given = times(other, 'slots')
  await stop()
  return `${given.length} of 4, the last after ${((given.at(-1) - from) / 1000).toFixed(2)} s`
}

/** The writer alone spends a quota, knows 3,000 hosts, and is killed; another goes on within the window. */
async function minute(way) {
  const { all, stop } = await group(way, 2, { hosts: 3000 })
  const [writer, other] = all
  await sleep(5000)
  const from = Date.now()
  ask(writer, 'minute', 4, 'again')
  await sleep(16_000)
  writer.kill('SIGKILL')
  ask(other, 'minute', 4, 'again')
  await sleep(44_000)
  const sent = all.flatMap((child) => times(child, 'minute')).filter((at) => at < from + 60_000)
  await stop()
  return `${sent.length} of 600 in that minute`
}

/** A member's messages are lost without a sign: only what it hears arrives. */
async function halfOpen(way) {
  if (way !== 'redis') return '–'
  const { all, stop } = await group(way, 2, { ways: [1] })
  const [, other] = all
  for (const child of all) ask(child, 'control', 4, 'again')
  await sleep(3000)
  const from = Date.now()
  other.through.hollow('commands')
  await sleep(12_000)
  const given = times(other, 'control')
  const next = given.filter((at) => at > from + 500)[0]
  const last = given.filter((at) => at > from + 7000).length / 5
  await stop()
  const after = next ? ((next - from) / 1000).toFixed(1) : 'more than 12'
  return `served again after ${after} s, then ${last}/s of 20 in it`
}

/** A cleaner removes the folder of the sockets. */
async function noFolder(way) {
  if (way !== 'local') return '–'
  const folder = mkdtempSync(join(tmpdir(), 'autothrottle-rows-'))
  const { all, stop } = await group(way, 3, { folder })
  for (const child of all) ask(child, 'control', 4, 'again')
  await sleep(3000)
  rmSync(folder, { recursive: true })
  const from = Date.now()
  await sleep(10_000)
  const since = all.map((child) => times(child, 'control').filter((at) => at > from + 5000).length / 5)
  const failed = all.flatMap((child) => child.given.filter(({ code }) => code)).length
  await stop()
  rmSync(folder, { recursive: true, force: true })
  return `${since.join(', ')}/s of 20 five seconds later, ${failed} failed`
}

async function silence(way, count) {
  const { all, stop } = await group(way, count)
  for (const child of all) ask(child, 'control', 4, 'again')
  await sleep(3000)
  const from = Date.now()
  all[0].kill('SIGKILL')
  await sleep(5000)
  const given = all.flatMap((child) => times(child, 'control')).filter((at) => at > from - 200)
  given.push(Date.now())
  given.sort((one, other) => one - other)
  const longest = Math.max(...given.slice(1).map((at, index) => at - given[index]))
  await stop()
  return `${(longest / 1000).toFixed(2)} s at the longest`
}

/** Name, and what plays it. */
export const ROWS = {
  crowd: ['a member asks for 40,000 permits at once', crowd],
  minute: ['a writer with 3,000 hosts is killed within a quota of 600 a minute', minute],
  halfOpen: ['the connection of commands of one of 2 is half open', halfOpen],
  slots: ['the writer held 3 of 4 slots and is killed', slots],
  noFolder: ['the folder of the sockets of 3 vanishes', noFolder],
  silence3: ['silence when the writer of 3 is killed', (way) => silence(way, 3)],
  silence8: ['… of 8', (way) => silence(way, 8)],
}
