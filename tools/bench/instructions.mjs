/**
 * Instructions per decision, counted by callgrind: `npm run bench:instructions` (needs valgrind).
 *
 * Times differ from machine to machine and from run to run; instructions don't. Each workload runs twice, the
 * second time with twice the dispatches, and the difference is what they take: setting up cancels out.
 *
 * `--check` compares what most requests take with `tests/golden/instructions.json`, and fails where it is
 * three in a hundred more. `UPDATE_GOLDEN=1` writes that file. It fails, too, where an answer takes
 * noticeably more of a server that has named a thousand budgets than of one with a hundred.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'

function output(command, args) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 2 ** 26 })
  if (error || status !== 0) throw new Error(`${command} ${args.join(' ')}: ${error?.message ?? stderr}`)
  return stdout + stderr
}

const built = output('cargo', ['bench', '--bench', 'engine', '--no-run'])
const binary = built.match(/\(([^)]*release.deps.engine-[^)]+)\)/)?.[1]
if (!binary) throw new Error(`where is the benchmark? ${built}`)

function instructions(workload, waiting, dispatches) {
  const file = 'target/callgrind.out'
  const words = [workload, waiting, dispatches].map(String)
  const said = output('valgrind', ['--tool=callgrind', `--callgrind-out-file=${file}`, binary, ...words])
  rmSync(file, { force: true })
  return Number(said.match(/Collected\s*:\s*(\d+)/)?.[1] ?? Number.NaN)
}

const perDispatch = (workload, waiting, dispatches) =>
  (instructions(workload, waiting, 2 * dispatches) - instructions(workload, waiting, dispatches)) / dispatches

const FILE = 'tests/golden/instructions.json'
const MOST = 1.03
const CYCLES = ['simple', 'line', 'once', 'rate', 'delay', 'limits']
const now = Object.fromEntries(CYCLES.map((name) => [name, Math.round(perDispatch(name, 0, 5000))]))
for (const name of CYCLES) console.log(`${name.padEnd(8)} ${now[name]} instructions`)
/** Of a route that is known, and of a new one each time: the most that ten times the budgets may cost. */
const BUDGETS = { known: 1.1, unknown: 1.6 }
for (const [name, most] of Object.entries(BUDGETS)) {
  const [few, many] = [100, 1000].map((budgets) => perDispatch(name, budgets, 500))
  const ratio = many / few
  console.log(`${name.padEnd(8)} ${few} instructions beside 100 budgets, ${ratio.toFixed(2)} × beside 1,000`)
  if (ratio > most) throw new Error(`${name}: beside 1,000 budgets an answer takes ${ratio.toFixed(2)} ×`)
}
if (process.argv.includes('--check')) {
  const { rustc, ...known } = JSON.parse(readFileSync(FILE, 'utf8'))
  const compiler = output('rustc', ['--version']).trim()
  if (process.env.UPDATE_GOLDEN)
    writeFileSync(FILE, `${JSON.stringify({ rustc: compiler, ...now }, null, 2)}\n`)
  else
    for (const name of CYCLES)
      if (now[name] > known[name] * MOST)
        throw new Error(
          `${name}: ${now[name]} instructions, ${known[name]} before (${rustc}; now ${compiler}). ` +
            `If that is meant: UPDATE_GOLDEN=1 npm run bench:instructions -- --check`,
        )
  process.exit()
}
console.log()
console.log('  waiting   own hosts  ratio   shared scope  ratio')
let base
for (const waiting of [1_000, 10_000, 100_000, 1_000_000]) {
  const dispatches = waiting / 4
  const [own, shared] = ['own', 'shared'].map((workload) => perDispatch(workload, waiting, dispatches))
  base ??= [own, shared]
  const cells = [own, own / base[0], shared, shared / base[1]]
  const [a, b, c, d] = cells.map((cell, index) => cell.toFixed(index % 2 ? 2 : 0))
  console.log(
    `${String(waiting).padStart(9)} ${a.padStart(11)} ${b.padStart(6)} ${c.padStart(14)} ${d.padStart(6)}`,
  )
}
