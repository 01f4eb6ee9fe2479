/**
 * What once starved a group, by real processes: `npm run test:shared -- --case rows`. A process that asks for
 * 40,000 permits at once; the slots of a writer that is killed; and the silence when it is.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, RedisServer } from '../../tests/shared/server.mjs'
import { member } from './play.mjs'

const SCOPES = { control: { rate: 20 }, slots: { concurrency: 4 } }

/** Processes of one group, the first of which writes: when each got which permit, by the wall clock. */
async function group(way, count) {
  const server = way === 'redis' ? await new RedisServer(await freePort()).start() : undefined
  const name = `rows-${process.pid}-${Date.now()}`
  const all = []
  for (let index = 0; index < count; index++) {
    const child = member('probe', { name, store: server?.port, scopes: SCOPES })
    child.given = []
    child.on('message', (given) => child.given.push(given))
    ask(child, 'first', 1)
    while (child.given.length === 0) await sleep(20)
    all.push(child)
  }
  const stop = async () => {
    for (const child of all) child.kill('SIGKILL')
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
  slots: ['the writer held 3 of 4 slots and is killed', slots],
  silence3: ['silence when the writer of 3 is killed', (way) => silence(way, 3)],
  silence8: ['… of 8', (way) => silence(way, 8)],
}
