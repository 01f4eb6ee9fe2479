/**
 * Known advisories against the dependencies, for each lock file: `npm run audit`. Crates by `cargo deny`
 * (advisories, licences, bans, sources: `deny.toml`; `cargo install cargo-deny --locked`), packages by `npm
 * audit`.
 */
import { spawnSync } from 'node:child_process'
import { capture, root, start } from './lib.mjs'

const folders = (lock) =>
  capture('git', ['ls-files', lock, `*/${lock}`])
    .trim()
    .split('\n')
    .map((path) => path.slice(0, -lock.length))

const deny = ['--all-features', 'check', '--config', `${root}/deny.toml`]
const checks = [
  ...folders('package-lock.json').map((folder) => [folder, 'npm', ['audit']]),
  ...folders('Cargo.lock').map((folder) => [folder, 'cargo', ['deny', ...deny]]),
]
for (const [folder, command, args] of checks) {
  console.log(`\n== ${command} ${args[0]}, ./${folder}`)
  const options = { ...start(command), cwd: `${root}/${folder}`, stdio: 'inherit' }
  const { status } = spawnSync(command, args, options)
  if (status !== 0) process.exitCode = 1
}
