/**
 * Builds the package: Rust → WebAssembly → bindings in `pkg/` → TypeScript in `dist/`.
 *
 * Does all of its own set-up: the wasm target through rustup, npm's packages, the bindings generator of exactly
 * the locked version (a crate of this workspace). Steps whose inputs did not change are cheap or skipped.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { capture, newest, root, run, step } from './lib.mjs'

export async function setUp() {
  if (!capture('rustc', ['--version'])) throw new Error('Rust is not installed: see https://rustup.rs')
  const lock = `${root}/package-lock.json`
  const stamp = `${root}/node_modules/.package-lock.json`
  if (!existsSync(stamp) || statSync(stamp).mtimeMs < statSync(lock).mtimeMs) {
    await step('npm packages', () => run('npm', ['ci', '--no-audit', '--no-fund']))
  }
  if (!capture('rustup', ['target', 'list', '--installed'])?.includes('wasm32-unknown-unknown')) {
    await step('wasm target', () => run('rustup', ['target', 'add', 'wasm32-unknown-unknown']))
  }
}

/** The modules of the package: the engine, and the simulator with the engine inside. */
const MODULES = [
  ['autothrottle', []],
  ['simulator', ['--features', 'simulator']],
]

export async function build() {
  await setUp()
  const inputs = newest(['src', 'xtask', 'Cargo.toml', 'Cargo.lock', 'scripts'])
  for (const [name, features] of MODULES) {
    const module = `${root}/pkg/${name}_bg.wasm`
    if (existsSync(`${module}.base64.js`) && statSync(`${module}.base64.js`).mtimeMs >= inputs) continue
    const target = `${root}/target/${name}`
    const flags = ['--locked', '--release', '--target', 'wasm32-unknown-unknown', '--lib']
    await step(`${name}: Rust`, () => run('cargo', ['build', ...flags, '--target-dir', target, ...features]))
    const compiled = `${target}/wasm32-unknown-unknown/release/autothrottle.wasm`
    await step(`${name}: bindings`, () => run('cargo', ['xtask', compiled, 'pkg', name]))
    await step(`${name}: wasm-opt`, () => optimise(module))
    inline(module)
  }
  await step('types and code', () => {
    rmSync(`${root}/dist`, { recursive: true, force: true })
    mkdirSync(`${root}/dist`)
    return run('npx', ['--no-install', 'tsc', '-p', 'tsconfig.build.json'])
  })
}

function optimise(module) {
  const features = [
    '--enable-bulk-memory',
    '--enable-nontrapping-float-to-int',
    '--enable-sign-ext',
    '--enable-mutable-globals',
    '--enable-reference-types',
    '--enable-multivalue',
  ]
  const flags = ['-O3', '--strip-debug', '--strip-producers', '--strip-target-features', ...features]
  return run('npx', ['--no-install', 'wasm-opt', ...flags, module, '-o', module])
}

/** The module as a JavaScript file: the one way of shipping bytes that every runtime and bundler knows. */
function inline(module) {
  const bytes = readFileSync(module)
  writeFileSync(`${module}.base64.d.ts`, 'declare const base64: string\nexport default base64\n')
  writeFileSync(`${module}.base64.js`, `export default '${bytes.toString('base64')}'\n`)
  console.log(`  module: ${bytes.length} bytes, ${gzipSync(bytes, { level: 9 }).length} gzipped`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await build()
