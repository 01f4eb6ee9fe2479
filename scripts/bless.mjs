/**
 * Writes the golden files, `docs/settings.md`, the tables of `docs/rampup.md`, the pictures of the guides,
 * the bindings' types and the third-party notices anew. Review the difference as a change of behaviour.
 */
import { copyFileSync } from 'node:fs'
import { build } from './build.mjs'
import { bindingTypes, main, root, run } from './lib.mjs'

await main(async () => {
  await run('cargo', ['test', '--test', 'native'], { env: { ...process.env, UPDATE_GOLDEN: '1' } })
  await build()
  for (const name of bindingTypes()) copyFileSync(`${root}/pkg/${name}`, `${root}/types/pkg/${name}`)
  await run('node', ['scripts/pictures.mjs'])
  await run('node', ['scripts/notices.mjs'])
})
