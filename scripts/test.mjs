/**
 * Everything: `npm test`. Does all of its own set-up.
 *
 * Lanes, side by side, each in the order in which it is cheapest to fail: Rust, what is built from it, and
 * Python. Cargo's lock is no trap here: the lanes build for other targets, into other folders. What a step
 * prints comes when it ends, so that the lanes do not mix; one failure ends all.
 */
import { existsSync, readdirSync } from 'node:fs'
import { build, setUp } from './build.mjs'
import { capture, inLane, main, root, run, step, together } from './lib.mjs'
import { buildSite, fetchSite } from './site.mjs'

const isCI = process.env.CI === 'true'
const files = (folder, end) =>
  readdirSync(`${root}/${folder}`)
    .filter((name) => name.endsWith(end))
    .map((name) => `${folder}/${name}`)

async function rust() {
  await step('rustfmt', () => run('cargo', ['fmt', '--all', '--check']))
  const everywhere = ['clippy', '--locked', '--workspace', '--all-targets', '--', '-D', 'warnings']
  await step('clippy', () => run('cargo', everywhere))
  await step('native tests', () => run('cargo', ['test', '--locked']))
  if (hasHost) await step('host of the component', () => run('cargo', [...HOST, '--no-run']))
  if (isCI) await mutants()
}

/** Whether tests notice changes in what the last commit touched: for a minute or two, and only in CI. */
async function mutants() {
  if (capture('cargo', ['mutants', '--version']) !== undefined)
    await step('mutants of the engine', () => run('node', ['scripts/mutants.mjs', '--short']))
  else console.log('  mutants of the engine: skipped, cargo-mutants is not installed')
}

/**
 * A host of the component in Rust. Its compiler takes ten minutes to be compiled, so only CI does that by
 * itself.
 */
const HOST = ['test', '--quiet', '--locked', '--manifest-path', 'tests/component/Cargo.toml']
const hasHost = isCI || existsSync(`${root}/tests/component/target`)

/**
 * What npm has of other runtimes, of clients and of Redis' clients; they are large, so only CI fetches them
 * by itself.
 */
async function runtimes() {
  for (const folder of ['runtimes', 'clients', 'shared', 'mutants']) {
    if (!isCI || existsSync(`${root}/tests/${folder}/node_modules`)) continue
    // Not `npm ci`: it refuses a lock file without the platform packages of Deno that some registries lack.
    const args = ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', `tests/${folder}`]
    await step(folder, () => run('npm', args))
  }
}

/** Everything about the Python package, once the component and what Node drives are there. */
async function python(isBuilt, fetched) {
  const version = 'import sys; sys.exit(0 if sys.version_info >= (3, 10) else 1)'
  const isThere = capture('python3', ['-c', `import venv, ensurepip; ${version}`]) !== undefined
  if (!isThere && isCI) throw new Error('Python 3.10 or newer is missing, or its venv')
  const check = 'python/scripts/check.py'
  if (isThere) await step('Python: environments', () => run('python3', [check, '--prepare']))
  await isBuilt
  // Processes in Node share limits with those in Python: their clients are fetched.
  await fetched
  if (isThere) await step('Python', () => run('python3', [check]))
  else console.log('  Python: skipped, there is no Python 3.10 or newer with venv')
}

async function typescript(fetched, compiled, built) {
  await step('lint', () => run('npx', ['--no-install', 'biome', 'check', '.']))
  await build()
  built()
  await step('types', () => run('npx', ['--no-install', 'tsc', '--noEmit']))
  // Most of them wait for a server or a child now and then: a third keeps two cores busy.
  const pool = ['--test', '--test-concurrency=3']
  await step('TypeScript tests', () =>
    run('node', ['--import', 'tsx', ...pool, ...files('tests/js', '.test.ts')]),
  )
  await fetched
  if (isCI) await step('mutants', () => run('node', ['tests/mutants/run.mjs', '--short']))
  const clients = ['--import', 'tsx', '--test', ...files('tests/clients', '.test.mjs')]
  await step('clients', () => run('node', clients))
  const shared = ['--test', ...files('tests/shared', '.test.mjs')]
  await step('shared limits', () => run('node', shared))
  const packed = ['--test', '--test-concurrency=2', ...files('tests/package', '.test.mjs')]
  await step('packed package', () => run('node', packed))
  await compiled
  if (hasHost) await step('component', () => run('cargo', HOST))
  await site()
}

/** The site in real browsers: under CI, and where its packages are installed. */
async function site() {
  if (!isCI && !existsSync(`${root}/site/node_modules`)) return
  await fetchSite()
  await buildSite()
  await step('site in browsers', () => run('node', ['--test', ...files('site/test', '.test.mjs')]))
}

await main(async () => {
  await setUp()
  const fetched = inLane(runtimes)
  const compiled = inLane(rust)
  let built
  const isBuilt = new Promise((resolve) => {
    built = resolve
  })
  await together(
    compiled,
    fetched,
    inLane(() => typescript(fetched, compiled, built)),
    inLane(() => python(isBuilt, fetched)),
  )
})
