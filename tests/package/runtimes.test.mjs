/**
 * The packed tarball in every runtime that is there: the same conformance program, unchanged.
 *
 * A new runtime is a line in `RUNTIMES` and, if npm has it, one in `tests/runtimes/package.json`. Under `CI=true` all
 * of them must be there; elsewhere those that are missing are skipped by name (`npm ci --prefix tests/runtimes` fetches them).
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const bin = (path) => join(root, 'tests/runtimes/node_modules', path)
const RUNTIMES = [
  { name: 'this Node', command: process.execPath, args: [] },
  { name: 'Node 22', command: bin('node22/bin/node'), args: [] },
  { name: 'Node 24', command: bin('node24/bin/node'), args: [] },
  { name: 'Node 26', command: bin('node26/bin/node'), args: [] },
  { name: 'Deno', command: bin('.bin/deno'), args: ['run', '--no-lock'] },
  { name: 'Bun', command: bin('.bin/bun'), args: [] },
]

const scratch = mkdtempSync(join(tmpdir(), 'autothrottle-runtimes-'))
after(() => rmSync(scratch, { recursive: true, force: true }))
const run = (command, args, cwd = scratch) =>
  execFileSync(command, args, {
    cwd,
    encoding: 'utf8',
    stdio: 'pipe',
    env: { ...process.env, NO_COLOR: '1' },
  })

run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', scratch], root)
const tarball = readdirSync(scratch).find((name) => name.endsWith('.tgz'))
writeFileSync(join(scratch, 'package.json'), '{ "type": "module", "private": true }')
run('npm', ['install', '--no-audit', '--no-fund', '--offline', `./${tarball}`])
copyFileSync(join(root, 'tests/runtimes/conformance.mjs'), join(scratch, 'conformance.mjs'))

for (const { name, command, args } of RUNTIMES) {
  const isThere = existsSync(command)
  test(name, { skip: isThere || process.env.CI === 'true' ? false : 'not installed' }, (t) => {
    assert.ok(isThere, `${name} is missing: npm ci --prefix tests/runtimes`)
    t.diagnostic(run(command, ['--version']).split('\n')[0])
    assert.match(run(command, [...args, 'conformance.mjs']), /^conformance: \d+ checks passed$/m)
  })
}
