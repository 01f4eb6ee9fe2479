/**
 * One case: eight processes behind nginx, others beside them, and what nginx wrote down.
 *
 * A process takes a second or more to start where many start at once, and so does a slow way to the store:
 * both would count as time without a send. All processes are therefore there before any begins, and the time
 * runs from when each group was served once.
 */
import { fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { listen } from '../../../tests/serve.mjs'
import { freePort, RedisServer } from '../../../tests/shared/server.mjs'
import { limitReq, noLimit, startNginx } from '../nginx-server.mjs'
import { slowWay } from './proxy.mjs'

const COUNT = 8
export const RATE = 10

/** A process of a group in this role. */
export const member = (role, settings) =>
  fork(fileURLToPath(new URL('member.mjs', import.meta.url)), [role, JSON.stringify(settings)])

function worker(settings) {
  const child = member('worker', settings)
  child.isReady = new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error('a process has ended before it began')))
    child.on('message', (message) => {
      if ('isWriter' in message) child.isWriter = message.isWriter
      else resolve()
    })
  })
  return child
}

/** Plays the faults on the eight processes, each at its time. */
function schedule(what, seconds, all, store) {
  for (const [at, fault] of what.faults ?? []) {
    if (at >= seconds) continue
    sleep(at * 1000).then(async () => {
      const living = all.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
      const writer = living.find(({ isWriter }) => isWriter) ?? living[0]
      if (fault === 'kill the writer') writer.kill('SIGKILL')
      if (fault === 'kill a member') living.find((child) => child !== writer)?.kill('SIGKILL')
      if (fault === 'stop the writer') {
        writer.kill('SIGSTOP')
        await sleep(5000)
        writer.kill('SIGCONT')
      }
      if (fault === 'restart the store' && store) {
        await store.kill()
        await store.start()
      }
    })
  }
}

/**
 * Of lines of `[port, status, seconds, who]`: served ÷ allowed, what was refused, the longest silence in
 * seconds, and the least ÷ the most that one process got.
 */
function countsOf(lines, { rate, seconds, from }) {
  const started = Math.min(...lines.map(([, , at]) => Number(at)))
  const end = started + seconds - 1
  const within = lines.filter(([, , at]) => Number(at) >= started + from && Number(at) <= end)
  const served = within.filter(([, status]) => status === '200')
  const refused = within.filter(([, status]) => status === '429').length
  const times = served.map(([, , at]) => Number(at)).sort((a, b) => a - b)
  const silences = times.slice(1).map((at, index) => at - times[index])
  const by = new Map()
  for (const [, , , who] of served) by.set(who, (by.get(who) ?? 0) + 1)
  const round = (number) => Math.round(number * 1000) / 1000
  return {
    served: served.length,
    util: round(served.length / (rate * (seconds - 1 - from))),
    refused,
    refusedPct: round((100 * refused) / Math.max(within.length, 1)),
    silence: round(Math.max(0, ...silences)),
    fair: round(Math.min(...by.values()) / Math.max(...by.values())),
  }
}

