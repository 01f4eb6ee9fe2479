/** The cases without nginx: how many permits a second, and how long it takes to go on with many hosts. */
import { fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort, RedisServer } from '../../tests/shared/server.mjs'

const HOSTS = 100_000

const member = (file, settings) =>
  fork(fileURLToPath(new URL(file, import.meta.url)), [JSON.stringify(settings)])

/** What `count` processes say that ask `atOnce` at a time for `ms`. */
async function asks(count, atOnce, store, ms = 3000) {
  const name = `asks-${process.pid}-${count}-${Date.now()}`
  const children = Array.from({ length: count }, (_, index) =>
    member('asks.mjs', { name, index, atOnce, ms, store }),
  )
  const said = children.map((child) => new Promise((resolve) => child.once('message', resolve)))
  const all = await Promise.all(said)
  for (const child of children) child.kill()
  return all
}

/** Permits a second, at the least, and µs of processors for each, at the most. */
const [LEAST, MOST] = [30_000, 35]

/** A member that asks one at a time, and eight processes that ask 32 at a time: the median of five runs. */
export async function permits(way) {
  const server = way === 'redis' ? await new RedisServer(await freePort()).start() : undefined
  const store = server?.port
  const [one] = (await asks(2, 1, store)).filter(({ isWriter }) => !isWriter)
  const runs = []
  for (let run = 0; run < 5; run++) {
    const many = await asks(8, 32, store)
    const total = many.reduce((sum, { count }) => sum + count, 0)
    // Of all processes: it strays less than the rate where a machine has other work.
    const micros = many.reduce((sum, each) => sum + each.micros, 0) / total
    runs.push({ perSecond: Math.round(total / 3), micros })
  }
  await server?.stop()
  const median = (key) => runs.map((run) => run[key]).sort((a, b) => a - b)[2]
  const [perSecond, micros] = [median('perSecond'), median('micros')]
  const medianMs = one.medianMs
  const all = runs.map((run) => run.perSecond).join(', ')
  return {
    isMet: perSecond >= LEAST && micros <= MOST && (way === 'redis' || medianMs <= 0.3),
    said: `${perSecond} permits a second by 8 × 32, the median of ${all}; ${micros.toFixed(0)} µs of processors each; ask to grant ${medianMs.toFixed(3)} ms, the median`,
  }
}

/** The silence of a process while it takes over from one that is killed and knew many hosts. */
export async function takeover(way) {
  const store = way === 'redis' ? await new RedisServer(await freePort()).start() : undefined
  const settings = { way, name: `takeover-${process.pid}`, store: store?.port }
  const first = member('takeover-member.mjs', { ...settings, hosts: HOSTS })
  await sleep(500)
  const second = member('takeover-member.mjs', { ...settings, hosts: 0 })
  let [knows, heard] = [0, 0]
  const given = []
  first.on('message', (message) => {
    knows = message.knows
  })
  second.on('message', (message) => {
    if (message.given) given.push(message.given)
    else heard = message.heard
  })
  for (let second_ = 0; second_ < 120 && (knows === 0 || heard < HOSTS); second_++) {
    await sleep(1000)
    if (knows > 0) second.send('heard')
  }
  const killedAt = Date.now()
  first.kill('SIGKILL')
  await sleep(6000)
  second.send('heard')
  await sleep(3000)
  second.kill('SIGKILL')
  await store?.stop()
  const next = given.find((at) => at > killedAt + 50)
  const before = given.findLast((at) => at <= killedAt + 50)
  const seconds = (next - before) / 1000
  return {
    isMet: heard >= HOSTS && seconds <= 3,
    said: `${heard} hosts were known to the other; silence ${seconds.toFixed(2)} s`,
  }
}
