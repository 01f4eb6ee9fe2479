/**
 * Plays the scenes: each request with its times, and why the next one waits, as plain data that a page can draw.
 * It runs as the site is built; the page needs no engine, and a test plays it again.
 */

import { toHash } from '../playground/program.js'
import { isAnswered, isServed } from './table.js'

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
