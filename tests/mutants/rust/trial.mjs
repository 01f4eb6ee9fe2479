/**
 * Which tests can notice a mutant of the engine? Each runs once as the engine is, and says which functions it
 * reached and what it took. A mutant is then tried by the tests that reach its function, the quickest first,
 * as long as they are cheap: what only a dear test would notice counts as missed.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { play } from '../score.mjs'

/** Tests below so many seconds of processor time run together in one process. */
const QUICK = 0.05
/**
 * A mutant is tried for so many seconds, and by three groups of tests at least. All that are not skipped take
 * 14 s together: rampup's, request by request, is the dearest.
 */
const MOST = 16
export const KILOBYTES = 4_000_000

/** Slow (a million hosts), about the repository (widths, golden pages) or about the simulator. */
const SKIPPED =
  'simulate:: live:: tidy:: layers:: settings:: python:: scrapy_table:: a_million_hosts the_corpus scale::'.split(
    ' ',
  )

/** Few random events, for they run for each mutant. */
export const FEW = { SEEDS: '12', BOUNDARY_CALLS: '20000', HOSTILE_TEXTS: '2000', RUST_BACKTRACE: '0' }

/** Runs every test alone; gives each with what it took and the functions that it reached. */
export async function baseline(tree, binaries, scratch) {
  const tests = []
  for (const binary of binaries) {
    const skips = SKIPPED.map((name) => `--skip=${name}`)
    const args = ['--list', '--format', 'terse', ...skips]
    const { stdout } = spawnSync(binary, args, { cwd: tree, encoding: 'utf8' })
    for (const [, name] of stdout.matchAll(/^(.*): test$/gm)) tests.push({ binary, name })
  }
  for (const test of tests) {
    rmSync(scratch, { force: true })
    const env = { ...FEW, MUTANT_REACHED: scratch }
    const { passed, seconds } = await play(commandOf(test.binary, [test.name]), {
      cwd: tree,
      env,
      limits: {},
    })
    if (!passed) throw new Error(`${test.name} fails without a mutant`)
    const lines = existsSync(scratch) ? readFileSync(scratch, 'utf8').trim().split('\n') : []
    Object.assign(test, { seconds, reaches: new Set(lines.map(Number)) })
  }
  return tests.sort((a, b) => a.seconds - b.seconds)
}

const commandOf = (binary, names) => [binary, '--test-threads', '1', '--exact', ...names]

/** The tests that reach a function, or all; the quick ones of a binary run together. */
export function testsFor(all, id) {
  const groups = []
  for (const { binary, name, seconds, reaches } of all) {
    if (id !== undefined && !reaches.has(id)) continue
    const last = groups.findLast((group) => group.binary === binary)
    if (last && last.seconds + seconds < 4 * QUICK && seconds < QUICK) {
      last.names.push(name)
      last.seconds += seconds
    } else groups.push({ binary, names: [name], seconds })
  }
  let sum = 0
  return groups
    .sort((a, b) => a.seconds - b.seconds)
    .filter(({ seconds }, index) => {
      sum += seconds
      return index < 3 || sum < MOST
    })
    .map(({ binary, names, seconds }) => ({
      command: commandOf(binary, names),
      seconds,
      name: names.length === 1 ? names[0] : `one of ${names.length} quick`,
    }))
}
