/**
 * One build with every mutant in it. `cargo mutants --list` says what to change; here each function that has
 * mutants becomes a `match` on a number from the environment, with one arm a mutant. To compile is by far the
 * dearest part of a mutant: this way thousands share it ("mutant schemata", Untch 1993).
 *
 * The traps:
 * - A mutant that does not compile breaks the build of all. The compiler says in which lines its errors are,
 *   so these arms are left out, until nothing is wrong.
 * - A `const fn`, and one that gives an `impl Trait`, cannot choose. Their mutants are built one at a time.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { capture, root } from '../../../scripts/lib.mjs'

const SWITCH = readFileSync(new URL('switch.rs', import.meta.url), 'utf8')
/** What the tests need of the repository. */
const COPIED =
  /^(Cargo\.|rustfmt|\.cargo\/|src\/|reading\/|bindings\/|xtask\/|benches\/engine|tests\/|docs\/|fuzz\/)/

/** All mutants that `cargo mutants` would make, each with its number. */
export function list(args) {
  const command = ['mutants', '--list', '--json', '--workspace', ...args]
  const { status, stdout, stderr } = spawnSync('cargo', command, {
    cwd: root,
    maxBuffer: 1e9,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`cargo install cargo-mutants --locked\n${stderr}`)
  return JSON.parse(stdout).map((mutant, index) => ({ ...mutant, number: index + 1 }))
}

/** Writes only what differs, so that nothing is compiled twice. */
function write(path, text) {
  if (existsSync(path) && readFileSync(path, 'utf8') === text) return
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** The repository's files, but for those with mutants, which `place` writes. */
export function copy(tree, sources) {
  const files = capture('git', ['ls-files', '--cached', '--others', '--exclude-standard']).trim().split('\n')
  for (const file of files) {
    if (!COPIED.test(file) || sources.has(file) || !existsSync(`${root}/${file}`)) continue
    const [from, to] = [readFileSync(`${root}/${file}`), `${tree}/${file}`]
    if (existsSync(to) && readFileSync(to).equals(from)) continue
    mkdirSync(dirname(to), { recursive: true })
    cpSync(`${root}/${file}`, to)
  }
}

const offsets = (text) => {
  const starts = [0]
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  // Columns count characters from 1.
  return ({ line, column }) => {
    const start = starts[line - 1]
    return start + [...text.slice(start, start + 4 * column)].slice(0, column - 1).join('').length
  }
}

/** Where the body of a function begins: the first brace outside of parentheses. */
function bodyOf(text, start, end) {
  let depth = 0
  for (let at = start; at < end; at++) {
    if ('(['.includes(text[at])) depth++
    else if (')]'.includes(text[at])) depth--
    else if (text[at] === '{' && depth === 0) return at
  }
  throw new Error(`no body in ${text.slice(start, end)}`)
}

/** The functions of one file that have mutants; one within another belongs to it. */
function functionsOf(text, mutants) {
  const at = offsets(text)
  const found = new Map()
  for (const mutant of mutants.filter((one) => one.function)) {
    const { start, end } = mutant.function.span
    const key = `${at(start)}-${at(end)}`
    if (!found.has(key)) found.set(key, { start: at(start), end: at(end), mutants: [] })
    found.get(key).mutants.push({ ...mutant, from: at(mutant.span.start), to: at(mutant.span.end) })
  }
  const all = [...found.values()].sort((a, b) => a.start - b.start || b.end - a.end)
  const outer = []
  for (const one of all) {
    const last = outer.at(-1)
    if (last && one.end <= last.end) last.mutants.push(...one.mutants)
    else outer.push(one)
  }
  return outer.map((one) => {
    const body = bodyOf(text, one.start, one.end)
    const head = text.slice(one.start, body)
    return { ...one, body, canChoose: !/\bconst\s+fn\b/.test(head) && !/->\s*impl\b/.test(head) }
  })
}

/** A source with its mutants as arms, and the lines of each. */
function withArms(file, text, functions, left) {
  const call = file.startsWith('reading/') ? 'crate' : '::autothrottle_reading'
  const arms = []
  let out = ''
  let line = 1
  const add = (part) => {
    out += part
    line += part.split('\n').length - 1
  }
  let at = 0
  for (const one of functions) {
    const mutants = one.mutants.filter(({ number }) => !left.has(number))
    if (mutants.length === 0) continue
    add(text.slice(at, one.body))
    add(`{ match ${call}::mutant_switch::chosen(${one.id}) {\n`)
    for (const { number, from, to, replacement } of mutants) {
      const first = line
      add(`${number} => ${text.slice(one.body, from)}${replacement} ${text.slice(to, one.end)}\n`)
      arms.push({ number, first, last: line - 1 })
    }
    add(`_ => ${text.slice(one.body, one.end)}\n} }`)
    at = one.end
  }
  add(text.slice(at))
  return { text: out, arms }
}

/** Cargo's messages of one command: the errors, and the binaries it made. */
function cargo(tree, target, args) {
  const env = { ...process.env, CARGO_TARGET_DIR: target, RUSTFLAGS: '-Awarnings' }
  const packages = ['-p', 'autothrottle', '-p', 'autothrottle-reading', '--lib', '--test', 'native']
  const command = [...args, '--quiet', '--profile', 'mutants', ...packages, '--message-format', 'json']
  const { stdout, status } = spawnSync('cargo', command, { cwd: tree, env, maxBuffer: 1e9, encoding: 'utf8' })
  const messages = stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
  const errors = messages.filter(({ message }) => message?.level === 'error' && message.spans.length > 0)
  const binaries = messages.filter(({ executable }) => executable).map(({ executable }) => executable)
  return { status, errors: errors.map(({ message }) => message), binaries }
}

const CHECK = ['check', '--tests']
const BUILD = ['test', '--no-run']

/**
 * Builds all mutants at once. Gives the binaries, which function each mutant is in, which did not compile,
 * and which have to be built alone.
 */
export function build(folder, mutants, tell) {
  const tree = `${folder}/tree`
  const files = new Map()
  for (const mutant of mutants) files.set(mutant.file, [...(files.get(mutant.file) ?? []), mutant])
  copy(tree, new Set([...files.keys(), 'reading/src/lib.rs']))
  const [unviable, alone, placed] = [new Set(), new Set(), new Map()]
  const sources = []
  let functions = 0
  for (const [file, of] of files) {
    const text = readFileSync(`${root}/${file}`, 'utf8')
    const found = functionsOf(text, of)
    for (const one of found) {
      one.id = functions++
      for (const { number } of one.mutants) one.canChoose ? placed.set(number, one.id) : alone.add(number)
    }
    for (const one of of) if (!one.function) alone.add(one.number)
    sources.push({ file, text, functions: found.filter(({ canChoose }) => canChoose) })
  }
  write(`${tree}/reading/src/mutant_switch.rs`, `${SWITCH}const FUNCTIONS: usize = ${functions};\n`)
  if (!files.has('reading/src/lib.rs')) {
    const lib = readFileSync(`${root}/reading/src/lib.rs`, 'utf8')
    write(`${tree}/reading/src/lib.rs`, `${lib}\n#[doc(hidden)]\npub mod mutant_switch;\n`)
  }
  for (const command of [CHECK, BUILD]) {
    for (;;) {
      const arms = new Map()
      for (const { file, text, functions } of sources) {
        const made = withArms(file, text, functions, unviable)
        arms.set(file, made.arms)
        write(`${tree}/${file}`, made.text)
      }
      const { status, errors, binaries } = cargo(tree, `${folder}/build`, command)
      if (status === 0 && command === BUILD) return { binaries, placed, unviable, alone }
      if (status === 0) break
      const before = unviable.size
      const unknown = []
      for (const error of errors) {
        const of = error.spans.flatMap((span) => armsAt(arms, span).map((arm) => [span.is_primary, arm]))
        const primary = of.filter(([is]) => is)
        for (const [, number] of primary.length > 0 ? primary : of) unviable.add(number)
        if (of.length === 0) unknown.push(error.rendered)
      }
      if (unviable.size === before) throw new Error(`the copy does not compile:\n${unknown.join('\n')}`)
      tell(`${unviable.size} do not compile`)
    }
  }
}

/** The mutants in whose arms the compiler sees an error. */
function armsAt(arms, span) {
  const holds = ({ first, last }) => first <= span.line_start && span.line_end <= last
  return (arms.get(span.file_name) ?? []).filter(holds).map(({ number }) => number)
}

/** Builds one mutant alone; gives the binaries, or `undefined` if it does not compile. */
export function buildAlone(folder, mutant) {
  const [tree, { file, span, replacement }] = [`${folder}/tree-alone`, mutant]
  copy(tree, new Set([file]))
  const text = readFileSync(`${root}/${file}`, 'utf8')
  const at = offsets(text)
  write(`${tree}/${file}`, `${text.slice(0, at(span.start))}${replacement} ${text.slice(at(span.end))}`)
  const { status, binaries } = cargo(tree, `${folder}/build-alone`, BUILD)
  return status === 0 ? binaries : undefined
}
