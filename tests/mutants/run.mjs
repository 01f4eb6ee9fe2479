/**
 * Does a test notice when the TypeScript core is wrong? `npm run mutants:js`: Stryker's instrumenter says
 * what to change and puts all changes behind a number; each test file is bundled with the changed sources
 * once, and a mutant is tried by the files that reach it, the quickest first, until one fails. (Stryker's own
 * runner compiles at every start, and cannot draw a sample.)
 *
 * | option | what it does |
 * |---|---|
 * | none | every mutant of MUTATED |
 * | `--sample N [--seed S]` | N of them, drawn at random; the share comes with its 95 % interval |
 * | `--changed [REF]` | files that differ from REF; default: what is not committed, else the last commit |
 * | `--file js/fetch/retry.ts` | this file |
 * | `--missed` | those that the last run missed |
 * | `--go-on` | what the last run noticed counts, and is not tried again |
 * | `--short` | for CI: 75 s of those in files that the last commit changed, else of all |
 *
 * It fails for each survivor that tests/mutants/survivors.md does not explain, and below 85 %. What was found
 * so far is in `target/mutants-js/results.jsonl`. The trap is a mutant that nothing but a running event loop
 * notices: a promise that stays open is a failure of `node:test`.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { main, root, takeChanged } from '../../scripts/lib.mjs'
import { changedSinceLast, clock, noticedBy, play, Results, sampleOf, takeChoice } from './score.mjs'

const here = `${root}/tests/mutants`
const folder = `${root}/target/mutants-js`
const tree = `${folder}/tree`
const LEAST = 0.85

const of = (place, names) => names.split(' ').map((name) => `js/${place}/${name}.ts`)
const MUTATED = [
  ...of('core', 'aborts deadlines desk driver permit requests run waiting wake'),
  ...of('fetch', 'body fetch redirects retry robots'),
  ...of('answers', 'answer failures'),
  ...of('base', 'joined'),
  ...of('throttle', 'throttle'),
]
const TESTS = (
  'failures hops waking desk wired deadlines retry hooks clocks robots events joined snapshot hints managers ' +
  'security redirects throttle shared-host map slots boundary undici clients'
).split(' ')

/** Few random orders and items, for they run for each mutant. */
const FEW = { ORDERS: '10', RUNS: '15', ITEMS: '2000' }

/** Words that only people read. */
const EXCLUDED = ['StringLiteral']

/** Stryker's instrumenter: sources with every mutant behind its number, and what each one changes. */
async function instrumented(files) {
  const { resolve } = createRequire(`${here}/package.json`)
  const { resolve: within } = createRequire(resolve('@stryker-mutator/core'))
  const { Instrumenter } = await import(pathToFileURL(within('@stryker-mutator/instrumenter')))
  const quiet = { debug() {}, info() {}, warn() {}, isDebugEnabled: () => false }
  const sources = files.map((name) => ({
    name,
    mutate: true,
    content: readFileSync(`${root}/${name}`, 'utf8'),
  }))
  const options = { plugins: null, ignorers: [], excludedMutations: [], noHeader: false }
  return new Instrumenter(quiet).instrument(sources, options)
}

/** What the tests need, beside the changed sources. */
function copy() {
  rmSync(tree, { recursive: true, force: true })
  mkdirSync(tree, { recursive: true })
  for (const name of [
    'js',
    'tests/js',
    'tests/vectors',
    'tests/traces',
    'docs',
    'pkg',
    'package.json',
    'tsconfig.json',
  ])
    cpSync(`${root}/${name}`, `${tree}/${name}`, { recursive: true })
  symlinkSync(`${root}/node_modules`, `${tree}/node_modules`)
}

