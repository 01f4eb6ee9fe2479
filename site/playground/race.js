/**
 * The race: five ways to fetch 500 pages from one server, in virtual time. The server is nginx: ten requests a
 * second, bursts of ten, and ten seconds of bans, longer with each request. None sends again what was refused.
 */
import { simulate } from 'autothrottle/simulate'

export const PAGES = 500

const SERVER = { model: 'nginx', rate: 10, burst: 10, ban: 10_000 }
/** No pace, and no ear for answers: as many at a time as fit. */
const unthrottled = (concurrency) => ({
  concurrency,
  defaults: { delay: 0, jitter: false, backoff: false, concurrency },
})

export const RUNNERS = [
  { name: 'Promise.all', told: 'nothing', throttle: unthrottled(PAGES) },
  { name: 'p-queue, 10 at a time', told: 'nothing', throttle: unthrottled(10) },
  { name: 'autothrottle', told: 'nothing', throttle: { defaults: { rampup: true } } },
  { name: 'a fixed delay', told: 'half the limit', throttle: { rate: 5, defaults: { backoff: false } } },
  { name: 'a fixed delay', told: 'the limit', throttle: { rate: 10, defaults: { backoff: false } } },
]

/** What each runner got: its pages in the order in which they left, and its figures. */
export function race() {
  return RUNNERS.map(({ name, told, throttle }) => {
    const { trace } = simulate({
      seed: 1,
      server: SERVER,
      network: { latency: 80, jitter: 10 },
      throttle,
      load: { requests: PAGES },
      duration: 600_000,
    })
    const pages = Array.from(trace.sent, (sent, index) => ({
      sent,
      answered: trace.answered[index],
      isServed: trace.status[index] === 200,
    }))
    const served = pages.filter(({ isServed }) => isServed).length
    const seconds = Math.max(...pages.map(({ answered }) => answered)) / 1000
    return { name, told, pages, served, refused: pages.length - served, seconds }
  })
}

/** Who won, in sentences with figures. */
export function verdict(runs) {
  const lost = runs.filter(({ served }) => served < PAGES / 2)
  const [best] = runs.filter(({ told }) => told === 'nothing').sort((a, b) => b.served - a.served)
  const losers = lost.map(({ name, served }) => `${name} got ${served}`).join(', ')
  const told = runs
    .filter((run) => run.told !== 'nothing')
    .map((run) => `told ${run.told}, it takes ${Math.round(run.seconds)} s`)
  return [
    `Of ${PAGES} pages, ${losers}: the server banned both.`,
    `${best.name} got ${best.served} in ${Math.round(best.seconds)} s, told nothing; ${best.refused} were refused on the way to the limit.`,
    `A fixed delay needs the number: ${told.join('; ')}.`,
  ]
}
