/**
 * The race: five ways to fetch 500 pages from one server. The server is nginx: ten requests a second, bursts of
 * ten, and a ban of ten seconds, anew with each request. No runner sends again what was refused.
 *
 * The same runners race in virtual time (`race`), as real requests (`PROGRAM`, for real.js), in the README's film
 * and in the tests: one list, so that their figures cannot differ.
 */

export const PAGES = 500

export const SERVER = { model: 'nginx', rate: 10, burst: 10, ban: 10_000 }
const NETWORK = { latency: 80, jitter: 10 }
const LOAD = { requests: PAGES }

/** No pace, and no ear for answers: as many at a time as fit. */
const unthrottled = (concurrency) => ({
  maxInFlight: concurrency,
  defaults: { delay: 0, jitter: false, backoff: false, concurrency },
})

export const RUNNERS = [
  { name: 'Promise.all', code: 'Promise.all(urls.map(fetch))', throttle: unthrottled(PAGES) },
  { name: 'p-queue', code: 'new PQueue({ concurrency: 10 })', throttle: unthrottled(10) },
  {
    name: 'autothrottle',
    code: 'createThrottle({ rampup: true })',
    throttle: { defaults: { rampup: true } },
  },
  {
    name: 'a fixed rate',
    setTo: 'half the limit',
    code: '5 a second, whatever the answers',
    throttle: { rate: 5, defaults: { backoff: false } },
  },
  {
    name: 'a fixed rate',
    setTo: 'the limit',
    code: '10 a second, whatever the answers',
    throttle: { rate: 10, defaults: { backoff: false } },
  },
]

/** The race for the stage of real requests. */
export const PROGRAM = {
  options: { server: SERVER, network: NETWORK, load: LOAD },
  policies: RUNNERS,
  span: 120_000,
}

/** The requests of each runner. `simulate` is the package's: `autothrottle/simulate`. */
export function race(simulate) {
  return RUNNERS.map((runner) => {
    const { trace } = simulate({
      seed: 1,
      server: SERVER,
      network: NETWORK,
      throttle: runner.throttle,
      load: LOAD,
      duration: 600_000,
    })
    const pages = Array.from(trace.sent, (sent, index) => ({
      sent,
      answered: trace.answered[index],
      isServed: trace.status[index] === 200,
    }))
    return result(runner, pages)
  })
}

/** A runner's pages, in the order in which they left, with its figures. */
export function result({ name, setTo, code }, pages) {
  const served = pages.filter(({ isServed }) => isServed).length
  const seconds = Math.max(0, ...pages.map(({ answered }) => answered)) / 1000
  return { name, setTo, code, pages, served, refused: pages.length - served, seconds }
}

/**
 * The pages' places at `now`, in milliseconds: pages that wait here, are in the server's hands, served,
 * refused.
 */
export function standing(pages, now) {
  const counts = { waiting: PAGES - pages.length, flying: 0, served: 0, refused: 0 }
  for (const { sent, answered, isServed } of pages) {
    if (sent > now) counts.waiting++
    else if (!(answered <= now)) counts.flying++
    else if (isServed) counts.served++
    else counts.refused++
  }
  return counts
}

/** The runner's knowledge of the server. */
export const knows = ({ setTo }) => (setTo ? `set to ${setTo}` : 'does not know the limit')

/** The runner with the most pages of those that do not know the limit. */
export const winnerOf = (runs) =>
  runs.filter(({ setTo }) => !setTo).reduce((best, run) => (run.served > best.served ? run : best))

const whole = (seconds) => `${Math.max(1, Math.round(seconds))} s`

/** The sentence to quote. */
export function headline(runs) {
  const best = winnerOf(runs)
  const others = runs.filter((run) => !run.setTo && run !== best)
  const lost = others.map(({ name, served }) => `${name}: ${served}`).join('. ')
  return `${best.name} got ${best.served} of ${PAGES} pages in ${whole(best.seconds)} without knowing the limit. ${lost}.`
}

/** The winner and the reason, in sentences with figures. */
export function verdict(runs) {
  const best = winnerOf(runs)
  const told = runs
    .filter(({ setTo }) => setTo)
    .map(({ setTo, seconds, refused }) => {
      const loss = refused > 0 ? ` and loses ${refused}` : ''
      return `set to ${setTo}, it takes ${whole(seconds)}${loss}`
    })
  return [
    headline(runs),
    `${best.name} met the limit with ${best.refused} refusals, then stayed below it. The server banned the other two.`,
    `A fixed rate needs the number: ${told.join('; ')}.`,
  ]
}
