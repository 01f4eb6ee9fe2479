/**
 * Builds the package: Rust → WebAssembly → bindings in `pkg/` → TypeScript in `dist/`.
 *
 * Does all of its own set-up: the wasm target through rustup, npm's packages, the bindings generator of
 * exactly the locked version (a crate of this workspace). Steps whose inputs did not change are cheap or
 * skipped.
 */
import { createHash } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { component } from './component.mjs'
import { makeDist } from './dist.mjs'
import { buildWasm, capture, main, renew, root, run, step, WASM_OPT } from './lib.mjs'

export async function setUp() {
  for (const tool of ['rustc', 'rustup'])
    if (!capture(tool, ['--version']))
      throw new Error(`${tool} is missing: install Rust from https://rustup.rs`)
  const lock = `${root}/package-lock.json`
  const stamp = `${root}/node_modules/.package-lock.json`
  if (!existsSync(stamp) || statSync(stamp).mtimeMs < statSync(lock).mtimeMs) {
    await step('npm packages', () => run('npm', ['ci', '--no-audit', '--no-fund']))
  }
  if (!capture('rustup', ['target', 'list', '--installed'])?.includes('wasm32-unknown-unknown')) {
    await step('wasm target', () => run('rustup', ['target', 'add', 'wasm32-unknown-unknown']))
  }
}

/** The modules of the package: the engine, and with the engine inside the simulator and shared limits. */
const MODULES = [
  ['autothrottle', 'autothrottle-javascript', 'bindings/javascript'],
  ['simulator', 'autothrottle-simulator', 'bindings/simulator'],
  ['shared', 'autothrottle-shared-javascript', 'bindings/shared', 'shared/src'],
]

/** `withComponent`: it takes as long to compile as the rest, and only its own hosts ask for it. */
export async function build({ withComponent = true } = {}) {
  await setUp()
  const flags = ['Cargo.toml', 'Cargo.lock', 'scripts/build.mjs', 'scripts/lib.mjs']
  const all = ['src', 'reading', 'bindings/convert', 'xtask', ...flags]
  for (const [name, crate, ...own] of MODULES)
    await renew(`${root}/pkg/${name}.deflated.js`, [...all, ...own], async () => {
      const module = `${root}/pkg/${name}_bg.wasm`
      await step(`${name}: Rust`, () => buildWasm(['--locked', '--package', crate]))
      const compiled = `${root}/target/wasm32-unknown-unknown/wasm/${crate.replaceAll('-', '_')}.wasm`
      await step(`${name}: bindings`, () => run('cargo', ['xtask', 'bind', compiled, 'pkg', name]))
      fitBindings(name)
      await step(`${name}: wasm-opt`, () =>
        run('npx', ['--no-install', 'wasm-opt', ...WASM_OPT, module, '-o', module]),
      )
      sign(module)
      await inline(name, module)
    })
  await renew(`${root}/pkg/inflate.js`, all, inflater)
  for (const [what, file] of [
    ['options', `${root}/js/options/generated.ts`],
    ['records', `${root}/js/wasm/generated.ts`],
  ])
    await renew(file, all, () => step(`types: ${what}`, () => run('cargo', ['xtask', what, file])))
  storeScripts()
  provenance()
  await makeDist()
  if (withComponent) await component()
}

