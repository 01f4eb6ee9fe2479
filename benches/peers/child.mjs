/**
 * Runs a part of a row in a process of its own, so that no contender pays for another's garbage:
 * `inChild(file, args)` gives what the file's `child(...args)` gave, as JSON.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const self = fileURLToPath(new URL('run-child.mjs', import.meta.url))

export function inChild(file, args, limit = 120_000, flags = []) {
  const command = [...flags, '--expose-gc', '--max-old-space-size=6000', self, fileURLToPath(file), ...args]
  const { status, signal, stdout, stderr } = spawnSync(process.execPath, command, {
    timeout: limit,
    maxBuffer: 1e8,
    encoding: 'utf8',
    killSignal: 'SIGKILL',
  })
  if (signal === 'SIGKILL') return `> ${limit / 1000} s`
  if (status !== 0)
    return `failed: ${
      stderr
        .trim()
        .split('\n')
        .find((line) => /Error/.test(line)) ?? status
    }`
  return JSON.parse(stdout.trim().split('\n').at(-1))
}
