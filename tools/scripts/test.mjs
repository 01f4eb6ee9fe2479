/**
 * The tests, in three tiers. Each does all of its own set-up.
 *
 *     npm test                the core: Rust, the engine in JavaScript, the packed package in Node
 *     npm run test:all        everything; what is missing (a runtime, a browser, Redis) is a failure
 *     npm run test:nightly    what needs an hour: mutants, many seeds, the oldest versions
 *
 * Lanes run side by side, each in the order in which it is cheapest to fail. Cargo's lock does not stop them:
 * they build for other targets, into other folders. A step's output comes when it ends, so that the lanes do
 * not mix; one failure ends all.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { build, setUp } from './build.mjs'
import { packCrates } from './crates.mjs'
import { capture, inLane, main, root, run, step, together } from './lib.mjs'
import { buildSite, fetchSite } from './site.mjs'

const [tier = '--core'] = process.argv.slice(2)
const isAll = tier === '--all'
// Tests read it: `tests/required.mjs`, and Python's.
if (isAll) process.env.TEST_ALL = 'true'

const files = (folder, end) =>
  readdirSync(`${root}/${folder}`)
    .filter((name) => name.endsWith(end))
    .map((name) => `${folder}/${name}`)
const node = (name, paths, ...options) => step(name, () => run('node', ['--test', ...options, ...paths]))
/** Files in TypeScript, or that import some. */
const tsx = (name, paths, ...options) => node(name, paths, '--import', 'tsx', ...options)

/** The bindings and shared limits bring two thirds of all crates along: the core has neither natively. */
const ENGINE = ['', '-reading', '-llm'].flatMap((end) => ['--package', `autothrottle${end}`])
/** It is linted where it was built: a native build would compile its macro, with a parser of WIT, again. */
const COMPONENT = 'autothrottle-component'
const WASM = ['--profile', 'wasm', '--target', 'wasm32-unknown-unknown']
/** Native tests of more than a second each: plays of many servers, an hour of requests, a million hosts. */
const LONG = [
  'a_million_hosts_seen_once',
  'each_request_leaves_when_it_left',
  'rampup_goes_on_where_the_former_writer_was',
  'simulate::clients_of_one_limit_share_it',
  'simulate::limits_are_found_and_kept',
  'simulate::no_bound_is_overstepped',
  'simulate::the_target_is_what_is_paid',
  'simulate::servers_that_once_went_wrong_stay_right',
  'soak::',
]

async function rust() {
  await step('rustfmt', () => run('cargo', ['fmt', '--all', '--check']))
  const linted = isAll ? ['--workspace', '--exclude', COMPONENT, '--features', 'xtask/component'] : ENGINE
  const clippy = ['clippy', '--locked', ...linted, '--all-targets', '--', '-D', 'warnings']
  await step('clippy', () => run('cargo', clippy))
  const env = isAll ? process.env : { ...process.env, SEEDS: '10', HOSTILE_TEXTS: '5000' }
  const tested = isAll ? [] : [...ENGINE, '--', ...LONG.flatMap((name) => ['--skip', name])]
  await step('native tests', () => run('cargo', ['test', '--locked', '--quiet', ...tested], { env }))
  if (!isAll) return
  await step('instructions', () => run('node', ['tools/bench/instructions.mjs', '--check']))
  // A link to what is private, or gone, is dead on docs.rs.
  const strict = { env: { ...process.env, RUSTDOCFLAGS: '-D warnings' } }
  const documented = ['.', 'crates/reading', 'crates/shared', 'crates/llm'].map(
    (place) => `--manifest-path=${place}/Cargo.toml`,
  )
  const doc = ['doc', '--quiet', '--locked', '--no-deps']
  for (const place of [...documented, '--manifest-path=tower/Cargo.toml'])
    await step(`documentation: ${place.split('=')[1]}`, () => run('cargo', [...doc, place], strict))
  const tower = ['--quiet', '--locked', '--all-features', '--manifest-path', 'tower/Cargo.toml']
  await step('tower: clippy', () =>
    run('cargo', ['clippy', ...tower, '--all-targets', '--', '-D', 'warnings']),
  )
  await step('tower', () => run('cargo', ['test', ...tower]))
  const alone = ['--quiet', '--locked', '--manifest-path', 'tower/Cargo.toml']
  await step('tower: without features', () => run('cargo', ['check', ...alone]))
  await step('crates, as they would be published', packCrates)
  await oldestRust()
  await step('host of the component', () => run('cargo', [...HOST, '--no-run']))
}

