/**
 * Random input by the hundred million, natively and for speed compiled as it is shipped, but with debug
 * assertions: `npm run fuzz` (half an hour on an idle machine), `npm run fuzz -- --share 0.01` for less. The
 * calls come in ten parts with the seeds 1 to 10; `-- --seed 11` begins with another one. What came out is
 * kept in `benches/RESULTS.md`.
 *
 * | what | how often | compared with |
 * |---|---|---|
 * | calls at the boundary, any bytes | 10⁸ | the same with bogus calls between all others; what each promises |
 * | events of the engine | 10⁷ | the reference model, decision by decision |
 * | header fields and robots.txt | 10⁷ | the same text as pairs; bounds |
 */
import { parseArgs } from 'node:util'
import { main, run, step } from './lib.mjs'

const { values } = parseArgs({
  options: { share: { type: 'string', default: '1' }, seed: { type: 'string', default: '1' } },
})
const share = Number(values.share)
if (!(share > 0 && share <= 1)) throw new Error(`--share: want a number up to 1; got ${values.share}`)
const first = Number(values.seed)
if (!(Number.isSafeInteger(first) && first > 0)) throw new Error(`--seed: want a number; got ${values.seed}`)
const of = (count) => String(Math.ceil(count * share))

const PLAYS = [
  ...Array.from({ length: 10 }, (_, part) => [
    'random_calls_break_no_promise',
    { BOUNDARY_CALLS: of(1e7), BOUNDARY_SEED: String(first + part) },
  ]),
  ['answered_as_by_the_reference', { SEEDS: of(5000) }],
  ['what_servers_sent_cut', { HOSTILE_TEXTS: of(1e7) }],
]

await main(async () => {
  const test = ['test', '--quiet', '--locked', '--release', '--test', 'native']
  // Release builds leave out debug assertions and overflow checks; here they are what is looked for.
  const checks = {
    CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS: 'true',
    CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS: 'true',
    CARGO_PROFILE_RELEASE_LTO: 'off',
    CARGO_TARGET_DIR: process.env.CARGO_TARGET_DIR ?? 'target/fuzz',
  }
  for (const [name, count] of PLAYS) {
    const env = { ...process.env, ...checks, ...count }
    await step(`${name} ${Object.values(count).join(', seed ')}`, () =>
      run('cargo', [...test, name], { env }),
    )
  }
})
