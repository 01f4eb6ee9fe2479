/**
 * Does a test notice when the engine is wrong? `npm run mutants` changes one thing at a time and runs the
 * tests that reach it. `cargo mutants` says what to change (`cargo install cargo-mutants --locked`;
 * `.cargo/mutants.toml` says where); one build holds all changes, see `tests/mutants/rust/`.
 *
 * | option | what it does |
 * |---|---|
 * | none | all mutants |
 * | `--sample N [--seed S]` | N of those that compile, drawn at random; the share comes with its 95 % interval |
 * | `--changed [REF]` | those in lines that differ from REF; default: what is not committed, else the last commit |
 * | `--missed` | those that the last run missed |
 * | `--go-on` | what the last run noticed counts, and is not tried again |
 * | `--short` | for CI: 75 s of those in lines that the last commit changed; to build all takes minutes |
 * | `--file GLOB`, `--shard 0/8`, `--re TEXT` … | as `cargo mutants` takes them |
 *
 * It fails for each survivor that tests/mutants/survivors.md does not explain, and below 90 %. What was found
 * so far is in `target/mutants/results.jsonl`. The trap is a list that outlives what it explains: it names
 * functions and their text, and `tests/package/survivors.test.mjs` looks for them.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { build, buildAlone, list } from '../tests/mutants/rust/build.mjs'
import { baseline, FEW, KILOBYTES, testsFor } from '../tests/mutants/rust/trial.mjs'
import { changedSinceLast, clock, noticedBy, Results, sampleOf, takeChoice } from '../tests/mutants/score.mjs'
import { main, root, takeChanged } from './lib.mjs'

const folder = `${root}/target/mutants`
const LEAST = 0.9

/** All mutants that the arguments ask for. */
function asked(args, isShort) {
  const paths = ['src', 'reading']
  const diff = isShort ? (changedSinceLast([], paths) ?? '') : takeChanged(args, [], paths)
  if (diff === '') return []
  if (diff !== undefined) {
    writeFileSync(`${folder}/changed.diff`, diff)
    args.push('--in-diff', `${folder}/changed.diff`)
  }
  return list(args)
}

async function run(args) {
  mkdirSync(folder, { recursive: true })
  const { sample, seed, onlyMissed, goesOn, isShort } = takeChoice(args)
  const results = new Results(`${folder}/results.jsonl`)
  const all = asked(args, isShort)
  const mutants = onlyMissed ? results.missedOf(all) : all
  if (mutants.length === 0) return console.log('no such mutant: nothing was tried')
  const tell = clock()
  // All of them are built, whatever is tried: the build is the same for every sample.
  const { binaries, placed, unviable, alone } = build(folder, all, tell)
  tell(`built ${all.length}: ${unviable.size} do not compile, ${alone.size} have to be built alone`)
  const tree = `${folder}/tree`
  const tests = await baseline(tree, binaries, `${folder}/reached`)
  tell(`${tests.length} tests take ${tests.reduce((sum, { seconds }) => sum + seconds, 0).toFixed(1)} s`)
  const viable = mutants.filter(({ number }) => !unviable.has(number))
  const drawn = sampleOf(viable, isShort ? viable.length : sample, seed)
  // What is built alone takes as long as a hundred others.
  const order = [false, true].flatMap((is) => drawn.filter(({ number }) => alone.has(number) === is))
  await results.tryEach(
    order,
    (mutant) =>
      alone.has(mutant.number)
        ? triedAlone(mutant, tests)
        : noticedBy(testsFor(tests, placed.get(mutant.number)), {
            cwd: tree,
            env: { ...FEW, MUTANT: `${mutant.number}` },
            kilobytes: KILOBYTES,
          }),
    { tell, goesOn, isShort },
  )
  report(results, results.found.length < viable.length, isShort)
}

/** Builds one mutant alone and tries it by all tests; `undefined` if it does not compile. */
async function triedAlone(mutant, tests) {
  const binaries = buildAlone(folder, mutant)
  if (binaries === undefined) return undefined
  const crate = (path) => /(\w+)-\w+$/.exec(path)[1]
  const here = tests.map((test) => {
    const binary = binaries.find((path) => crate(path) === crate(test.binary))
    return { ...test, binary }
  })
  return noticedBy(testsFor(here), { cwd: `${folder}/tree-alone`, env: FEW, kilobytes: KILOBYTES })
}

function report(results, isSample, isShort) {
  const { share, most, missed } = results.report(isSample)
  results.explain(missed, isShort)
  if ((isShort ? most : share) < LEAST) throw new Error(`less than ${100 * LEAST} %`)
}

if (import.meta.url === `file://${process.argv[1]}`) await main(() => run(process.argv.slice(2)))