/** Crates that are published or built into a package, with the oldest Rust that each names. */
async function oldestRust() {
  const places = ['.', 'crates/reading', 'crates/llm', 'crates/shared', 'tower']
  const manifests = places.map((place) => `${place}/Cargo.toml`)
  for (const manifest of manifests) {
    const [, named] = /^rust-version = "(.+)"$/m.exec(readFileSync(`${root}/${manifest}`, 'utf8'))
    const oldest = `${named}.0`
    await run('rustup', ['toolchain', 'install', oldest, '--profile', 'minimal'])
    const check = ['check', '--quiet', '--locked', '--all-features', '--manifest-path', manifest]
    const apart = ['--target-dir', `target/rust-${oldest}`]
    await step(`${manifest} with Rust ${oldest}`, () => run('cargo', [`+${oldest}`, ...check, ...apart]))
  }
}

/** A host of the component in Rust. */
const HOST = ['test', '--quiet', '--locked', '--manifest-path', 'tests/component/Cargo.toml']

async function typescript(built) {
  await step('lint', () => run('npx', ['--no-install', 'biome', 'check', '.']))
  await build({ withComponent: isAll })
  built()
  if (isAll) {
    const clippy = ['clippy', '--locked', ...WASM, '--package', COMPONENT, '--', '-D', 'warnings']
    await step('component: clippy', () => run('cargo', clippy))
  }
  const remembers = ['--incremental', '--tsBuildInfoFile', 'target/types.tsbuildinfo']
  await step('types', () => run('npx', ['--no-install', 'tsc', '--noEmit', ...remembers]))
  // Most files wait for a server or a child now and then: a third keeps two cores busy.
  await tsx('TypeScript tests', files('tests/js', '.test.ts'), '--test-concurrency=3')
  await node('packed package', ['tests/package/packed.test.mjs'])
}

/** Installs npm's packages of other runtimes and of large clients: too large for the core. */
async function runtimes(folders = ['runtimes', 'clients']) {
  for (const folder of folders) {
    // Not `npm ci`: it refuses a lock file without the platform packages of Deno that some registries lack.
    const args = ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', `tests/${folder}`]
    await step(folder, () => run('npm', args))
  }
}

/** The tests that take real time, real processes or other runtimes. */
async function slow(fetched, compiled) {
  await fetched
  await tsx('slow tests', files('tests/slow', '.test.ts'), '--test-concurrency=2')
  await step('fuzz:command', () => run('npm', ['run', '--silent', 'fuzz:command']))
  await tsx('clients', files('tests/clients', '.test.mjs'))
  await node('shared limits', files('tests/shared', '.test.mjs'))
  await node('package', files('tests/package', '.test.mjs'), '--test-concurrency=2')
  await compiled
  await step('component', () => run('cargo', HOST))
  await fetchSite()
  await buildSite()
  await node('site in browsers', files('site/test', '.test.mjs'))
}

/** Everything about the Python package, once the component and what Node drives are there. */
async function python(isBuilt) {
  const version = 'import sys; sys.exit(0 if sys.version_info >= (3, 10) else 1)'
  if (capture('python3', ['-c', `import venv, ensurepip; ${version}`]) === undefined)
    throw new Error('Python 3.10 or newer is missing, or its venv')
  const check = 'python/scripts/check.py'
  await step('Python: set up and built', () => run('python3', [check, '--prepare']))
  await isBuilt
  await step('Python', () => run('python3', [check, '--prepared']))
}

