/**
 * Rampup on simulated servers that were drawn from a seed: `npm run bench:drawn -- --drawn 60 --seed 7`.
 *
 * A seed that nobody looked at is a held-out set. It runs in virtual time, so a busy machine changes nothing.
 * It prints each server, the worst of the best constant rate first, and the figures of all of them. Sixty
 * servers take some two minutes of one core; most of that is the search for the best constant rate.
 */
import { main, run } from '../scripts/lib.mjs'

function option(name, fallback) {
  const at = process.argv.indexOf(name)
  const given = at > 0 ? process.argv[at + 1] : fallback
  if (!/^[1-9]\d{0,8}$/.test(given ?? ''))
    throw new TypeError(`${name}: want a whole number from 1; got ${given}`)
  return given
}

await main(async () => {
  const wanted = `${option('--drawn', '60')} ${option('--seed', '1')}`
  const test = ['test', '--release', '--test', 'native', 'servers_that_were_drawn', '--', '--nocapture']
  await run('cargo', test, { env: { ...process.env, DRAWN: wanted } })
})
