/** What the scripts share: running programs and timing steps. */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '')

/** Runs a program to its end, its output to ours; rejects when it fails. */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit', ...options })
    child.on('error', reject)
    child.on('exit', (code, signal) => {
      if (code === 0) resolve()
      else reject(new Error(`${command} ${args.join(' ')}: ${signal ?? `exit code ${code}`}`))
    })
  })
}

/** What a program prints, or `undefined` if it cannot be run. */
export function capture(command, args) {
  const result = spawnSync(command, args, { cwd: root, encoding: 'utf8' })
  return result.status === 0 ? result.stdout : undefined
}

/** Runs one step and says how long it took. */
export async function step(name, work) {
  const start = performance.now()
  await work()
  console.log(`  ${name}: ${((performance.now() - start) / 1000).toFixed(1)} s`)
}

/** The time of the newest file in these places. */
export function newest(places) {
  let time = 0
  const visit = (path) => {
    if (!existsSync(path)) return
    const stats = statSync(path)
    if (stats.isDirectory()) for (const name of readdirSync(path)) visit(`${path}/${name}`)
    else time = Math.max(time, stats.mtimeMs)
  }
  for (const place of places) visit(`${root}/${place}`)
  return time
}

/** Runs a script of this repository's and ends with its exit code, without a stack for what it already said. */
export async function main(work) {
  try {
    await work()
  } catch (error) {
    console.error(`\n${error.message}`)
    process.exit(1)
  }
}
