/**
 * Draws `docs/rampup.svg`: one simulated run of rampup, the limit doubling on the way. `node
 * scripts/picture.mjs` writes it.
 */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { simulate } from '../dist/simulate.js'
import { root } from './lib.mjs'

const MINUTES = 10
const [WIDTH, HEIGHT, LEFT, BOTTOM] = [840, 300, 44, 30]

/** The picture as text. */
export function picture() {
  const { trace } = simulate({
    server: { model: 'token-bucket', rate: 10, depth: 5, step: { at: 300_000, factor: 2 } },
    network: { latency: 100, jitter: 2 },
    throttle: { defaults: { rampup: true } },
    duration: MINUTES * 60_000,
    seed: 11,
  })
  const span = 2500
  const rates = new Array((MINUTES * 60_000) / span).fill(0)
  for (const at of trace.sent) rates[Math.floor(at / span)] += 1000 / span
  const x = (ms) => LEFT + (ms / (MINUTES * 60_000)) * (WIDTH - LEFT - 10)
  const y = (rate) => HEIGHT - BOTTOM - (rate / 25) * (HEIGHT - BOTTOM - 24)
  const line = rates.map((rate, index) => `${x((index + 0.5) * span).toFixed(1)},${y(rate).toFixed(1)}`)
  const limit = `${x(0)},${y(10)} ${x(300_000)},${y(10)} ${x(300_000)},${y(20)} ${x(MINUTES * 60_000)},${y(20)}`
  const refused = [...trace.sent.keys()].filter((index) => trace.status[index] === 429)
  const marks = refused.map((index) => {
    const at = trace.sent[index]
    return `<circle cx="${x(at).toFixed(1)}" cy="${y(at < 300_000 ? 10 : 20).toFixed(1)}" r="4" fill="#c22"/>`
  })
  const ticks = [...Array(MINUTES + 1).keys()].map(
    (minute) =>
      `<text x="${x(minute * 60_000).toFixed(1)}" y="${HEIGHT - 10}" text-anchor="middle">${minute}</text>`,
  )
  const levels = [0, 10, 20].map(
    (rate) => `<text x="${LEFT - 8}" y="${(y(rate) + 4).toFixed(1)}" text-anchor="end">${rate}</text>`,
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12" fill="#555">
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
<text x="${LEFT}" y="16">requests per second over minutes: sent (blue), limit (grey), refused (red, ${refused.length} of ${trace.sent.length})</text>
<polyline points="${limit}" fill="none" stroke="#bbb" stroke-width="3"/>
<polyline points="${line.join(' ')}" fill="none" stroke="#26c" stroke-width="1.5"/>
${marks.join('\n')}
${ticks.join('')}
${levels.join('')}
</svg>
`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(`${root}/docs/rampup.svg`, picture())
