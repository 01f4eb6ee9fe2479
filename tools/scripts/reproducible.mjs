/**
 * Builds the tarball twice, each time from a fresh clone in a folder of another name and length, and compares
 * what is in them: `npm run reproducible`. Takes two full builds, about ten minutes.
 *
 * No path, time or order of files is in what is published. The clones do not share the packages of npm: its
 * install would empty the folder behind a link.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { capture, main, root, run, step } from './lib.mjs'

const NAMES = ['once', 'and-a-second-time-elsewhere']

/** Where this machine has things: no file says it. */
const PLACES = [homedir(), root, tmpdir()].map((path) => `${path}/`)

/** Builds, unpacks beside the clone, and gives the tarball's hash. */
async function made(clone) {
  await run('git', ['clone', '--quiet', root, clone])
  const quiet = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel', 'error']
  await run('npm', ['ci', ...quiet], { cwd: clone })
  const env = { ...process.env, CARGO_TARGET_DIR: join(clone, 'target') }
  await run('node', ['tools/scripts/pack.mjs'], { cwd: clone, env })
  const tarball = readdirSync(clone).find((file) => file.endsWith('.tgz'))
  mkdirSync(`${clone}-unpacked`)
  await run('tar', ['-xzf', join(clone, tarball), '-C', `${clone}-unpacked`])
  const bytes = readFileSync(join(clone, tarball))
  return createHash('sha256').update(bytes).digest('hex')
}

await main(async () => {
  if (capture('git', ['status', '--porcelain', '--untracked-files=no']) !== '')
    console.log('What is not committed is not built: the clones are of HEAD.')
  const scratch = mkdtempSync(join(tmpdir(), 'autothrottle-builds-'))
  try {
    const clones = NAMES.map((name) => join(scratch, name))
    const hashes = []
    for (const clone of clones) await step(clone, async () => hashes.push(await made(clone)))
    const [one, other] = clones.map((clone) => `${clone}-unpacked`)
    const files = readdirSync(one, { recursive: true, withFileTypes: true }).filter((each) => each.isFile())
    const paths = files.map((each) => join(each.parentPath, each.name))
    const telling = paths.filter((path) => PLACES.some((place) => readFileSync(path).includes(place)))
    if (telling.length > 0) throw new Error(`paths of this machine are in ${telling.join(', ')}`)
    await run('git', ['diff', '--no-index', '--stat', one, other])
    for (const hash of hashes) console.log(`sha256 ${hash}`)
    if (hashes[0] !== hashes[1]) throw new Error('the archives differ, their files do not')
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
})
