/** The program of the crate for tower that joins a group (`tower/examples/group.rs`), compiled: its path. */
import { spawnSync } from 'node:child_process'

const BUILD = ['build', '--locked', '--example', 'group', '--all-features', '--message-format=json']

export function groupInRust() {
  const manifest = ['--manifest-path', 'tower/Cargo.toml']
  const built = spawnSync('cargo', [...BUILD, ...manifest], { encoding: 'utf8', maxBuffer: 2 ** 26 })
  if (built.status !== 0) throw new Error(built.stderr)
  const made = built.stdout.split('\n').filter(Boolean)
  return made.map((line) => JSON.parse(line)).findLast(({ executable }) => executable).executable
}
