/**
 * Rampup on simulated servers that were drawn from a seed: `npm run bench:drawn -- --drawn 60 --seed 7`.
 *
 * A seed that nobody looked at is a held-out set; `--seed 1,2,3` takes so many of each. It runs in virtual
 * time, so a busy machine changes nothing. It prints each server, the worst of the best constant rate first,
 * and the figures of all of them, class by class: those that say 503 or nothing, that fail by themselves …
 * Sixty servers take some forty seconds of one core; most of that is the search for the best constant rate,
 * which `DRAWN_CACHE=FOLDER` remembers from run to run.
 */
import { main, run } from '../scripts/lib.mjs'

function option(name, fallback) {
  const at = process.argv.indexOf(name)
  const given = at > 0 ? process.argv[at + 1] : fallback
  if (!/^[1-9]\d{0,8}(,[1-9]\d{0,8})*$/.test(given ?? ''))
    throw new TypeError(`${name}: want whole numbers from 1; got ${given}`)
  return given
}

await main(async () => {
  const wanted = `${option('--drawn', '60')} ${option('--seed', '1').replaceAll(',', ' ')}`
  const test = ['test', '--release', '--test', 'native', 'servers_that_were_drawn', '--', '--nocapture']
  await run('cargo', test, { env: { ...process.env, DRAWN: wanted } })
})
