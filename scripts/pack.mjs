/** The tarball that users get, installed in a scratch project: what the tests of the package start from. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from './lib.mjs'

/** `run` runs a program there and gives what it prints; `remove` removes the project. */
export function packed() {
  const scratch = mkdtempSync(join(tmpdir(), 'autothrottle-'))
  const env = { ...process.env, NO_COLOR: '1' }
  const run = (command, args, cwd = scratch) =>
    execFileSync(command, args, { cwd, encoding: 'utf8', stdio: 'pipe', env })
  run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', scratch], root)
  const tarball = join(
    scratch,
    readdirSync(scratch).find((name) => name.endsWith('.tgz')),
  )
  writeFileSync(join(scratch, 'package.json'), '{ "type": "module", "private": true }')
  run('npm', ['install', '--no-audit', '--no-fund', '--offline', tarball])
  return { scratch, tarball, run, remove: () => rmSync(scratch, { recursive: true, force: true }) }
}
