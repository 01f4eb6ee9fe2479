/**
 * The scenes of *How it works*: what is simulated, and what is said of it. All figures in the sentences come from
 * the runs. The network is slow, so that one sees requests travel.
 *
 * They are played as the site is built: each request with its times, and why the next one waits, as plain data
 * that a page can draw. The page needs no engine, and a test plays them again.
 */
import { toHash } from '../playground/program.js'
import { isAnswered, isServed } from './draw.js'

const network = { latency: 600 }
/** Sends what waits, whatever the answers. */
const deaf = (concurrency, more) => ({
  maxInFlight: concurrency,
  defaults: { delay: 0, jitter: false, backoff: false, concurrency, ...more },
})

const even = { rate: 5, backoff: false, jitter: false }
/** A client in the same setting as the one beside it. */
const run = (label, throttle, setting) => ({ label, options: { network, ...setting, throttle } })
/** Two clients, each with its label and its throttle. */
const beside = (setting, one, other) => [run(...one, setting), run(...other, setting)]
const WINDOW = { model: 'fixed-window', limit: 8, window: 6000 }
const bucket = (rate, depth, more) => ({ model: 'token-bucket', rate, depth, ...more })

export const SCENES = [
  {
    name: 'burst',
    server: ['5 a second'],
    doc: ['which-setting', 'Which setting do I need?'],
    title: 'Twenty requests at once',
    code: 'createThrottle({ rate: 5 })',
    runs: beside(
      { server: bucket(5, 5), load: { requests: 20 } },
      ['Promise.all', deaf(20)],
      ['rate: 5', even],
    ),
    tell: ([loose, kept]) => [
      'The server serves five requests a second, and five at once.',
      `Promise.all sends all twenty together: ${loose.served} are served, ${loose.refused} refused.`,
      `With a rate of five a second the throttle keeps them here and lets one go every 200 ms: ${kept.served} are served, ${kept.refused} refused.`,
    ],
  },
  {
    name: 'refusals',
    server: ['2 a second'],
    doc: ['policies', 'Policies'],
    title: '429: slower after a refusal',
    code: 'createThrottle({ delay: 125 })',
    runs: beside(
      { server: bucket(2, 4), load: { requests: 32 } },
      ['a delay of 125 ms alone', deaf(8, { delay: 125 })],
      [
        'with backoff, the default',
        { maxInFlight: 8, defaults: { delay: 125, jitter: false, concurrency: 8 } },
      ],
    ),
    tell: ([deafOne, listening]) => [
      'Eight requests a second leave, and the server serves two.',
      `If the client ignores the answers, ${deafOne.refused} of ${deafOne.sent} requests are refused.`,
      `autothrottle reads the 429s and lengthens the delay to that server: ${listening.refused} are refused, ${listening.served} served.`,
    ],
  },
  {
    name: 'retry-after',
    server: ['8 in 6 s'],
    doc: ['hints', 'What servers say'],
    title: 'Retry-After: the server names the time',
    code: 'createThrottle({ rate: 5 })',
    runs: [
      // To a client that does not read the header, the server says none.
      run('rate: 5 alone', even, { server: WINDOW, load: { requests: 30 } }),
      run(
        'with Retry-After, the default',
        { rate: 5, jitter: false },
        { server: { ...WINDOW, says: 'retry-after' }, load: { requests: 30 } },
      ),
    ],
    tell: ([deafOne, listening]) => [
      'The server serves eight requests in each six seconds. A refusal says how long to wait.',
      `A rate alone sends on: ${deafOne.refused} of ${deafOne.sent} requests are refused.`,
      `autothrottle holds the requests of that server until the time that it named, then sends more slowly for a while: ${listening.refused} are refused.`,
    ],
  },
  {
    name: 'hidden-limit',
    server: ['4 a second,', 'not said'],
    doc: ['rampup', 'How rampup finds a limit'],
    title: 'A limit that the server does not tell',
    code: 'createThrottle({ rampup: true })',
    speed: 4,
    runs: beside(
      { network: { latency: 300 }, server: { model: 'nginx', rate: 4, burst: 8 }, duration: 60_000 },
      ['a guess: one a second', { ...even, rate: 1 }],
      ['rampup: true', { rampup: true }],
    ),
    tell: ([guess, found]) => [
      'The server serves four requests a second and does not say so. This minute plays four times faster.',
      `A careful guess of one a second gets ${guess.served} pages.`,
      `Rampup goes faster until the server refuses, and stays below that: ${found.served} pages, ${found.refused} refused.`,
    ],
  },
  {
    name: 'bad-host',
    server: [],
    doc: ['policies', 'Policies'],
    title: 'One bad host among many',
    code: 'createThrottle({ delay: 0, maxInFlight: 4, defaults: { concurrency: 2 } })',
    hosts: ['slow.example', 'b.example', 'c.example'],
    runs: beside(
      {
        server: bucket(20, 20, { upstream: 5000 }),
        servers: {
          'b.example': bucket(20, 20, { upstream: 300 }),
          'c.example': bucket(20, 20, { upstream: 300 }),
        },
        load: { requests: 30 },
      },
      ['four at a time in all', deaf(4)],
      ['and two at each host', { ...deaf(2), maxInFlight: 4 }],
    ),
    tell: ([pool, scopes]) => [
      `${pool.sent} requests go to three hosts. One takes five seconds for each answer.`,
      `In a pool of four the slow host soon has all four places: the other hosts are done after ${pool.othersDone} s.`,
      `autothrottle gives each host places of its own, here two: the others are done after ${scopes.othersDone} s. The slow one takes longer then: ${scopes.seconds} s, not ${pool.seconds}.`,
    ],
  },
  {
    name: 'processes',
    server: ['5 a second'],
    doc: ['shared', 'One limit for many processes'],
    title: 'Many processes, one limit',
    code: "createThrottle({ rate: 5, shared: local({ name: 'crawl' }) })",
    runs: [
      run('four processes, five a second each', even, {
        clients: 4,
        server: bucket(5, 5),
        load: { requests: 8 },
      }),
      run('one engine for all four', even, { server: bucket(5, 5), load: { requests: 32 } }),
    ],
    tell: ([each, one]) => [
      'Four processes share a server that serves five requests a second.',
      `If each has a throttle of its own, they send twenty a second: ${each.refused} of ${each.sent} are refused.`,
      `With shared, one process decides for all: ${one.refused} of ${one.sent} are refused. Below is that one engine.`,
    ],
  },
]

