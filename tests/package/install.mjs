/** The tarball that users get, installed in a scratch project: what the tests of the package start from. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root, start } from '../../scripts/lib.mjs'
import { stage } from '../../scripts/pack.mjs'

/**
 * `run` runs a program there and gives what it prints; `remove` removes the project.
 *
 * @param where the folder to make it in: what is installed above it can be imported.
 */
export function packed(where = tmpdir()) {
  const scratch = mkdtempSync(join(where, 'autothrottle-'))
  const env = { ...process.env, NO_COLOR: '1' }
  const run = (command, args, cwd = scratch) =>
    execFileSync(command, args, { ...start(command), cwd, encoding: 'utf8', stdio: 'pipe', env })
  const folder = join(scratch, 'package')
  stage(folder)
  run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', scratch, folder], root)
  rmSync(folder, { recursive: true })
  const tarball = join(
    scratch,
    readdirSync(scratch).find((name) => name.endsWith('.tgz')),
  )
  writeFileSync(join(scratch, 'package.json'), '{ "type": "module", "private": true }')
  // As npm does it, in a tenth of the time; one test has npm itself do it.
  const installed = join(scratch, 'node_modules/autothrottle')
  mkdirSync(installed, { recursive: true })
  run('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1'])
  return {
    scratch,
    tarball,
    run,
    remove: () => rmSync(scratch, { recursive: true, force: true, maxRetries: 5 }),
  }
}