async function core() {
  await together(
    inLane(rust),
    inLane(() => typescript(() => {})),
  )
  console.log(
    '\nThe core passed. npm run test:all is everything: bindings, shared limits, long plays, browsers, Python.',
  )
}

async function all() {
  const fetched = inLane(() => runtimes())
  const compiled = inLane(rust)
  let built
  const isBuilt = new Promise((resolve) => {
    built = resolve
  })
  const tested = inLane(async () => {
    await typescript(built)
    await slow(fetched, compiled)
  })
  await together(
    compiled,
    fetched,
    tested,
    inLane(() => python(isBuilt)),
  )
}

/** The rooms whose changes the tests of `stryker.config.json` must notice. */
const MUTATED = ['answers', 'base', 'core', 'fetch', 'scopes', 'throttle'].map((room) => `js/${room}`)

/** One after another: the reader of the morning's log wants each to the end. */
async function nightly() {
  await build()
  const night = Math.floor(Date.now() / 86_400_000)
  const many = { SEEDS: '10000', SOAK_HOURS: '10000', HOSTILE_TEXTS: '1000000' }
  const calls = { BOUNDARY_CALLS: '10000000', BOUNDARY_SEED: String(night) }
  const env = { ...process.env, ...many, ...calls }
  const seeds = ['test', '--locked', '--profile', 'checked', '--test', 'native', '--']
  const kept = ['sending_at_once', 'the_gap_stays_in_bounds', 'random_calls_break_no_promise']
  const played = ['reference', 'soak', 'hostile', ...kept]
  await step('native, many seeds', () => run('cargo', [...seeds, ...played], { env }))
  const fuzzed = [
    'run',
    '--silent',
    'fuzz:command',
    '--',
    '--seconds',
    '600',
    '--seed',
    String(10_000 * night),
  ]
  await step('fuzz:command, ten minutes', () => run('npm', fuzzed))
  const fuzzers = ['check', '--locked', '--manifest-path', 'tools/fuzz/Cargo.toml']
  await step('the targets of cargo-fuzz compile', () => run('cargo', fuzzers))
  await step('two builds, one hash', () => run('npm', ['run', '--silent', 'reproducible']))
  const shared = ['test', '--locked', '--release', '--package', 'autothrottle-shared', '--test', 'simulation']
  const group = { ...process.env, SEEDS: '100000', FROM: String(100_000 * night) }
  await step('shared limits, many seeds', () => run('cargo', shared, { env: group }))
  await step('Python, oldest versions', () => run('python3', ['python/scripts/check.py', '--oldest']))
  await step("Scrapy's own tests", () => run('python3', ['python/scripts/scrapy_suite.py']))
  await runtimes(['runtimes'])
  await node('types, older TypeScript too', ['tests/package/types.test.mjs'])
  // A hundredth of the engine's mutants and one room of TypeScript's each night: all of them take days.
  if (capture('cargo', ['mutants', '--version']) === undefined)
    throw new Error('cargo-mutants is missing: cargo install cargo-mutants --locked')
  const part = ['run', 'mutants', '--', '--shard', `${night % 100}/100`, '--output', 'target']
  await step('mutants of the engine', () => run('npm', part))
  const room = MUTATED[night % MUTATED.length]
  await step(`mutants of ${room}`, () =>
    run('npm', ['run', 'mutants:js', '--', '--mutate', `${room}/**/*.ts`]),
  )
}

const TIERS = { '--core': core, '--all': all, '--nightly': nightly }
await main(async () => {
  if (!TIERS[tier])
    throw new Error(`npm test takes no ${tier}; there is npm run test:all, npm run test:nightly`)
  await setUp()
  await TIERS[tier]()
})
