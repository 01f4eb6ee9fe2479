/**
 * Builds the tarball twice, each time from a fresh clone in a folder of another name and length, and compares
 * the hashes: `npm run reproducible`. Takes two full builds, about ten minutes.
 *
 * The traps: a path, a time or an order of files in what is published. npm sets the times in a tarball; the
 * rest is ours. Nor do the clones share the packages of npm: its install would empty the folder behind a
 * link.
 */
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { capture, main, root, run, step } from './lib.mjs'

const NAMES = ['once', 'and-a-second-time-elsewhere']

/** Where this machine has things: no file says it. */
const PLACES = [homedir(), root, tmpdir()].map((path) => `${path}/`)

const hash = (bytes) => createHash('sha256').update(bytes).digest('hex')

/** The tarball's hash, and that of each file in it. */
async function made(scratch, name) {
  const clone = join(scratch, name)
  await run('git', ['clone', '--quiet', root, clone])
  await run('npm', ['ci', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel', 'error'], {
    cwd: clone,
  })
  const env = { ...process.env, CARGO_TARGET_DIR: join(clone, 'target') }
  await run('node', ['scripts/build.mjs'], { cwd: clone, env })
  const pack = ['pack', '--ignore-scripts', '--silent', '--pack-destination', scratch]
  await run('npm', pack, { cwd: clone })
  const tarball = join(
    scratch,
    readdirSync(scratch).find((file) => file.endsWith('.tgz')),
  )
  const bytes = readFileSync(tarball)
  const unpacked = mkdtempSync(join(scratch, 'unpacked-'))
  await run('tar', ['-xzf', tarball, '-C', unpacked])
  rmSync(tarball)
  const names = readdirSync(unpacked, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
  const files = names.map((path) => [path.slice(unpacked.length + 1), hash(readFileSync(path))])
  const telling = names.filter((path) => PLACES.some((place) => readFileSync(path).includes(place)))
  if (telling.length > 0) throw new Error(`paths of this machine are in ${telling.join(', ')}`)
  return { tarball: hash(bytes), files: new Map(files) }
}

await main(async () => {
  if (capture('git', ['status', '--porcelain', '--untracked-files=no']) !== '')
    console.log('What is not committed is not built: the clones are of HEAD.')
  const scratch = mkdtempSync(join(tmpdir(), 'autothrottle-builds-'))
  try {
    const builds = []
    for (const name of NAMES) await step(name, async () => builds.push(await made(scratch, name)))
    const [one, other] = builds
    for (const { tarball } of builds) console.log(`sha256 ${tarball}`)
    if (one.tarball === other.tarball) return
    const names = new Set([...one.files.keys(), ...other.files.keys()])
    const differ = [...names].filter((name) => one.files.get(name) !== other.files.get(name))
    throw new Error(`the builds differ in ${differ.join(', ') || 'the archive alone'}`)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
})
