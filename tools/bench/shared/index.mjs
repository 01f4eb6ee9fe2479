/**
 * Processes that share a limit, with faults: `npm run test:shared`. Behind nginx, which limits to 10 a second
 * and does not say so, what was served and refused is read from its own log; `outages.mjs` has a server that
 * counts.
 *
 * `--way local|redis` (both, where there is a redis-server),
 * `--case NAME` one of those in `play.mjs` or `outages.mjs` (`outages`: all of those), or `permits`,
 * `takeover`, or, tables without a bar, `costs` (beside other libraries) and `rows` (what once starved a
 * group); `--seconds N` shortens the cases behind nginx: then bars mean little. Everything takes about 35
 * minutes. It ends with 1 if a bar is missed, and says how busy the machine was.
 *
 * *One process alone* runs beside each case, against a zone of its own, and is what it is compared with: a
 * machine may be busy.
 */
import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, RedisServer, SERVERS } from '../../../tests/shared/server.mjs'
import { costs } from './costs.mjs'
import { OUTAGES } from './outages.mjs'
import { CASES, member, play } from './play.mjs'
import { ROWS } from './rows.mjs'

const HOSTS = 100_000

/** Asks in `count` processes, `atOnce` at a time for `ms`, and gives their reports. */
async function asks(count, atOnce, store, ms = 3000) {
  const name = `asks-${process.pid}-${count}-${Date.now()}`
  const children = Array.from({ length: count }, (_, index) =>
    member('asks', { name, index, atOnce, ms, store }),
  )
  const said = children.map((child) => new Promise((resolve) => child.once('message', resolve)))
  const all = await Promise.all(said)
  for (const child of children) child.kill()
  return all
}

/** Permits a second, at the least, and µs of processors for each, at the most. */
const [LEAST, MOST] = [30_000, 35]

/** A member that asks one at a time, and eight processes that ask 32 at a time: the median of five runs. */
async function permits(way) {
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
async function takeover(way) {
  const store = way === 'redis' ? await new RedisServer(await freePort()).start() : undefined
  const settings = { name: `takeover-${process.pid}`, store: store?.port }
  const first = member('takeover', { ...settings, hosts: HOSTS })
  await sleep(500)
  const second = member('takeover', { ...settings, hosts: 0 })
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

/** The cases without nginx: how long it takes to go on with many hosts, and how many permits a second. */
const OWN = {
  takeover: ['another takes over with 100,000 hosts', takeover],
  permits: ['permits', permits],
}

function option(name, fallback) {
  const at = process.argv.indexOf(name)
  return at > 0 ? process.argv[at + 1] : fallback
}

const ways = option('--way') ? [option('--way')] : ['local', ...(SERVERS.length > 0 ? ['redis'] : [])]
const chosen = option('--case')
const most = Number(option('--seconds', Number.POSITIVE_INFINITY))
const names = [CASES, OUTAGES, OWN].flatMap(Object.keys).concat('outages', 'costs', 'rows')
if (chosen !== undefined && !names.includes(chosen)) {
  console.error(`--case: want one of ${names.join(', ')}; got ${chosen}`)
  process.exit(2)
}

if (chosen === 'rows') {
  console.log('| way | what | seen | load |\n|---|---|---|---|')
  for (const [what, plays] of Object.values(ROWS))
    for (const way of ways)
      console.log(`| ${way} | ${what} | ${await plays(way)} | ${loadavg()[0].toFixed(1)} |`)
  process.exit()
}
if (chosen === 'costs') {
  await costs(ways)
  process.exit()
}

let missed = 0
const shown = ({ util, refused, refusedPct, silence, fair }) =>
  `util ${util}, ${refused} refused (${refusedPct} %), silence ${silence} s, shares ${fair}`

function row(way, name, isMet, said) {
  if (!isMet) missed++
  const load = loadavg()[0].toFixed(1)
  console.log(`| ${way} | ${name} | ${said} | ${load} | ${isMet ? 'yes' : '**no**'} |`)
}

console.log('| way | case | counts | load | bar met |\n|---|---|---|---|---|')
for (const way of ways)
  for (const [key, what] of Object.entries(CASES)) {
    if (chosen !== undefined && chosen !== key) continue
    if (what.ways && !what.ways.includes(way)) continue
    const { shared, ...others } = await play(what, way, most)
    const said = [`${shown(shared)}, at most ${shared.mostAtOnce} at a time`]
    for (const [who, counts] of Object.entries(others)) said.push(`${who}: ${shown(counts)}`)
    row(way, what.name, what.bar(shared, others), said.join('<br>'))
  }
for (const [key, [name, plays]] of Object.entries(OUTAGES)) {
  if (!ways.includes('redis') || (chosen !== undefined && chosen !== key && chosen !== 'outages')) continue
  const { isMet, said } = await plays()
  row('redis', name, isMet, said)
}
for (const [key, [name, plays]] of Object.entries(OWN))
  for (const way of ways) {
    if (chosen !== undefined && chosen !== key) continue
    const { isMet, said } = await plays(way)
    row(way, name, isMet, said)
  }
process.exit(missed > 0 && !Number.isFinite(most) ? 1 : 0)
