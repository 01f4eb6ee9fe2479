/**
 * What a bundle grows by, minified and gzipped, beside others: `npm run bench:size`.
 *
 * They do not do the same: p-queue and bottleneck pace what they are told, ky retries, Octokit's plugin knows
 * one API. Peers are not counted.
 */
import { BUDGETS, sizeOf } from '../scripts/sizes.mjs'

const kb = (bytes) => `${(bytes / 1000).toFixed(1)} kB`.padStart(10)
console.log('entry                              minified    gzipped')
for (const entry of Object.keys(BUDGETS)) {
  const { bytes, gzipped } = await sizeOf(`export * from '${entry}'`)
  console.log(`${entry.padEnd(32)} ${kb(bytes)} ${kb(gzipped)}`)
}
for (const other of ['p-queue', 'bottleneck/light', 'bottleneck', 'ky', '@octokit/plugin-throttling']) {
  const { bytes, gzipped } = await sizeOf(`export * from '${other}'`)
  console.log(`${other.padEnd(32)} ${kb(bytes)} ${kb(gzipped)}`)
}
