/**
 * What a bundle grows by, minified and gzipped, beside others; then what each part adds to the module:
 * `npm run bench:size`.
 *
 * They do not do the same: p-queue and bottleneck pace what they are told, ky retries, Octokit's plugin
 * knows one API. Peers are not counted. The trap is `export *`, which leaves a default export out: p-queue
 * has nothing else.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WASM_OPT } from '../scripts/build.mjs'
import { capture, root } from '../scripts/lib.mjs'
import { parts } from '../scripts/parts.mjs'
import { BUDGETS, OVER_MAIN, sizeOf, sizeOverMain } from '../scripts/sizes.mjs'

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

const compiled = `${root}/target/wasm32-unknown-unknown/release/autothrottle_javascript.wasm`
if (existsSync(compiled)) {
  const folder = mkdtempSync(join(tmpdir(), 'autothrottle-parts-'))
  const made = join(folder, 'named_bg.wasm')
  capture('cargo', ['xtask', 'bind', compiled, folder, 'named'])
  capture('npx', ['--no-install', 'wasm-opt', ...WASM_OPT, '-g', made, '-o', made])
  console.log('\nThe module by part, in bytes before gzip; what was inlined counts where it went.\n')
  for (const [part, bytes] of parts(readFileSync(made))) console.log(`${part.padEnd(32)} ${kb(bytes)}`)
  rmSync(folder, { recursive: true })
} else console.log('\nnpm run build first: then the module is shown by part.')
