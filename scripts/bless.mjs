/** Writes the golden files and `docs/settings.md` anew. Review the difference as a change of behaviour. */
import { main, run } from './lib.mjs'

await main(() => run('cargo', ['test', '--test', 'native'], { env: { ...process.env, UPDATE_GOLDEN: '1' } }))
