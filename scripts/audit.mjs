/**
 * What is known against the dependencies: `npm run audit`. Crates by `cargo deny` (advisories, licences,
 * bans, sources; `cargo install cargo-deny --locked`), packages by `npm audit`, for each lock file. Without
 * cargo-deny, licences and sources are read from `cargo metadata`; of packages the licences are always read,
 * from the lock file.
 *
 * The trap is a check that could not be made and looks as if it had passed: it is named, and the exit code is
 * 2, where a finding's is 1.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { capture, main, root, start } from './lib.mjs'

/** What cargo says where cargo-deny is missing, or its advisories cannot be fetched. */
const NO_DENY = /no such command|failed to fetch advisory database|failed to acquire/

const folders = (lock) =>
  capture('git', ['ls-files', lock, `*/${lock}`])
    .trim()
    .split('\n')
    .map((path) => path.slice(0, -lock.length) || './')

function check(command, args, cwd, cannot) {
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    ...start(command),
    cwd,
    encoding: 'utf8',
  })
  const said = `${stdout ?? ''}${stderr ?? ''}`
  if (status === 0) return 'clean'
  if (error || cannot.test(said)) return 'could not be checked'
  console.error(said)
  return 'findings'
}

const DENY = readFileSync(`${root}/deny.toml`, 'utf8')
const ALLOWED = new Set([.../^allow = \[(.*)\]$/m.exec(DENY)[1].matchAll(/"(.*?)"/g)].map(([, name]) => name))
/** What packages may have beside: they are tools, and nothing of them is published. */
const OF_TOOLS = (
  'ISC BSD-2-Clause BSD-3-Clause 0BSD BlueOak-1.0.0 CC0-1.0 Python-2.0 MIT-0 CC-BY-3.0 CC-BY-4.0 MPL-2.0 ' +
  'LGPL-3.0-or-later'
).split(' ')
/** Old packages of which only a file says the licence. */
const IN_A_FILE = { 'map-stream': 'MIT', 'parse-cache-control': 'BSD-3-Clause' }
const CRATES = 'registry+https://github.com/rust-lang/crates.io-index'

/** Whether an SPDX expression leaves a choice that is allowed. Parentheses first, then AND, then OR. */
function isAllowed(expression, allowed) {
  const inner = /\(([^()]*)\)/.exec(expression)
  if (inner)
    return isAllowed(expression.replace(inner[0], isAllowed(inner[1], allowed) ? 'YES' : 'NO'), allowed)
  const isOne = (name) => name === 'YES' || allowed.has(name)
  const all = (part) => part.split(/ AND /).every((name) => isOne(name.trim()))
  return expression.split(/ OR |\//).some(all)
}

/**
 * The licences and sources of the crates of one lock file; `undefined` where they are not on this machine.
 */
function crates(manifest) {
  const args = ['metadata', ...manifest, '--format-version', '1', '--locked', '--offline', '--all-features']
  const text = capture('cargo', args)
  if (text === undefined) return undefined
  const others = JSON.parse(text).packages.filter(({ source }) => source !== null)
  const wrong = ({ license }) => !isAllowed(license ?? 'none', ALLOWED)
  return {
    licenses: others.filter(wrong).map(({ name, license }) => `${name}: ${license}`),
    sources: others.filter(({ source }) => source !== CRATES).map(({ name, source }) => `${name}: ${source}`),
  }
}

/** The licences of the packages of one lock file, which names them. */
function packages(folder) {
  const { packages } = JSON.parse(readFileSync(`${root}/${folder}package-lock.json`, 'utf8'))
  const allowed = new Set([...ALLOWED, ...OF_TOOLS])
  const all = Object.entries(packages).filter(([place]) => place.includes('node_modules/'))
  const findings = []
  for (const [place, { license, link }] of all) {
    const named = license ?? IN_A_FILE[place.split('node_modules/').at(-1)] ?? 'none'
    const expression = [named].flat().join(' OR ')
    if (!link && !isAllowed(expression, allowed)) findings.push(`${folder}${place}: ${expression}`)
  }
  return findings
}

const said = (findings) => {
  for (const finding of findings) console.error(`  ${finding}`)
  return findings.length === 0 ? 'clean' : 'findings'
}

await main(async () => {
  const results = []
  const hasDeny = spawnSync('cargo', ['deny', '--version']).status === 0
  for (const folder of folders('package-lock.json')) {
    // `npm run -s` makes an npm that it starts silent, too: then nothing says that there was no answer.
    const audit = ['audit', '--loglevel=error']
    const result = check('npm', audit, `${root}/${folder}`, /audit endpoint returned an error|ENOTFOUND/)
    results.push([`npm audit, ${folder}`, result])
    results.push([`licences of packages, ${folder}`, said(packages(folder))])
  }
  for (const folder of folders('Cargo.lock')) {
    const manifest = ['--manifest-path', `${root}/${folder}Cargo.toml`]
    const deny = (what, ...more) =>
      check(
        'cargo',
        ['deny', ...manifest, 'check', '--config', `${root}/deny.toml`, ...more, what],
        root,
        NO_DENY,
      )
    const read = hasDeny ? undefined : crates(manifest)
    for (const what of ['licenses', 'bans', 'sources', 'advisories'])
      if (read?.[what]) results.push([`${what} by cargo metadata, ${folder}`, said(read[what])])
      else results.push([`cargo deny ${what}, ${folder}`, deny(what)])
  }
  for (const [name, result] of results) console.log(`${name}: ${result}`)
  if (results.some(([, result]) => result === 'findings')) process.exit(1)
  if (results.some(([, result]) => result !== 'clean')) process.exit(2)
})
