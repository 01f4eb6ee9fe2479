/**
 * Builds the package: Rust → WebAssembly → bindings in `pkg/` → TypeScript in `dist/`.
 *
 * `--core` leaves the component out. Does all of its own set-up: the wasm target through rustup, npm's
 * packages, the bindings generator of exactly the locked version (a crate of this workspace). Steps whose
 * inputs did not change are cheap or skipped.
 */
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { component } from './component.mjs'
import { unshare } from './copies.mjs'
import { makeDist } from './dist.mjs'
import { buildWasm, capture, main, renew, root, run, step, WASM_OPT } from './lib.mjs'

export async function setUp() {
  for (const tool of ['rustc', 'rustup'])
    if (!capture(tool, ['--version']))
      throw new Error(`${tool} is missing: install Rust from https://rustup.rs`)
  const lock = `${root}/package-lock.json`
  const stamp = `${root}/node_modules/.package-lock.json`
  if (!existsSync(stamp) || statSync(stamp).mtimeMs < statSync(lock).mtimeMs)
    await step('npm packages', () => run('npm', ['ci', '--no-audit', '--no-fund']))
  if (!capture('rustup', ['target', 'list', '--installed'])?.includes('wasm32-unknown-unknown'))
    await step('wasm target', () => run('rustup', ['target', 'add', 'wasm32-unknown-unknown']))
}

/** The engine; with it inside, the simulator and shared limits; and what reads language models. */
const MODULES = [
  ['autothrottle', 'autothrottle-javascript', 'crates/bindings/javascript'],
  ['simulator', 'autothrottle-simulator', 'crates/bindings/simulator'],
  ['shared', 'autothrottle-shared-javascript', 'crates/bindings/shared', 'crates/shared/src'],
  ['llm', 'autothrottle-llm-javascript', 'crates/bindings/llm', 'crates/llm/src'],
]

/** The simulator answers no request: the engine in it is made as small as it gets. */
const SMALL = ['--config', 'profile.wasm.opt-level="z"']

/** `withComponent`: it takes as long to compile as the rest, and only its own hosts ask for it. */
export async function build({ withComponent = true } = {}) {
  await setUp()
  const scripts = ['build', 'copies', 'lib'].map((name) => `tools/scripts/${name}.mjs`)
  const flags = ['Cargo.toml', 'Cargo.lock', ...scripts]
  const all = ['src', 'crates/reading', 'crates/bindings/convert', 'tools/xtask', ...flags]
  for (const [name, crate, ...own] of MODULES)
    await renew(`${root}/pkg/${name}.deflated.js`, [...all, ...own], async () => {
      const module = `${root}/pkg/${name}_bg.wasm`
      await step(`${name}: Rust`, () =>
        buildWasm(['--locked', '--package', crate, ...(name === 'simulator' ? SMALL : [])]),
      )
      const compiled = `${root}/target/wasm32-unknown-unknown/wasm/${crate.replaceAll('-', '_')}.wasm`
      await step(`${name}: bindings`, () => run('cargo', ['xtask', 'bind', compiled, 'pkg', name]))
      await step(`${name}: wasm-opt`, async () => {
        if (name === 'autothrottle') await unshare(module)
        // Its imports and exports get names of one letter: their own stand in the bindings once more.
        const args = ['wasm-opt', ...WASM_OPT, '--minify-imports-and-exports-and-modules']
        const names = capture('npx', ['--no-install', ...args, module, '-o', module], 'inherit')
        fitBindings(name, JSON.parse(names))
      })
      sign(module)
      await inline(name, module)
    })
  await renew(`${root}/pkg/inflate.js`, all, inflater)
  for (const file of ['js/options/generated.ts', 'js/wasm/generated.ts'])
    await renew(`${root}/${file}`, all, () =>
      step(`types: ${file}`, () => run('cargo', ['xtask', 'write', file])),
    )
  storeScripts()
  provenance()
  await makeDist()
  if (withComponent) await component()
}

