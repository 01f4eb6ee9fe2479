/**
 * Does a test notice when the TypeScript core is wrong? `npm run mutants:js` lets Stryker change one thing at a
 * time and runs the test files that reach it.
 *
 * | option | what it does |
 * |---|---|
 * | none | every mutant of MUTATED: an hour |
 * | `--changed [REF]` | files that differ from REF; default: what is not committed, else the last commit |
 * | `--mutate js/fetch/retry.ts:10-40` … | as Stryker takes it |
 *
 * It fails below 85 %. The trap is a copy of the whole folder for each run: what tests do not need stays out.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { main, root, takeChanged } from '../../scripts/lib.mjs'

const here = `${root}/tests/mutants`
const of = (folder, names) => names.split(' ').map((name) => `js/${folder}/${name}.ts`)
const MUTATED = [
  ...of('core', 'aborts deadlines desk driver permit requests run throttle waiting wake'),
  ...of('fetch', 'body failures fetch joined outcome redirects retry robots'),
]
const TESTS = (
  'throttle slots retry redirects robots hooks clocks events map managers hints joined snapshot wired security ' +
  'boundary shared-host'
).split(' ')

const OPTIONS = {
  testRunner: 'tap',
  tap: {
    testFiles: TESTS.map((name) => `tests/js/${name}.test.ts`),
    nodeArgs: ['--import', 'tsx', '--test-reporter', 'tap', '-r', '{{hookFile}}', '{{testFile}}'],
    forceBail: true,
  },
  coverageAnalysis: 'perTest',
  // Words that only people read, and what the compiler has checked before.
  mutator: { excludedMutations: ['StringLiteral'] },
  ignorePatterns: [
    'target',
    'python',
    'site',
    'fuzz',
    'src',
    'reading',
    'bindings',
    'dist',
    'xtask',
    'examples',
  ].flatMap((name) => [`/${name}`, `/${name}/**`]),
  ignoreStatic: true,
  concurrency: 1,
  timeoutMS: 20_000,
  thresholds: { high: 95, low: 90, break: 85 },
  reporters: ['clear-text', 'json', 'progress-append-only'],
  clearTextReporter: { allowColor: false, logTests: false, reportTests: false },
  tempDirName: 'target/stryker/tmp',
  jsonReporter: { fileName: 'target/stryker/report.json' },
  allowConsoleColors: false,
  checkers: [],
  disableTypeChecks: false,
}

await main(async () => {
  if (!existsSync(`${here}/node_modules`)) {
    const install = ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', here]
    spawnSync('npm', install, { stdio: 'inherit' })
  }
  const args = process.argv.slice(2)
  const changed = takeChanged(args, ['--name-only'], ['js'])?.split('\n')
  const mutate = MUTATED.filter((name) => changed?.includes(name) ?? true)
  if (mutate.length === 0) return console.log('no file of the core differs')
  const { resolve } = createRequire(`${here}/package.json`)
  const plugins = [pathToFileURL(resolve('@stryker-mutator/tap-runner')).href]
  const folder = `${root}/target/stryker`
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${folder}/config.json`, JSON.stringify({ ...OPTIONS, mutate, plugins }))
  const stryker = `${here}/node_modules/.bin/stryker`
  const { status } = spawnSync(stryker, ['run', `${folder}/config.json`, ...args], {
    cwd: root,
    stdio: 'inherit',
  })
  if (existsSync(`${folder}/report.json`)) tell(JSON.parse(readFileSync(`${folder}/report.json`, 'utf8')))
  if (status !== 0) throw new Error(`stryker: exit code ${status}`)
})

function tell({ files }) {
  const counts = {}
  for (const { mutants } of Object.values(files))
    for (const { status } of mutants) counts[status] = (counts[status] ?? 0) + 1
  console.log(counts)
}
