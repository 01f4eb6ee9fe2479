/**
 * Helpers of the scripts: running programs, timing steps, and doing two things at once without mixing what
 * they say.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync, utimesSync } from 'node:fs'
import { homedir } from 'node:os'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/[\\/]$/, '')

/** On Windows npm and npx are batch files, which only a shell starts; our arguments have no blanks. */
export const start = (command) => ({
  cwd: root,
  shell: process.platform === 'win32' && /^np[mx]$/.test(command),
})

/** Where a lane keeps what its step has said; outside of lanes there is none. */
const lane = new AsyncLocalStorage()
const running = new Set()

/** Runs a program to its end, its output to ours; rejects when it fails. */
export function run(command, args, options = {}) {
  const said = lane.getStore()
  const stdio = said ? ['ignore', 'pipe', 'pipe'] : 'inherit'
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...start(command), stdio, ...options })
    running.add(child)
    for (const stream of said ? [child.stdout, child.stderr] : [])
      stream?.on('data', (part) => said.push(part))
    child.on('error', reject)
    child.on('close', (code, signal) => {
      running.delete(child)
      if (code === 0) resolve()
      else reject(new Error(`${command} ${args.join(' ')}: ${signal ?? `exit code ${code}`}`))
    })
  })
}

/**
 * The output of a program, or `undefined` if it cannot be run. Of its errors, `inherit` shows what it says.
 */
export function capture(command, args, errors = 'pipe') {
  const stdio = ['ignore', 'pipe', errors]
  const result = spawnSync(command, args, { ...start(command), stdio, encoding: 'utf8' })
  return result.status === 0 ? result.stdout : undefined
}

/**
 * How much is copied into callers: of what says `#[inline]` so much, of the rest only trifles. Code in the
 * path of most calls of the engine says `#[inline(always)]`. With 30 in place of 15 its module is 1.4 kB
 * larger by brotli and no faster. With 120 it is 4.8 kB larger, and a call takes 20 to 110 ns less.
 */
const INLINING = ['-Cllvm-args=-inline-threshold=5', '-Cllvm-args=-inlinehint-threshold=15']

/**
 * Builds for WebAssembly. A panic's place is in the module: where the sources of crates lie on this machine
 * is left out of it, so that it is the same from every machine.
 */
export function buildWasm(flags) {
  const sources = `${process.env.CARGO_HOME ?? `${homedir()}/.cargo`}/registry/src`
  const registries = existsSync(sources) ? readdirSync(sources) : []
  const remapped = registries.map((name) => `--remap-path-prefix=${sources}/${name}=crates`)
  const target = 'wasm32-unknown-unknown'
  const config = `target.${target}.rustflags=${JSON.stringify([...remapped, ...INLINING])}`
  // Where the module lies afterwards, whatever CARGO_TARGET_DIR says.
  const place = ['--target', target, '--target-dir', `${root}/target`]
  return run('cargo', ['build', '--config', config, '--profile', 'wasm', ...place, ...flags])
}

/** The features that Node 20 and the oldest browsers read. */
export const WASM_FEATURES = [
  '--enable-bulk-memory',
  '--enable-nontrapping-float-to-int',
  '--enable-sign-ext',
  '--enable-mutable-globals',
  '--enable-reference-types',
]

/**
 * Once it is deflated, `-Os` makes it no smaller. No pointer of Rust's wraps around, so that an offset may be
 * part of the instruction (`--low-memory-unused`). Functions stand by their names, so that copies of one
 * thing for several types are near: half a percent. Rust has copied into callers what pays (`INLINING`):
 * more of it takes .3 kB by brotli, and makes no call faster. `--gufa` finds what can be only one value, and
 * what it leaves is optimised once more: .2 kB.
 */
export const WASM_OPT = [
  ...['-O3', '--gufa', '-O3', '--flexible-inline-max-function-size=5', '--low-memory-unused'],
  ...['--reorder-functions-by-name', ...WASM_FEATURES],
  ...['--strip-debug', '--strip-producers', '--strip-target-features'],
]

/** Runs one step and says how long it took. In a lane, it says so after all that the step printed. */
export async function step(name, work) {
  const said = lane.getStore()
  const start = performance.now()
  const tell = () => {
    if (said) process.stdout.write(Buffer.concat(said.splice(0)))
    console.log(`  ${name}: ${((performance.now() - start) / 1000).toFixed(1)} s`)
  }
  if (said) console.log(`  ${name} …`)
  await work().finally(tell)
}

/** Starts a lane: what its steps print does not mix with that of others. */
export const inLane = (work) => lane.run([], work)

/** Waits for lanes; the first that fails ends the others. */
export async function together(...lanes) {
  try {
    await Promise.all(lanes)
  } finally {
    for (const child of running) child.kill()
  }
}

/** Makes a file again if an input is newer. The file gets that input's time: an edit meanwhile is newer. */
export async function renew(file, places, make) {
  const at = new Date(Math.ceil(newest(places)))
  if (existsSync(file) && statSync(file).mtime >= at) return
  await make()
  utimesSync(file, at, at)
}

/** The time of the newest file in these places. */
export function newest(places) {
  let time = 0
  const visit = (path) => {
    if (!existsSync(path)) return
    const stats = statSync(path)
    if (stats.isDirectory()) for (const name of readdirSync(path)) visit(`${path}/${name}`)
    else time = Math.max(time, stats.mtimeMs)
  }
  for (const place of places) visit(`${root}/${place}`)
  return time
}

/**
 * Runs a script of this repository's and ends with its exit code, without a stack for what it already said.
 */
export async function main(work) {
  try {
    await work()
  } catch (error) {
    console.error(`\n${error.message}`)
    process.exit(1)
  }
}
