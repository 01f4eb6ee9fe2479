/**
 * Worker threads of one program share a limit by the socket, as processes do, in each runtime that has
 * threads: a port between them would be a second way with the same result.
 *
 * Needs `npm install --prefix tests/runtimes` for Deno and Bun; without it they are skipped by name, under
 * `npm run test:all` they fail.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { skipUnless } from '../required.mjs'

const bin = (name) => fileURLToPath(new URL(`../runtimes/node_modules/.bin/${name}`, import.meta.url))
const RUNTIMES = [
  { name: 'Node', command: process.execPath, args: [] },
  {
    name: 'Deno',
    command: bin('deno'),
    args: ['run', '--no-lock', '--allow-read', '--allow-write', '--allow-net', '--allow-env', '--allow-sys'],
  },
  { name: 'Bun', command: bin('bun'), args: [] },
]

/** The output of a program. */
function said(command, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let text = ''
    child.stdout.on('data', (part) => {
      text += part
    })
    child.once('error', reject)
    child.once('close', () => resolve(text))
  })
}

for (const { name, command, args } of RUNTIMES) {
  const skip = skipUnless(existsSync(command))
  test(`${name}: three threads share one slot, also when the one that decides ends`, { skip }, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'at-'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const program = fileURLToPath(new URL('threads.mjs', import.meta.url))
    const text = await said(command, [...args, program, join(folder, 's')])
    assert.deepEqual(JSON.parse(text), { most: 1, areAll: true, goOn: true })
  })
}
