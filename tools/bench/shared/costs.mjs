/**
 * The cost of a permit beside other libraries that share a limit through Redis: `npm run test:shared --
 * --case costs`. Each process asks eight at a time, for a limit that does not bite, and then for 200 a
 * second. Permits a second of all processes, µs of processors and commands of Redis for each; and what the
 * writer got beside the mean of the others.
 */
import { createRequire } from 'node:module'
import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, RedisServer } from '../../../tests/shared/server.mjs'
import { member } from './play.mjs'

const [WARM, MS] = [2000, 3000]
export const LIBRARIES = ['local', 'redis', 'bottleneck', 'rate-limiter-flexible']

async function one(library, count, rate) {
  const server = library === 'local' ? undefined : await new RedisServer(await freePort()).start()
  const store = server?.port
  const name = `costs-${process.pid}-${library}-${count}-${rate}`
  const told = { library, name, store, rate, atOnce: 8, ms: MS, warmMs: WARM }
  const children = Array.from({ length: count }, () => member('costs', told))
  const next = (child) =>
    new Promise((resolve, reject) => {
      child.once('message', resolve)
      child.once('exit', () => reject(new Error(`a process of ${library} has ended`)))
    })
  await Promise.all(children.map(next))
  const all = Promise.all(children.map(next))
  for (const child of children) child.send('go')
  await sleep(WARM)
  const before = await commandsOf(store)
  await sleep(MS)
  const commands = (await commandsOf(store)) - before
  const said = await all
  for (const child of children) child.kill()
  await server?.stop()
  const sum = (key, some = said) => some.reduce((sum, each) => sum + each[key], 0)
  const permits = sum('count')
  const others = said.filter(({ isWriter }) => !isWriter)
  const writer = sum('count') - sum('count', others)
  const share = count > 1 && library.length < 6 ? writer / (sum('count', others) / (count - 1)) : Number.NaN
  return {
    perSecond: permits / (MS / 1000),
    micros: sum('micros') / permits,
    commands: store ? commands / permits : 0,
    share,
  }
}

async function commandsOf(port) {
  if (port === undefined) return 0
  const require = createRequire(import.meta.url)
  const Redis = require('ioredis')
  const client = new Redis(port)
  const stats = await client.info('stats')
  client.disconnect()
  return Number(/total_commands_processed:(\d+)/.exec(stats)[1])
}

export async function costs(ways) {
  console.log(
    '| library | processes | limit | permits/s | µs each | commands each | writer ÷ member | load |',
  )
  console.log('|---|---|---|---|---|---|---|---|')
  for (const rate of [0, 200])
    for (const library of LIBRARIES.filter((each) => each.length > 5 || ways.includes(each)))
      for (const count of rate > 0 ? [2, 8] : [1, 8, 32]) {
        const { perSecond, micros, commands, share } = await one(library, count, rate)
        const numbers = [perSecond.toFixed(0), micros.toFixed(0), commands.toFixed(2)]
        const part = Number.isNaN(share) ? '–' : share.toFixed(2)
        const limit = rate > 0 ? `${rate} a second` : 'none that bites'
        console.log(`| ${[library, count, limit, ...numbers, part, loadavg()[0].toFixed(1)].join(' | ')} |`)
      }
}
