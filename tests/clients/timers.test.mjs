/**
 * Fake timers of other test runners: the block of `docs/testing.md` runs in vitest, and with jest's names in
 * jest, as a module and as CommonJS.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { skipUnless } from '../required.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const modules = `${root}tests/clients/node_modules`
const skip = skipUnless(existsSync(`${modules}/vitest`), 'not installed: npm install --prefix tests/clients')
const [, block] = readFileSync(`${root}docs/testing.md`, 'utf8').match(/^```ts\n(.*?)^```$/ms)

/** Runs a test file in a folder of its own that has the package and the runner. */
function runs(file, code, runner, args, env = {}) {
  mkdirSync(`${root}target`, { recursive: true })
  const folder = mkdtempSync(`${root}target/timers-`)
  try {
    mkdirSync(`${folder}/node_modules/@jest`, { recursive: true })
    symlinkSync(root, `${folder}/node_modules/autothrottle`)
    symlinkSync(`${modules}/vitest`, `${folder}/node_modules/vitest`)
    symlinkSync(`${modules}/@jest/globals`, `${folder}/node_modules/@jest/globals`)
    writeFileSync(`${folder}/package.json`, '{ "private": true }')
    writeFileSync(`${folder}/${file}`, code)
    const options = { cwd: folder, encoding: 'utf8', env: { ...process.env, ...env, NO_COLOR: '1' } }
    const { status, stdout, stderr } = spawnSync(`${modules}/.bin/${runner}`, args, options)
    assert.equal(status, 0, stdout + stderr)
    assert.match(stdout + stderr, /1 passed/)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const JEST = block
  .replace("import { expect, test, vi } from 'vitest'", "import { expect, jest, test } from '@jest/globals'")
  .replaceAll('vi.', 'jest.')
const MATCH = ['--rootDir', '.', '--testMatch', '**/a.test.*']

test('vitest', { skip }, () => runs('a.test.mjs', block, 'vitest', ['run', '--root', '.']))

test('jest', { skip }, () =>
  runs('a.test.mjs', JEST, 'jest', MATCH, { NODE_OPTIONS: '--experimental-vm-modules' }),
)

test('jest, as CommonJS', { skip }, () => {
  // Its names are globals there.
  const code = JEST.replace(/^import .*@jest.*$/m, '').replace(
    /^import (.+) from (.+)$/m,
    'const $1 = require($2)',
  )
  runs('a.test.cjs', code, 'jest', MATCH)
})
