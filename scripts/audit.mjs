/**
 * What is known against the dependencies: `npm run audit`. Crates by `cargo deny` (advisories, licences,
 * sources; `cargo install cargo-deny --locked`), packages by `npm audit`, for each lock file.
 *
 * The trap is a check that could not be made and looks as if it had passed: it is named, and the exit code is
 * 2, where a finding's is 1.
 */
import { spawnSync } from 'node:child_process'
import { capture, main, root } from './lib.mjs'

/** What cargo says where cargo-deny is missing, or its advisories cannot be fetched. */
const NO_DENY = /no such command|failed to fetch advisory database|failed to acquire/

const folders = (lock) =>
  capture('git', ['ls-files', lock, `*/${lock}`])
    .trim()
    .split('\n')
    .map((path) => path.slice(0, -lock.length) || './')

function check(command, args, cwd, cannot) {
  const { status, error, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  const said = `${stdout ?? ''}${stderr ?? ''}`
  if (status === 0) return 'clean'
  if (error || cannot.test(said)) return 'could not be checked'
  console.error(said)
  return 'findings'
}

await main(async () => {
  const results = []
  for (const folder of folders('package-lock.json')) {
    const result = check('npm', ['audit'], `${root}/${folder}`, /audit endpoint returned an error|ENOTFOUND/)
    results.push([`npm audit, ${folder}`, result])
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
    for (const what of ['licenses', 'bans', 'sources', 'advisories'])
      results.push([`cargo deny ${what}, ${folder}`, deny(what)])
  }
  for (const [name, result] of results) console.log(`${name}: ${result}`)
  if (results.some(([, result]) => result === 'findings')) process.exit(1)
  if (results.some(([, result]) => result !== 'clean')) process.exit(2)
})