/** Writes the scripts and words of the store for `js/`, without comments; what several begin with, once. */
function storeScripts() {
  const text = readFileSync(`${root}/crates/shared/src/store.rs`, 'utf8')
  const lua = (script, claim = '') => `\`${claim}${script.replaceAll(/^--.*\n|^ +/gm, '')}\`\n`
  const [, claim] = /concat!\(\s*r"([^"]*)"/.exec(text)
  const written = [...text.matchAll(/const (\w+): &str =\s*(publishing)?[^"]*"([^"]*)"/g)].map(
    ([, name, claims, script]) => `export const ${name} = ${lua(script, claims && `\${CLAIM}`)}`,
  )
  const head =
    '/** The scripts and words of the store: the build writes them from `crates/shared/src/store.rs`. */\n'
  writeNew(`${root}/js/shared/redis/scripts.ts`, `${head}const CLAIM = ${lua(claim)}${written.join('')}`)
}

/** Only what is new: `dist/` is made anew when a file that it is made of is. */
function writeNew(file, text) {
  if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text)
}

/** Writes where the modules come from; `build` of the package says it. */
function provenance() {
  const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'))
  const commit = capture('git', ['rev-parse', 'HEAD'])?.trim()
  const sources = 'src crates Cargo.lock Cargo.toml'.split(' ')
  const isChanged = capture('git', ['status', '--porcelain', ...sources]) !== ''
  const revision = commit ? commit + (isChanged ? '+' : '') : 'unknown'
  const hash = (name) =>
    createHash('sha256')
      .update(readFileSync(`${root}/pkg/${name}_bg.wasm`))
      .digest('hex')
  const modules = Object.fromEntries(MODULES.map(([name]) => [name, hash(name)]))
  const types = '{ version: string; revision: string; modules: Record<string, string> }'
  const build = (modules) => JSON.stringify({ version, revision, modules })
  const slim = build({ autothrottle: modules.autothrottle })
  writeNew(`${root}/pkg/build.d.ts`, `export declare const build: ${types}, slim: typeof build\n`)
  writeNew(`${root}/pkg/build.js`, `export const build = ${build(modules)}\nexport const slim = ${slim}\n`)
}

/**
 * Makes the bindings fit for more hosts. Text is decoded and encoded by what is there at the first string,
 * not at import: jsdom has no `TextDecoder`, and there Node's own module has. Other code that runs at import
 * is removed: bundlers keep it with all that it names. A module is one although it comes from another realm,
 * as in edge functions of Next.js: we never give anything else. Text always has what makes its room larger.
 * And the error of a call within a call is ours.
 *
 * @param names what wasm-opt calls the module's imports and exports now.
 */
function fitBindings(name, names) {
  const file = `${root}/pkg/${name}.js`
  let code = readFileSync(file, 'utf8')
  const replace = (from, to) => {
    const before = code
    code = code.replaceAll(from, to)
    if (code === before) throw new Error(`pkg/${name}.js: the bindings no longer say ${from}`)
  }
  replace("new TextDecoder('utf-8', { ignoreBOM: true })", '{ decode }')
  replace('new TextEncoder()', '{ encodeInto }')
  const atImport = ['cachedTextDecoder.decode.*', 'if \\(Symbol.dispose.*', "if \\(!\\('encodeInto'[^]*?^}"]
  replace(new RegExp(`^ *(?:${atImport.join('|')})\n`, 'gm'), '')
  replace('!(module instanceof WebAssembly.Module)', 'false')
  replace('Object.getPrototypeOf(module) === Object.prototype', 'true')
  replace('realloc === undefined', 'false')
  replace('throw new Error(getStringFromWasm0', 'throw brokenOff(getStringFromWasm0')
  for (const [module, long, short] of names.imports) {
    replace(`${long}:`, `${short}:`)
    code = code.replace(`"${module}":`, 'a:')
  }
  const exported = new Map(names.exports)
  replace(/\bwasm\.(\w+)/g, (_, long) => `wasm.${exported.get(long)}`)
  writeFileSync(file, FITTING + code)
  appendFileSync(`${root}/pkg/${name}.d.ts`, '\nexport function throwAs(make: () => Error): void;\n')
}

const FITTING = `const textClass = (name) => globalThis[name] ?? globalThis.process?.getBuiltinModule?.('util')[name];
function decode(bytes) {
    return (this.coder ??= new (textClass('TextDecoder'))('utf-8', { ignoreBOM: true })).decode(bytes);
}
function encodeInto(text, view) {
    return (this.coder ??= new (textClass('TextEncoder'))()).encodeInto(text, view);
}
let brokenOff = (message) => new Error(message);
export function throwAs(make) {
    brokenOff = make;
}
`

/** Writes the release into a section of its own: `initialize` refuses the module of another one. */
function sign(module) {
  const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'))
  const named = Buffer.from(`\x0cautothrottle${version}`)
  const bytes = Buffer.concat([readFileSync(module), Buffer.from([0, named.length]), named])
  writeFileSync(module, bytes)
}

/**
 * The module deflated, inside a JavaScript file: the one way of shipping bytes that every runtime and bundler
 * knows. It is deflated before it is base64, since no server can compress base64 well. zopfli takes two
 * seconds and saves six kilobytes; all that inflates reads it.
 */
async function inline(name, module) {
  const file = `${root}/target/${name}.deflated`
  await run('cargo', ['xtask', 'deflate', module, file])
  const [bytes, deflated] = [module, file].map((path) => readFileSync(path))
  const types = 'declare const deflated: { length: number; base64: string }\nexport default deflated\n'
  writeFileSync(`${root}/pkg/${name}.deflated.d.ts`, types)
  const code = `export default { length: ${bytes.length}, base64: '${deflated.toString('base64')}' }\n`
  writeFileSync(`${root}/pkg/${name}.deflated.js`, code)
  console.log(`  ${name}: ${bytes.length} bytes, ${deflated.length} deflated`)
}

/**
 * The way back where there is no zlib (pages, Node before 20.16): fflate's inflate. It makes its tables when
 * it is loaded, which takes longer than the rest of our code together: so it is loaded by the first call.
 */
async function inflater() {
  const { build } = await import('esbuild')
  const contents = "export { inflateSync } from 'fflate'"
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: root },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    conditions: ['browser'],
    platform: 'browser',
    target: 'es2022',
    // Its decoder of texts is none of ours.
    define: { TextDecoder: 'undefined' },
    logLevel: 'error',
  })
  const made = outputFiles[0].text.trim().replace(/export\{(\w+) as inflateSync\};?$/, 'return $1')
  if (made.includes('export')) throw new Error('esbuild exports in another form')
  const load = `function load() { ${made} }`
  const code = `${load}\nexport const inflate = (data, options) => load()(data, options)\n`
  writeFileSync(`${root}/pkg/inflate.js`, code)
  const types = 'inflate(data: Uint8Array, options: { out: Uint8Array }): Uint8Array'
  writeFileSync(`${root}/pkg/inflate.d.ts`, `export declare function ${types}\n`)
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  await main(() => build({ withComponent: !process.argv.includes('--core') }))
