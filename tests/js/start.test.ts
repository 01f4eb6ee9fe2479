/** `npm start` as a newcomer meets it: its help before anything is there, and a host that is down. */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const clone = mkdtempSync(join(tmpdir(), 'autothrottle-start-'))
after(() => rmSync(clone, { recursive: true }))
for (const folder of ['scripts', 'examples', 'js/command']) {
  mkdirSync(join(clone, folder), { recursive: true })
  cpSync(join(root, folder), join(clone, folder), { recursive: true })
}
/** In a clone without packages and without a build. */
const start = (...args: string[]) =>
  spawnSync(process.execPath, ['scripts/start.mjs', ...args], { cwd: clone, encoding: 'utf8' })

test('help comes before anything is built', () => {
  const { status, stdout, stderr } = start('--help')
  assert.equal(status, 0, stderr)
  assert.match(stdout, /^npm start -- \[URL…\] \[options\]\n[\s\S]*--max-pages N/)
  assert.doesNotMatch(stdout, /building/)
})

test('so does the word about a slip', () => {
  const { status, stdout, stderr } = start('--max-page', '5')
  assert.equal(status, 2)
  assert.match(stderr, /^there is no option --max-page: did you mean --max-pages\?\n[\s\S]*--max-pages N/)
  assert.equal(stdout, '')
})

for (const host of ['127.0.0.1', 'localhost']) {
  test(`a host that is down says ECONNREFUSED: ${host}`, async () => {
    const server = createServer().listen(0, host)
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    const args = [
      '--import',
      'tsx',
      'examples/start.ts',
      `http://${host}:${port}/`,
      ...['--start-delay', '0', '--delay', '0', '--retries', '0', '--ignore-robots'],
    ]
    const child = spawn(process.execPath, args, { cwd: root })
    let said = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (said += part))
    const code = await new Promise((resolve) => child.on('exit', resolve))
    assert.match(said, /ECONNREFUSED/)
    assert.equal(code, 1)
  })
}
