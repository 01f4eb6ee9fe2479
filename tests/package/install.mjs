/** The tarball that users get, installed in a scratch project: what the tests of the package start from. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root, start } from '../../tools/scripts/lib.mjs'
import { stage, stageCommand } from '../../tools/scripts/pack.mjs'

/**
 * `run` runs a program there and gives what it prints; `addCommand` installs the command's package, too, and
 * says where; `remove` removes the project.
 *
 * @param where the folder to make it in: what is installed above it can be imported.
 */
export function packed(where = tmpdir()) {
  const scratch = mkdtempSync(join(where, 'autothrottle-'))
  const env = { ...process.env, NO_COLOR: '1' }
  const run = (command, args, cwd = scratch) =>
    execFileSync(command, args, { ...start(command), cwd, encoding: 'utf8', stdio: 'pipe', env })
  /** Packs what `stage` puts together, and unpacks it: as npm installs it, in a tenth of the time. */
  const install = (stage, name) => {
    const folder = join(scratch, 'package')
    stage(folder)
    const known = new Set(readdirSync(scratch))
    run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', scratch, folder], root)
    rmSync(folder, { recursive: true })
    const tarball = join(
      scratch,
      readdirSync(scratch).find((file) => file.endsWith('.tgz') && !known.has(file)),
    )
    const installed = join(scratch, 'node_modules', name)
    mkdirSync(installed, { recursive: true })
    run('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1'])
    return { tarball, installed }
  }
  const { tarball } = install(stage, 'autothrottle')
  writeFileSync(join(scratch, 'package.json'), '{ "type": "module", "private": true }')
  return {
    scratch,
    tarball,
    run,
    addCommand: () => install(stageCommand, 'autothrottle-cli'),
    remove: () => rmSync(scratch, { recursive: true, force: true, maxRetries: 5 }),
  }
}
