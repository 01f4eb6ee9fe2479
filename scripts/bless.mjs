/**
 * Writes the golden files, settings and the API pages of `docs`, the tables of `benches/rampup.md`, the
 * pictures of the guides and the third-party notices anew. Review the difference as a change of behaviour.
 */
import { build } from './build.mjs'
import { main, run } from './lib.mjs'

await main(async () => {
  await run('cargo', ['test', '--test', 'native'], { env: { ...process.env, UPDATE_GOLDEN: '1' } })
  await build()
  await run('node', ['docs/images/pictures.mjs'])
  await run('node', ['docs/api.mjs'])
  await run('python3', ['python/scripts/api.py'])
  await run('node', ['scripts/notices.mjs'])
})
