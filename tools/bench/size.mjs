/**
 * The bytes that each entry adds to a bundle, minified and gzipped: `npm run bench:size`. Peers do not count.
 */

import { BUDGETS, OVER_MAIN, sizeOf, sizeOverMain } from '../../tests/package/sizes.mjs'
import { root } from '../scripts/lib.mjs'

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