/** The counts of the eight as `shared`, of one process as `alone`, and of those beside them. */
export async function play(what, way, most) {
  const seconds = Math.min(what.seconds, most)
  let [now, mostAtOnce] = [0, 0]
  const beside = Object.entries(what.beside ?? {})
  const silent = new Set(['shared', 'alone', ...beside.map(([who]) => who)])
  let allServed
  const served = new Promise((resolve) => {
    allServed = resolve
  })
  const upstream = await listen((request, response) => {
    const [who] = request.headers['x-who'].split('-')
    const isShared = who === 'shared'
    if (silent.delete(who) && silent.size === 0) allServed()
    if (isShared) mostAtOnce = Math.max(mostAtOnce, ++now)
    const timer = setTimeout(() => response.end('page'), what.upstream ?? 200)
    response.on('close', () => {
      clearTimeout(timer)
      if (isShared) now--
    })
  })
  const limit = what.slots ? noLimit : limitReq(RATE, what.burst)
  const server = await startNginx(limit, upstream.port, 2 + beside.length)
  const store = way === 'redis' ? await new RedisServer(await freePort()).start() : undefined
  const slow = what.isSlow ? await slowWay(store.port) : undefined
  const name = `bench-${process.pid}-${Date.now()}`
  const slots = { delay: 0, slotDelay: 0, jitter: false, concurrency: what.slots }
  const options = { maxInFlight: 256, defaults: what.slots ? slots : { rampup: true } }
  const group = (who, how, zone, port) =>
    Array.from({ length: COUNT }, (_, index) =>
      worker({
        ...{ way: how, name: `${name}-${who}`, options, who: `${who}-${index}`, store: port, rate: RATE },
        steps: what.clock,
        ...{ skew: (index - COUNT / 2) * (what.skew ?? 0), url: `http://127.0.0.1:${server.ports[zone]}/` },
      }),
    )
  const all = group('shared', way, 0, slow?.port ?? store?.port)
  const url = `http://127.0.0.1:${server.ports[1]}/`
  const alone = worker({ way: 'alone', options, who: 'alone', skew: 0, url, loops: 4 * COUNT })
  const others = beside.flatMap(([who, how], index) => group(who, how, 2 + index, store?.port))
  const children = [...all, alone, ...others]
  await Promise.all(children.map(({ isReady }) => isReady))
  for (const child of children) child.send('begin')
  await served
  schedule(what, seconds, all, store)
  await sleep(seconds * 1000)
  for (const child of children) child.kill('SIGKILL')
  const lines = await server.stop()
  upstream.stop()
  slow?.stop()
  await store?.stop()
  const from = Math.min(what.from ?? 0, seconds / 2)
  const of = (zone) =>
    countsOf(
      lines.filter(([line]) => line === String(server.ports[zone])),
      { rate: RATE, seconds, from },
    )
  const rest = beside.map(([who], index) => [who, of(2 + index)])
  return { shared: { ...of(0), mostAtOnce }, alone: of(1), ...Object.fromEntries(rest) }
}

// The cases behind nginx, 10 a second. `bar` says what is asked for of the counts, beside those of one
// process alone in the same run; `beside` are other groups of eight, each against a zone of its own.

/** Faults: the action, the process it meets, and the second. */
const FAULTS = [
  [20, 'kill the writer'],
  [40, 'kill a member'],
  [60, 'stop the writer'],
  [85, 'restart the store'],
]

const asAlone = ({ util, refused }, { alone }) => util >= 0.95 && refused <= alone.refused + 3

export const CASES = {
  steady: {
    name: '120 s, burst 20, second minute',
    ...{ seconds: 120, burst: 20, from: 60 },
    bar: ({ util, refusedPct }) => util >= 0.97 && refusedPct <= 0.5,
  },
  'cold-20': { name: '60 s cold, burst 20', ...{ seconds: 60, burst: 20 }, bar: asAlone },
  'cold-0': {
    name: '60 s cold, burst 0',
    ...{ seconds: 60, burst: 0 },
    bar: ({ util, refused }, { alone }) => util >= alone.util - 0.03 && refused <= alone.refused + 3,
  },
  faults: {
    name: 'writer and member killed, writer stopped, store restarted',
    ...{ seconds: 110, burst: 20, faults: FAULTS },
    bar: ({ util, refusedPct, silence }) => util >= 0.95 && refusedPct <= 1 && silence <= 2.5,
  },
  clocks: {
    name: 'clocks an hour apart',
    ...{ seconds: 60, burst: 20, skew: 3_600_000 },
    bar: asAlone,
  },
  'store-clock': {
    name: "the store's clock set on by a minute, and back",
    ...{ seconds: 60, burst: 20, ways: ['redis'] },
    // From when, in seconds, and how far ahead it is then.
    clock: [
      [20, 60],
      [40, 0],
    ],
    bar: asAlone,
  },
  rtt: {
    name: 'a way of 50 ms ± 20 to the store, burst 20',
    ...{ seconds: 60, burst: 20, ways: ['redis'], isSlow: true, beside: { direct: 'redis' } },
    bar: ({ util }, { direct }) => util > 0 && util >= 0.9 * direct.util,
  },
  bottleneck: {
    name: 'burst 0, beside bottleneck, which is told 10 a second',
    ...{ seconds: 60, burst: 0, ways: ['redis'], beside: { bottleneck: 'bottleneck' } },
    bar: ({ util, refused }, { bottleneck }) =>
      util > 0 && util >= bottleneck.util && refused <= bottleneck.refused,
  },
  shares: {
    name: 'shares, least ÷ most, burst 20',
    ...{ seconds: 60, burst: 20 },
    bar: ({ fair }) => fair >= 0.9,
  },
  slots: {
    name: 'four slots, answers of 30 s, writer killed',
    ...{ seconds: 75, upstream: 30_000, slots: 4, faults: [[15, 'kill the writer']] },
    bar: ({ mostAtOnce }) => mostAtOnce <= 4,
  },
}