/** A bundle of each test file, beside it: its paths stay what they are. */
const bundle = () =>
  build({
    absWorkingDir: tree,
    entryPoints: TESTS.map((name) => `tests/js/${name}.test.ts`),
    outdir: 'tests/js',
    outExtension: { '.js': '.mjs' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    logLevel: 'warning',
  })

/** Writes down which mutants a test file reached. */
const REACHED = `process.on('exit', () => {
  const { mutantCoverage } = globalThis.__stryker__ ?? {}
  require('node:fs').writeFileSync(process.env.REACHED, JSON.stringify(Object.keys(mutantCoverage?.static ?? {})))
})`

/** Runs every test file as the sources are; gives each with what it took and the mutants that it reached. */
async function baseline(isShort) {
  const [hook, scratch] = [`${folder}/reached.cjs`, `${folder}/reached.json`]
  writeFileSync(hook, REACHED)
  const tests = []
  for (const name of TESTS) {
    const file = `tests/js/${name}.test.mjs`
    const command = (...more) => ['node', ...more, '--test-reporter', 'tap', file]
    const { passed, seconds } = await play(command('-r', hook), {
      cwd: tree,
      env: { ...FEW, REACHED: scratch },
      limits: {},
    })
    if (!passed && !isShort) throw new Error(`${file} fails without a mutant`)
    // The tests themselves are a step of their own.
    if (!passed) console.log(`${file} fails without a mutant, and is left out`)
    if (!passed) continue
    tests.push({
      name,
      command: command(),
      seconds,
      reaches: new Set(JSON.parse(readFileSync(scratch, 'utf8'))),
    })
  }
  return tests.sort((a, b) => a.seconds - b.seconds)
}

/** `path:line:column: replace this with that`, in the words of `cargo mutants`. */
function nameOf({ fileName, location: { start, end }, replacement }) {
  const lines = readFileSync(`${root}/${fileName}`, 'utf8')
    .split('\n')
    .slice(start.line, end.line + 1)
  lines.push(lines.pop().slice(0, end.column))
  lines[0] = lines[0].slice(start.column)
  const brief = (text) => text.replace(/\s+/g, ' ').slice(0, 80)
  const change = `replace ${brief(lines.join('\n'))} with ${brief(replacement)}`
  return `${fileName}:${start.line + 1}:${start.column + 1}: ${change}`
}

await main(async () => {
  if (!existsSync(`${here}/node_modules`)) {
    const install = ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', here]
    spawnSync('npm', install, { stdio: 'inherit' })
  }
  const args = process.argv.slice(2)
  const { sample, seed, onlyMissed, goesOn, isShort } = takeChoice(args)
  const diff = isShort
    ? changedSinceLast(['--name-only'], MUTATED)
    : takeChanged(args, ['--name-only'], ['js'])
  const changed = diff?.split('\n')
  if (isShort && changed === undefined) console.log('mutants of all files are drawn')
  const only = args[0] === '--file' ? args.splice(0, 2)[1] : undefined
  if (args.length > 0) throw new Error(`unknown: ${args.join(' ')}`)
  const files = MUTATED.filter((name) => (changed?.includes(name) ?? true) && name === (only ?? name))
  if (files.length === 0) return console.log('no file of the core differs')
  const tell = clock()
  copy()
  const { files: sources, mutants } = await instrumented(files)
  const counted = mutants.filter(({ mutatorName }) => !EXCLUDED.includes(mutatorName))
  for (const { name, content } of sources) writeFileSync(`${tree}/${name}`, content)
  await bundle()
  const tests = await baseline(isShort)
  const taken = tests.reduce((sum, { seconds }) => sum + seconds, 0)
  tell(`${counted.length} mutants; ${tests.length} test files take ${taken.toFixed(1)} s`)
  const results = new Results(`${folder}/results.jsonl`)
  const named = counted.map((mutant) => ({ id: mutant.id, name: nameOf(mutant) }))
  const asked = onlyMissed ? results.missedOf(named) : named
  const drawn = sampleOf(asked, isShort ? asked.length : sample, seed)
  const attempt = ({ id }) =>
    noticedBy(
      tests.filter(({ reaches }) => reaches.has(id)),
      { cwd: tree, env: { ...FEW, __STRYKER_ACTIVE_MUTANT__: id } },
    )
  await results.tryEach(drawn, attempt, { tell, goesOn, isShort })
  const { share, most, missed } = results.report(results.found.length < asked.length)
  results.explain(missed, isShort)
  if ((isShort ? most : share) < LEAST) throw new Error(`less than ${100 * LEAST} %`)
})
