/**
 * What a bundle grows by, minified and gzipped, beside others: `npm run bench:size`.
 *
 * They do not do the same: p-queue and bottleneck pace what they are told, ky retries, Octokit's plugin
 * knows one API. Peers are not counted. The trap is `export *`, which leaves a default export out: p-queue
 * has nothing else.
 */
import { root } from '../scripts/lib.mjs'
import { BUDGETS, OVER_MAIN, sizeOf, sizeOverMain } from '../tests/package/sizes.mjs'

const kb = (bytes) => `${(bytes / 1000).toFixed(1)} kB`.padStart(10)
console.log('entry                              minified    gzipped')
for (const entry of Object.keys(BUDGETS)) {
  const { bytes, gzipped } = await sizeOf(`export * from '${entry}'`)
  console.log(`${entry.padEnd(32)} ${kb(bytes)} ${kb(gzipped)}`)
}
for (const entry of Object.keys(OVER_MAIN)) {
  const added = kb(await sizeOverMain(entry, `${root}/dist`))
  console.log(`${`/${entry}, over the main one`.padEnd(32)} ${''.padEnd(10)} ${added}`)
}
for (const [other, names] of [
  ['p-queue', 'default'],
  ['bottleneck/light', 'default'],
  ['bottleneck', 'default'],
  ['ky', 'default'],
  ['@octokit/plugin-throttling', 'throttling'],
]) {
  const { bytes, gzipped } = await sizeOf(`export { ${names} } from '${other}'`)
  console.log(`${other.padEnd(32)} ${kb(bytes)} ${kb(gzipped)}`)
}
