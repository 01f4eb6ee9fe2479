/**
 * What both mutation scripts share: drawing a sample, trying a mutant, keeping what was found, and the share.
 *
 * The traps: a limit in seconds on a busy machine, where what is slow would count as noticed (the limits are
 * of processor time; one of the clock is far above, for what waits for ever); and a short run that fails by
 * chance, for ten mutants say little: it fails only where even the upper end of the interval is too low.
 */
import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { capture, root, takeChanged } from '../../scripts/lib.mjs'

/** What a test may take is this many times what it took, and this many seconds more. */
const [TIMES, MORE] = [8, 2]
/** Nothing waits for so many seconds, nor for so many times the processor's that it may take. */
const [FOR_EVER, WAITS] = [300, 10]
/** A short run begins no mutant after so many seconds. */
const SHORT = 75

/**
 * Runs a program; gives whether it passed, and its seconds of processor time. `limits`: `seconds` of
 * processor time, `kilobytes` of address space.
 */
export function play([command, ...args], { cwd, env, limits }) {
  const { seconds = FOR_EVER, kilobytes = 'unlimited' } = limits
  const script = `ulimit -t ${Math.ceil(seconds)}; ulimit -v ${kilobytes}; TIMEFORMAT='%U %S'; time "$@" &>/dev/null`
  const options = {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  }
  return new Promise((resolve, reject) => {
    const child = spawn('bash', ['-c', script, 'bash', command, ...args], options)
    const most = Math.min(FOR_EVER, WAITS * seconds)
    const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), 1000 * most)
    let said = ''
    child.stderr.on('data', (part) => {
      said += part
    })
    child.on('error', reject)
    child.on('close', (code) => {
      clearTimeout(timer)
      const [user, system] = said.trim().split('\n').at(-1).split(' ').map(Number)
      resolve({ passed: code === 0, seconds: user + system, code })
    })
  })
}

/** The first of these tests that fails, or nothing. Each has its `command`, what it takes, and its name. */
export async function noticedBy(tests, { cwd, env, kilobytes }) {
  for (const { command, seconds, name } of tests) {
    const limits = { seconds: TIMES * seconds + MORE, kilobytes }
    const { passed, code } = await play(command, { cwd, env, limits })
    if (!passed) return { by: name, code }
  }
  return {}
}

/** Takes an option and its value out of the arguments. */
function take(args, name) {
  const at = args.indexOf(name)
  return at < 0 ? undefined : args.splice(at, 2)[1]
}

function takeCount(args, name) {
  const text = take(args, name)
  const count = Number(text)
  if (text !== undefined && !(Number.isInteger(count) && count > 0))
    throw new Error(`${name}: want a whole number above 0; got ${text}`)
  return text === undefined ? undefined : count
}

/** Takes `--sample N`, `--seed S`, `--missed`, `--go-on` and `--short` out of the arguments. */
export function takeChoice(args) {
  const [sample, seed] = [takeCount(args, '--sample'), takeCount(args, '--seed') ?? 1]
  const has = (name) => {
    const at = args.indexOf(name)
    if (at >= 0) args.splice(at, 1)
    return at >= 0
  }
  const [onlyMissed, goesOn, isShort] = [has('--missed'), has('--go-on'), has('--short')]
  return { sample, seed: isShort ? seedOfCommit() : seed, onlyMissed, goesOn, isShort }
}

/** Each commit draws others. */
function seedOfCommit() {
  const commit = capture('git', ['rev-parse', 'HEAD'])
  return commit === undefined ? 1 : Number.parseInt(commit.slice(0, 7), 16)
}

/**
 * What a short run tries: what differs from the commit before. `undefined`, and said so, where nothing does
 * or there is no such commit (a shallow clone).
 */
export function changedSinceLast(options, paths) {
  try {
    const changed = takeChanged(['--changed'], options, paths)
    if (changed === '') console.log('nothing of what is tried differs from the commit before')
    return changed || undefined
  } catch (error) {
    console.log(`${error.message}: nobody knows what the last commit changed`)
    return undefined
  }
}

/** Shuffles by a seed (mulberry32), so that a sample can be drawn again. */
function shuffled(items, seed) {
  let state = seed | 0
  const unit = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const order = [...items]
  for (let last = order.length - 1; last > 0; last--) {
    const other = Math.floor(unit() * (last + 1))
    ;[order[last], order[other]] = [order[other], order[last]]
  }
  return order
}

/** All, or so many of them drawn at random. */
export function sampleOf(items, sample, seed) {
  return sample === undefined ? items : shuffled(items, seed).slice(0, sample)
}