/** Writes the scripts of the store for `js/`, without comments; what several begin with, once. */
function storeScripts() {
  const text = readFileSync(`${root}/shared/src/store.rs`, 'utf8')
  const lua = (script, claim = '') => `\`${claim}${script.replaceAll(/^--.*\n|^ +/gm, '')}\`\n`
  const [, claim] = /concat!\(\s*r"([^"]*)"/.exec(text)
  const written = [...text.matchAll(/const (\w+): &str =\s*(publishing)?[^"]*"([^"]*)"/g)].map(
    ([, name, claims, script]) => `export const ${name} = ${lua(script, claims && `\${CLAIM}`)}`,
  )
  const head = '/** The scripts of the store: the build writes them from `shared/src/store.rs`. */\n'
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
  const isChanged =
    capture('git', [
      'status',
      '--porcelain',
      'src',
      'reading',
      'shared/src',
      'bindings',
      'Cargo.lock',
      'Cargo.toml',
    ]) !== ''
  const revision = commit ? commit + (isChanged ? '+' : '') : 'unknown'
  const modules = {}
  for (const [name] of MODULES) {
    const bytes = readFileSync(`${root}/pkg/${name}_bg.wasm`)
    modules[name] = createHash('sha256').update(bytes).digest('hex')
  }
  const types = '{ version: string; revision: string; modules: Record<string, string> }'
  const { autothrottle } = modules
  const [all, slim] = [modules, { autothrottle }].map((modules) =>
    JSON.stringify({ version, revision, modules }),
  )
  const made = {
    'build.d.ts': `export declare const build: ${types}, slim: typeof build\n`,
    'build.js': `export const build = ${all}\nexport const slim = ${slim}\n`,
  }
  for (const [name, text] of Object.entries(made)) writeNew(`${root}/pkg/${name}`, text)
}

/**
 * Makes the bindings fit for more hosts. Text is decoded and encoded by what is there at the first string,
 * not at import: jsdom has no `TextDecoder`, and there Node's own module has. And a module is a module
 * although it comes from another realm, as in edge functions of Next.js: we never give anything else.
 */
function fitBindings(name) {
  const file = `${root}/pkg/${name}.js`
  let code = readFileSync(file, 'utf8')
  const replace = (from, to) => {
    if (!code.includes(from)) throw new Error(`pkg/${name}.js: the bindings no longer say ${from}`)
    code = code.replaceAll(from, to)
  }
  replace(
    "let cachedTextDecoder = new TextDecoder('utf-8', { ignoreBOM: true });\ncachedTextDecoder.decode();\n",
    LAZY,
  )
  replace('return cachedTextDecoder.decode(bytes)', 'return textDecoder().decode(bytes)')
  const made = "cachedTextDecoder = new TextDecoder('utf-8', { ignoreBOM: true });"
  replace(`${made}\n        cachedTextDecoder.decode();`, 'cachedTextDecoder = undefined;')
  const asked = 'if (!(module instanceof WebAssembly.Module)) {\n'
  replace(`${asked}        module = new WebAssembly.Module(module);\n    }\n`, '')
  const checked = `    if (module !== undefined) {
        if (Object.getPrototypeOf(module) === Object.prototype) {
            ({module} = module)
        } else {
            console.warn('using deprecated parameters for \`initSync()\`; pass a single object instead')
        }
    }
`
  replace(checked, '    ({module} = module)\n')
  const grown = '.buffer.detached === undefined && cachedDataViewMemory0.buffer !== wasm.memory.buffer)'
  replace(`.buffer.detached === true || (cachedDataViewMemory0${grown}`, '.buffer.byteLength === 0')
  replace('__wbg_ptr', 'ptr')
  // All room comes from one place.
  code = code.replaceAll(/\b(pass\w+\([^()]*?), wasm\.\w+(?:, wasm\.\w+)?\)/g, '$1)')
  code = code.replaceAll(/(function pass\w+\(arg), malloc(?:, realloc)?\)/g, '$1)')
  code = code.replaceAll(/= (malloc|realloc)\(/g, '= wasm.__wbindgen_$1(')
  // Several results stand in the memory: one function reads them.
  const moved = 'wasm.__wbindgen_add_to_stack_pointer'
  const results = /(wasm\.\w+\(retptr\b.*\));\n((?: *var r\d = .*\n)+)/g
  code = code.replaceAll(`const retptr = ${moved}(-16) >>> 0;\n`, '').replaceAll(`${moved}(16);\n`, '')
  code = code.replaceAll(results, (_, call, read) => {
    const names = read.match(/\br\d/g).join(', ')
    return `const [${names}] = results(${call.replace('(retptr', '')};\n`
  })
  code = code.replaceAll(/^( *)try \{\n((?:\1 {4}.*\n| *\n)*)\1\} finally \{\n *\1\}\n/gm, '$2')
  code += RESULTS
  const { imports, exports } = shortenNames(`${root}/pkg/${name}_bg.wasm`)
  for (const [long, short] of imports) replace(`${long}:`, `${short}:`)
  const types = `${root}/pkg/${name}_bg.wasm.d.ts`
  let declared = readFileSync(types, 'utf8')
  for (const [long, short] of exports) {
    code = code.replaceAll(new RegExp(`\\bwasm\\.${long}\\b`, 'g'), `wasm.${short}`)
    declared = declared.replaceAll(new RegExp(`\\bconst ${long}\\b`, 'g'), `const ${short}`)
  }
  writeFileSync(types, declared)
  // The one error that the bindings throw by themselves: a call before never came back.
  replace('throw new Error(getStringFromWasm0', 'throw brokenOff(getStringFromWasm0')
  code += '\nlet brokenOff = (message) => new Error(message)\n'
  code += 'export function throwAs(make) {\n    brokenOff = make\n}\n'
  appendFileSync(`${root}/pkg/${name}.d.ts`, '\nexport function throwAs(make: () => Error): void;\n')
  // A wrong argument leaves no memory behind: what crosses is checked before.
  const undone =
    /let (ptr0, len0, ptr1, len1);\n( *)try \{\n((?:\2 {4}.*\n)*?)\2\} catch \(e\) \{\n(?:\2 {4}.*\n)*?\2\}\n/g
  code = code.replaceAll(undone, 'let $1;\n$3')
  // Each text comes with what makes its room larger; and `free` is called by its name.
  code = code.replace(/ {4}if \(realloc === undefined\) \{\n(?: {8}.*\n)*? {4}\}\n/, '')
  code = code.replaceAll(/if \(Symbol\.dispose\) \w+\.prototype\[Symbol\.dispose\] = .*\n/g, '')
  const start = code.indexOf('const cachedTextEncoder = new TextEncoder();')
  if (start >= 0) {
    const end = code.indexOf('let WASM_VECTOR_LEN')
    code = code.slice(0, start) + code.slice(end)
    code = code.replaceAll(/\bcachedTextEncoder\./g, 'textEncoder().')
  }
  writeFileSync(file, code)
}

/**
 * Names a module's imports `i0`, `i1` and so on, and its exports `e0`, `e1`, but for its memory: their own
 * names end in hashes or begin alike, and stand in the bindings once more. Gives what each was called and is
 * called now.
 */
function shortenNames(file) {
  const bytes = readFileSync(file)
  const compiled = new WebAssembly.Module(bytes)
  const short = (names, letter) => names.map(({ name }, index) => [name, letter + index])
  const imports = short(WebAssembly.Module.imports(compiled), 'i')
  const shown = WebAssembly.Module.exports(compiled).filter(({ kind }) => kind !== 'memory')
  const exports = short(shown, 'e')
  const said = (name) => String.fromCharCode(name.length) + name
  const [IMPORTS, EXPORTS] = [2, 7]
  const parts = [bytes.subarray(0, 8)]
  for (let at = 8; at < bytes.length; ) {
    const id = bytes[at++]
    let size = 0
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]
      size |= (byte & 127) << shift
      if (byte < 128) break
    }
    let section = bytes.subarray(at, at + size).toString('latin1')
    const pairs = id === IMPORTS ? imports : id === EXPORTS ? exports : []
    for (const [long, name] of pairs) section = section.replace(said(long), said(name))
    const length = [0, 7, 14, 21].map((shift) => ((section.length >> shift) & 127) | (shift < 21 ? 128 : 0))
    parts.push(Buffer.from([id, ...length]), Buffer.from(section, 'latin1'))
    at += size
  }
  writeFileSync(file, Buffer.concat(parts))
  return { imports, exports }
}

const LAZY = `let cachedTextDecoder;
const textDecoder = () =>
    (cachedTextDecoder ??= new (textClass('TextDecoder'))('utf-8', { ignoreBOM: true }));
let cachedTextEncoder;
const textEncoder = () => (cachedTextEncoder ??= new (textClass('TextEncoder'))());
const textClass = (name) => globalThis[name] ?? globalThis.process?.getBuiltinModule?.('util')[name];
`

const RESULTS = `
function results(call, ...given) {
    const at = wasm.__wbindgen_add_to_stack_pointer(-16) >>> 0;
    try {
        call(at, ...given);
        return [0, 4, 8].map((place) => getDataViewMemory0().getInt32(at + place, true));
    } finally {
        wasm.__wbindgen_add_to_stack_pointer(16);
    }
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
    logLevel: 'error',
  })
  const text = outputFiles[0].text.trim()
  // Its decoder of texts is none of ours.
  const decoder = /var \w+=typeof TextDecoder[^{}]*try\{\w+\.decode\(\w+,\{stream:!0\}\),\w+=1\}catch\{\}/
  const made = text.replace(decoder, '').replace(/export\{(\w+) as inflateSync\};?$/, 'return $1')
  if (!decoder.test(text) || made.includes('export')) throw new Error('esbuild exports in another form')
  const load = `function load() { ${made} }`
  const code = `${load}\nexport const inflate = (data, options) => load()(data, options)\n`
  writeFileSync(`${root}/pkg/inflate.js`, code)
  const types =
    'export declare function inflate(data: Uint8Array, options: { out: Uint8Array }): Uint8Array\n'
  writeFileSync(`${root}/pkg/inflate.d.ts`, types)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(build)
