/**
 * Does a test notice when the engine is wrong? `npm run mutants` changes one thing at a time and runs the
 * tests of `.cargo/mutants.toml`. It needs `cargo install cargo-mutants --locked`.
 *
 * | option | what it does |
 * |---|---|
 * | none | all mutants: hours |
 * | `--changed [REF]` | those in lines that differ from REF; default: what is not committed, else the last commit |
 * | `--file GLOB`, `--shard 0/8`, `--jobs N` … | as `cargo mutants` takes them |
 *
 * It fails for each survivor that tests/mutants/survivors.md does not explain. The trap is a list that outlives
 * what it explains: it names functions and their text, and `tests/package/survivors.test.mjs` looks for them.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { main, root, takeChanged } from './lib.mjs'

/** What is written down: `path: what was replaced`, each with a line of the source and the reason. */
export function survivors() {
  const text = readFileSync(`${root}/tests/mutants/survivors.md`, 'utf8')
  const rows = text.split('\n').filter((line) => /^\| `[\w/.-]+`/.test(line))
  return rows.map((row) => {
    const [, file, mutant, source, reason] = row.split(/(?<!\\)\|/).map((cell) => cell.trim())
    const code = (cell) => cell.replace(/^`+ ?| ?`+$/g, '').replaceAll('\\|', '|')
    return { file: code(file), mutant: code(mutant), source: code(source), reason }
  })
}

/** A mutant as the list has it: lines and columns move, so they are left out. */
function keyOf({ name }) {
  const [, file, mutant] = /^(.*?):\d+:\d+: (.*)$/.exec(name)
  return `${file}: ${mutant}`
}

function run(args) {
  const diff = takeChanged(args, [], ['src', 'reading'])
  const folder = `${root}/target/mutants`
  mkdirSync(folder, { recursive: true })
  if (diff === '') return console.log('no line of the engine differs')
  if (diff !== undefined) {
    writeFileSync(`${folder}/changed.diff`, diff)
    args.push('--in-diff', `${folder}/changed.diff`)
  }
  // The reference model's seeds and the calls at the boundary: few, for they run for each mutant.
  const env = { ...process.env, SEEDS: '25', BOUNDARY_CALLS: '20000', HOSTILE_TEXTS: '2000' }
  const fixed = ['--workspace', '--output', folder, '--sharding', 'round-robin', '--colors', 'never']
  const command = ['mutants', ...fixed, ...args]
  const { status, error } = spawnSync('cargo', command, { cwd: root, env, stdio: 'inherit' })
  // 2: some survived; 3: some ran out of time, which is noticed as well.
  if (error || ![0, 2, 3].includes(status))
    throw new Error(`cargo mutants: exit code ${status} (cargo install cargo-mutants --locked)`)
  report(JSON.parse(readFileSync(`${folder}/mutants.out/outcomes.json`, 'utf8')))
}

function report({ outcomes }) {
  const of = (...summaries) =>
    outcomes.filter(({ scenario, summary }) => scenario.Mutant && summaries.includes(summary))
  const [noticed, missed] = [of('CaughtMutant', 'Timeout').length, of('MissedMutant')]
  const known = new Set(survivors().map(({ file, mutant }) => `${file}: ${mutant}`))
  const keys = missed.map(({ scenario }) => [keyOf(scenario.Mutant), scenario.Mutant.name])
  const unknown = keys.filter(([key]) => !known.has(key))
  const viable = noticed + missed.length
  const share = viable === 0 ? 100 : (100 * noticed) / viable
  const explained = missed.length - unknown.length
  console.log(
    `${noticed} of ${viable} viable mutants noticed (${share.toFixed(1)} %), ${explained} explained`,
  )
  for (const [, name] of unknown) console.log(`  ${name}`)
  if (unknown.length > 0) throw new Error(`${unknown.length} survived that nobody explains`)
}

if (import.meta.url === `file://${process.argv[1]}`) await main(async () => run(process.argv.slice(2)))
