/** Natively beside governor: a small program of its own workspace, in `benches/peers/native`. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export const title = 'Natively, beside governor'
export const says =
  'Rust, without JavaScript: nanoseconds a decision, one key and 100,000 in turn, least of seven rounds; bytes that a key leaves behind. governor moves one number on; ours also takes a slot and hears the answer.'
export const columns = ['one key, ns', '100,000 keys, ns', 'bytes a key']

export function run() {
  const manifest = fileURLToPath(new URL('../native/Cargo.toml', import.meta.url))
  const args = ['run', '--quiet', '--locked', '--release', '--manifest-path', manifest]
  const said = execFileSync('cargo', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  return JSON.parse(said.trim().split('\n').at(-1))
}
