/**
 * What a call of the component costs hosts: Rust (wasmtime) and Python. `npm run bench:component`.
 *
 * CPU time, not time on the clock, where the machine tells it. Builds the host in Rust first, which takes
 * minutes once; Python needs wasmtime (`python python/scripts/check.py` makes an environment with it).
 */
import { existsSync } from 'node:fs'
import { component } from '../scripts/component.mjs'
import { root, run } from '../scripts/lib.mjs'

await component()
console.log('\nRust, wasmtime 48')
await run('cargo', [
  'run',
  '--quiet',
  '--release',
  '--locked',
  '--manifest-path',
  'tests/component/Cargo.toml',
])
const own = `${root}/python/.venv/bin/python`
console.log('\nPython, wasmtime-py')
const env = { ...process.env, PYTHONPATH: `${root}/python/src` }
await run(existsSync(own) ? own : 'python3', ['benches/component.py'], { env })
