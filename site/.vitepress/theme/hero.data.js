/** The picture on the first page: what rampup really does, simulated when the site is built. */
import { simulate } from '../../../dist/simulate.js'
import { headline, race } from '../../playground/race.js'

const DURATION = 240_000
const BINS = 96
/** The search for the limit is over after this share of the time. */
const FOUND = 10_000 / DURATION

export default {
  load() {
    const step = { at: DURATION / 2, factor: 0.5 }
    const { trace } = simulate({
      server: { model: 'nginx', rate: 10, burst: 2, refusal: '429', step },
      network: { latency: 80, jitter: 10 },
      throttle: { rampup: true },
      duration: DURATION,
      seed: 3,
    })
    const width = DURATION / BINS
    const sent = new Array(BINS).fill(0)
    const refused = []
    trace.sent.forEach((at, index) => {
      sent[Math.min(BINS - 1, Math.floor(at / width))] += 1000 / width
      if (trace.status[index] !== 200) refused.push(at / DURATION)
    })
    const around = (index) => sent.slice(Math.max(0, index - 1), index + 2)
    const smooth = sent.map((_, index) => {
      const near = around(index)
      return near.reduce((sum, rate) => sum + rate, 0) / near.length
    })
    const within = (from, to) => refused.filter((at) => at >= from && at < to).length
    return {
      rate: smooth.map((rate) => Number(rate.toFixed(2))),
      refused,
      limits: [10, 5],
      all: trace.sent.length,
      race: headline(race(simulate)),
      // To find the limit, beside it, and after it has halved.
      why: [within(0, FOUND), within(FOUND, 0.5), within(0.5, 1)],
    }
  },
}
