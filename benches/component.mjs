/**
 * What a call of the component costs a host in Rust (wasmtime). `npm run bench:component`.
 *
 * CPU time, where the machine tells it. Builds the host first, which takes minutes once.
 */
import { component } from '../scripts/component.mjs'
import { run } from '../scripts/lib.mjs'

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