/** Wilson's interval of a share, at 95 %. */
export function interval(count, of) {
  const [share, z] = [count / of, 1.96]
  const middle = share + z ** 2 / (2 * of)
  const spread = z * Math.sqrt((share * (1 - share)) / of + z ** 2 / (4 * of ** 2))
  return [middle - spread, middle + spread].map((bound) => bound / (1 + z ** 2 / of))
}

/** What is written down: `path`, what was replaced, a part of the source in which it is, and the reason. */
export function survivors() {
  const text = readFileSync(`${root}/tests/mutants/survivors.md`, 'utf8')
  const rows = text.split('\n').filter((line) => /^\| `[\w/.-]+`/.test(line))
  return rows.map((row) => {
    const [, file, mutant, source, reason] = row.split(/(?<!\\)\|/).map((cell) => cell.trim())
    const code = (cell) => cell.replace(/^`+ ?| ?`+$/g, '').replaceAll('\\|', '|')
    return { file: code(file), mutant: code(mutant), source: code(source), reason }
  })
}

/** Whether a row is about the mutant of this name. Lines and columns move, so they say only what is there. */
function isAbout({ file, mutant, source }, name) {
  const [, path, line, what] = /^(.*?):(\d+):\d+: (.*)$/.exec(name)
  if (path !== file || what !== mutant) return false
  if (file.endsWith('.rs')) return true // its function is in its name
  const lines = readFileSync(`${root}/${file}`, 'utf8').split('\n')
  return lines
    .slice(line - 1, Number(line) + 2)
    .join('\n')
    .includes(source)
}

/** What was found, a line a mutant in a file: a run can be stopped at any time. */
export class Results {
  constructor(path) {
    this.path = path
    this.found = []
  }

  /** What the run before found. */
  before() {
    if (!existsSync(this.path)) return []
    const lines = readFileSync(this.path, 'utf8').trim().split('\n').filter(Boolean)
    return lines.map((line) => JSON.parse(line))
  }

  /** Of these mutants, those that the run before missed. */
  missedOf(mutants) {
    const missed = new Set(this.before().flatMap(({ name, by }) => (by ? [] : [name])))
    return mutants.filter(({ name }) => missed.has(name))
  }

  /**
   * Tries mutants one after the other; `attempt` gives `undefined` for one that does not compile. With
   * `goesOn`, what the run before noticed is not tried again; a short run ends in time.
   */
  async tryEach(mutants, attempt, { tell, goesOn, isShort }) {
    const end = isShort ? performance.now() + 1000 * SHORT : Number.POSITIVE_INFINITY
    const before = goesOn ? this.before().filter(({ by }) => by) : []
    const known = new Map(before.map((result) => [result.name, result]))
    writeFileSync(this.path, '')
    for (const mutant of mutants) {
      if (performance.now() > end) break
      const result = known.get(mutant.name) ?? (await attempt(mutant))
      if (result === undefined) continue
      this.found.push({ ...result, name: mutant.name })
      appendFileSync(this.path, `${JSON.stringify(this.found.at(-1))}\n`)
      if (!result.by) tell(`missed: ${mutant.name}`)
      if (this.found.length % 50 === 0) tell(`${this.found.length} of ${mutants.length}`)
    }
  }

  /** Says which of those that were missed nobody explains; that is an error, unless the run is short. */
  explain(missed, isShort) {
    const rows = survivors()
    const unknown = missed.filter((name) => !rows.some((row) => isAbout(row, name)))
    console.log(`${missed.length} survived; ${missed.length - unknown.length} of them are explained`)
    for (const name of unknown) console.log(`  ${name}`)
    if (unknown.length > 0 && !isShort) throw new Error(`${unknown.length} survived that nobody explains`)
  }

  /**
   * Says the share, of a sample with its interval; gives it, what it may be at most, and the names of those
   * that were missed.
   */
  report(isSample) {
    const missed = this.found.filter(({ by }) => !by).map(({ name }) => name)
    const [noticed, of] = [this.found.length - missed.length, this.found.length]
    const percent = (share) => `${(100 * share).toFixed(1)} %`
    const share = of === 0 ? 1 : noticed / of
    const bounds = isSample && of > 0 ? interval(noticed, of) : [share, share]
    const between = isSample ? ` (95 %: ${bounds.map(percent).join(' to ')})` : ''
    console.log(`${noticed} of ${of} viable mutants noticed: ${percent(share)}${between}`)
    return { share, most: bounds[1], missed }
  }
}

/** Says something with the time since the start. */
export function clock() {
  const start = performance.now()
  return (text) => console.log(`${((performance.now() - start) / 1000).toFixed(0).padStart(5)} s  ${text}`)
}