/** How often the reason why the next request waits is looked at, in milliseconds. */
const EVERY = 100
const LONGEST = 60_000

/**
 * A run: `requests` as `[host, queued, sent, arrived, answered, status]` in milliseconds, and `reasons` as
 * `[from, reason]` of the first client's next request, with `until` for a wait that the server named.
 * `createSimulation` is the package's.
 */
export function play(options, hosts, createSimulation) {
  const { duration, ...endless } = options
  const simulation = createSimulation({ seed: 1, ...endless })
  const requests = []
  const reasons = []
  const hostOf = (scope) =>
    scope === undefined || scope === 'server' ? 0 : Math.max(0, hosts.indexOf(scope))
  const end = duration ?? LONGEST
  const isOver = () => {
    const { waiting, inFlight } = simulation.state()
    return (
      duration === undefined &&
      simulation.now > EVERY &&
      waiting + inFlight === 0 &&
      requests.every(isAnswered)
    )
  }
  while (simulation.now < end && !isOver()) {
    simulation.advance(EVERY)
    for (const event of simulation.events()) take(event, requests, hostOf)
    const { next, now } = simulation.state()
    const until = next?.reason === 'hold' ? [Math.round(next.at)] : []
    const reason = [now, next?.reason ?? null, ...until]
    if (JSON.stringify(reason.slice(1)) !== JSON.stringify(reasons.at(-1)?.slice(1))) reasons.push(reason)
  }
  const seconds = Math.ceil(simulation.now / 1000)
  return { requests, reasons, seconds, ...figures(requests) }
}

function take({ kind, at, request, ...event }, requests, hostOf) {
  const now = Math.round(at)
  if (kind === 'send')
    requests[request] = [hostOf(event.scope), Math.round(event.queuedAt), now, null, null, 0]
  else if (kind === 'arrive') requests[request][3] = now
  else if (kind === 'answer') {
    requests[request][4] = now
    requests[request][5] = event.status
  }
}

function figures(requests) {
  const ended = requests.filter(isAnswered)
  const served = ended.filter(isServed).length
  const others = ended.filter(([host]) => host > 0).map(([, , , , answered]) => answered)
  const othersDone = others.length > 0 ? Math.round(Math.max(...others) / 1000) : undefined
  return { sent: requests.length, served, refused: ended.length - served, othersDone }
}

/** The scenes with their runs and sentences, as JSON can hold them. */
export function essay(scenes, createSimulation) {
  return scenes.map(({ hosts = ['server'], runs, tell, speed = 1, ...scene }) => {
    const played = runs.map(({ label, options }) => ({ label, ...play(options, hosts, createSimulation) }))
    return { ...scene, speed, hosts, sentences: tell(played), runs: played, link: linkOf(runs) }
  })
}

/** Both runs beside each other in the playground, where one server with one client is all there is to them. */
function linkOf([first, second]) {
  if (first.options.clients) return undefined
  const { throttle: _, duration: __, ...options } = second.options
  const policies = [first, second].map(({ label, options: { throttle } }) => ({
    kind: 'custom',
    name: label,
    throttle,
  }))
  return toHash({ options, policies, changes: [], span: 60_000, speed: 2, now: 0, seed: 1, clients: 1 })
}
