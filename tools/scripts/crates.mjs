/**
 * The crates as they would be published: packed, each with its licence, and the one for tower compiled from
 * what was packed, with the others beside it.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { main, root, run } from './lib.mjs'

const CRATES = ['autothrottle', 'autothrottle-reading', 'autothrottle-shared', 'autothrottle-tower']
const PACKED = `${root}/target/crates`

export async function packCrates() {
  const crates = CRATES.flatMap((name) => ['--package', name])
  const quick = ['--quiet', '--allow-dirty', '--no-verify', '--target-dir', `${root}/target`]
  await run('cargo', ['publish', '--dry-run', ...quick, '--locked', ...crates])
  await run('cargo', ['package', ...quick, '--locked', ...crates])
  rmSync(PACKED, { recursive: true, force: true })
  mkdirSync(PACKED, { recursive: true })
  const packages = `${root}/target/package`
  for (const file of readdirSync(packages).filter((name) => name.endsWith('.crate')))
    await run('tar', ['xzf', `${packages}/${file}`, '-C', PACKED])
  const folders = readdirSync(PACKED)
  for (const folder of folders)
    if (!existsSync(`${PACKED}/${folder}/LICENSE`)) throw new Error(`${folder} lacks the text of its licence`)
  const folderOf = (name) => folders.find((folder) => folder.replace(/-\d.*/, '') === name)
  const patches = CRATES.filter((name) => name !== 'autothrottle-tower')
    .map((name) => `${name}.path = ${JSON.stringify(folderOf(name))}\n`)
    .join('')
  const members = JSON.stringify([folderOf('autothrottle-tower')])
  const workspace = `[workspace]\nmembers = ${members}\nresolver = "3"\n[patch.crates-io]\n${patches}`
  writeFileSync(`${PACKED}/Cargo.toml`, workspace)
  await run('cargo', ['check', '--quiet', '--all-features', '--examples'], {
    cwd: PACKED,
    env: { ...process.env, CARGO_TARGET_DIR: `${root}/target` },
  })
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await main(packCrates)
