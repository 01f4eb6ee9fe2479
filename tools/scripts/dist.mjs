/**
 * TypeScript → `dist/`: plain modules with relative imports, which a page can load without a bundler; the
 * same code in CommonJS; declarations.
 *
 * All ES modules share one copy of the code. Runtimes differ in the module that brings the WebAssembly, so an
 * entry that needs it is two lines: `import './module.js'`, which gives it, and the code.
 *
 * A Worker carries the module once, as one it can compile. Jest and older Nodes cannot `require` ES modules.
 * A program that gets the package both ways would have two of each class.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { declarations } from './declarations.mjs'
import { newest, root, run, step } from './lib.mjs'

const dist = `${root}/dist`
/** Entries that bring modules of WebAssembly, and which. */
const BRINGING = {
  ...{ index: ['engine'], engine: ['engine'], undici: ['engine'] },
  ...{ simulate: ['simulator'], local: ['shared'], redis: ['shared'], llm: ['llm'] },
}
/** No Worker has undici, or sockets of its machine. `simulate` is for our site; the package leaves it out. */
const { undici: _, local: __, ...EDGE } = BRINGING
/** A simulation may begin three milliseconds later. */
const { simulate: ___, ...NODES } = BRINGING
/** Entries that are the same everywhere: the other files of `js/`; `durable-object` is for Workers alone. */
const PLAIN = readdirSync(`${root}/js`)
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.slice(0, -3))
  .filter((name) => !(name in BRINGING) && name !== 'durable-object')
const fileOf = (name) => `../../pkg/${name === 'engine' ? 'autothrottle' : name}_bg.wasm`
/** Code that brings a module, by folder: ARCHITECTURE.md has the reason of each. */
const FOLDERS = {
  '': {
    bringing: BRINGING,
    source: (name) => `import { ${name}Module as source } from './js/wasm/load/${name}-module.ts'`,
  },
  // Bundles, which have no file beside them, take the folder above (condition `module`). An import of
  // `node:fs` asks it for all that it exports, streams as well: two milliseconds.
  'node/': {
    bringing: NODES,
    source: (name) => `
      import { createRequire } from 'node:module'
      const source = () =>
        (process.getBuiltinModule ?? createRequire(import.meta.url))('node:fs').readFileSync(
          new URL('${fileOf(name)}', import.meta.url))`,
  },
  // Compiled at deployment: Workers and edge functions cannot compile bytes.
  'edge/': {
    bringing: { ...EDGE, 'durable-object': ['engine', 'shared'] },
    source: (name) => `
      import compiled from '${fileOf(name)}?module'
      const source = () => compiled`,
  },
}
/** The modules of the code, which an entry brings. */
const NONE = `
  import { NotInitializedError } from './js/base/errors.ts'
  const none = () => { throw new NotInitializedError() }
  export { none as engineModule, none as simulatorModule, none as sharedModule, none as llmModule }`

/**
 * The module that looks for the end of a program: not pages that count bytes, nor Workers, which have none.
 */
const EXIT = `
  export let watchExit = () => {}
  export const giveExit = (watch) => { watchExit = watch }`
const EXITING = ['index', 'undici', 'local', 'redis']
/** In Node it comes with the module. It is therefore there twice, in no chunk. */
const givesExit = (folder) => `
  import 'whole'
  import { giveExit } from './js/core/at-exit.js'
  import { watchExit } from './js/core/at-exit.ts?${folder}'
  giveExit(watchExit)`

/** In Node the main entry brings the engine itself: each file takes a millisecond. */
const isInIndex = (folder, module) => folder === 'node/' && module === 'engine'
const bringer = (folder, module) => (isInIndex(folder, module) ? 'index' : `${module}-module`)

/** Makes `dist/`, if anything that it comes from has changed. */
export async function makeDist() {
  // Not in `dist/`: it is a time, and two builds would differ in it.
  const stamp = `${root}/target/dist.stamp`
  const inputs = [
    'js',
    'pkg',
    'tools/scripts/dist.mjs',
    'tools/scripts/declarations.mjs',
    'tsconfig.json',
    'tsconfig.build.json',
    'jsr.json',
  ]
  const made = existsSync(`${dist}/index.js`) && existsSync(stamp) ? Number(readFileSync(stamp, 'utf8')) : 0
  const inputsAt = newest(inputs)
  if (made === inputsAt) return
  await step('types and code', async () => {
    rmSync(dist, { recursive: true, force: true })
    mkdirSync(dist)
    await run('npx', ['--no-install', 'tsc', '-p', 'tsconfig.build.json', '--emitDeclarationOnly'])
    await Promise.all([esModules(), commonJs(), command()])
    await declarations(dist, [...Object.keys(BRINGING), ...PLAIN, 'durable-object'])
    typesForJsr()
  })
  mkdirSync(`${root}/target`, { recursive: true })
  writeFileSync(stamp, String(inputsAt))
}

/** The common options of all bundles of entries. */
const COMMON = {
  bundle: true,
  splitting: true,
  chunkNames: 'shared-[hash]',
  metafile: true,
  write: false,
  format: 'esm',
  platform: 'neutral',
  packages: 'external',
  target: 'es2022',
  logLevel: 'error',
}

/**
 * Each entry imports the main one too, so that all they share is one file: a runtime that reads modules from
 * a disk needs a millisecond and more for each, and entries are used together. A bundler drops that import.
 */
const whole = {
  name: 'whole',
  setup(build) {
    build.onResolve({ filter: /^whole$/ }, () => ({ path: `${root}/js/index.ts`, sideEffects: true }))
    const entries = [...Object.keys(BRINGING), ...PLAIN].filter((entry) => entry !== 'index').join('|')
    const isEntry = new RegExp(`[\\\\/]js[\\\\/](?:${entries}|durable-object)\\.ts$`)
    build.onLoad({ filter: /[\\/](?:js|pkg)[\\/].*\.[jt]s$/ }, async ({ path }) => {
      const text = `${readFileSync(path, 'utf8')}${isEntry.test(path) ? "\nimport 'whole'\n" : ''}`
      return { contents: await bare(build, text, path.slice(-2)), loader: 'js' }
    })
  },
}

/** Without comments: esbuild keeps those of a class's members, a fifth of what a runtime would read. */
async function bare({ esbuild }, contents, loader) {
  const tsconfigRaw = { compilerOptions: { verbatimModuleSyntax: true, useDefineForClassFields: false } }
  const options = { loader, minifyWhitespace: true, target: COMMON.target, tsconfigRaw }
  return (await esbuild.transform(contents, options)).code
}

/** Entries of all folders over the chunks that they share. */
async function esModules() {
  // Not at the top: a fresh clone gets its packages from the step before.
  const { build: bundle } = await import('esbuild')
  const made = {}
  for (const [folder, { source, bringing }] of Object.entries(FOLDERS)) {
    for (const [entry, modules] of Object.entries(bringing)) {
      const exit = folder === '' && EXITING.includes(entry) ? ['exit'] : []
      made[`${folder}${entry}`] = `
        ${[...exit, ...modules].map((module) => `import './${bringer(folder, module)}.js'`).join('\n')}
        import 'whole'
        export * from './js/${entry}.ts'`
      for (const module of modules)
        made[`${folder}${bringer(folder, module)}`] = `
        ${isInIndex(folder, module) ? `${givesExit('node')}\nexport * from './js/index.ts'` : "import 'whole'"}
        import { setModuleSource } from './js/wasm/load/module-source.ts'
        ${source(module)}
        setModuleSource('${module}', source)`
    }
  }
  made['exit-module'] = givesExit('')
  const entryPoints = PLAIN.map((entry) => ({ in: `${root}/js/${entry}.ts`, out: entry }))
  for (const name of Object.keys(made)) entryPoints.push({ in: `made:${name}`, out: name })
  Object.assign(made, { none: NONE, exit: EXIT })
  const plugin = {
    name: 'entries',
    setup(build) {
      build.onResolve({ filter: /^made:/ }, ({ path }) => ({ path: path.slice(5), namespace: 'made' }))
      build.onLoad({ filter: /./, namespace: 'made' }, ({ path }) => ({
        contents: made[path],
        loader: 'ts',
        resolveDir: root,
      }))
      build.onResolve({ filter: /^\.\/index\.js$/, namespace: 'made' }, ({ path }) => ({
        path,
        external: true,
        sideEffects: true,
      }))
      // From an entry it is the file beside; from the code there is none.
      build.onResolve({ filter: /-module\.js$/ }, ({ path, namespace }) =>
        namespace === 'made'
          ? { path, external: true, sideEffects: true }
          : { path: 'none', namespace: 'made', sideEffects: false },
      )
      build.onResolve({ filter: /\/at-exit\.js$/ }, () => ({ path: 'exit', namespace: 'made' }))
      build.onResolve({ filter: /\/at-exit\.ts\?/ }, ({ path }) => {
        const [, suffix] = path.split('.ts')
        return { path: `${root}/js/core/at-exit.ts`, suffix }
      })
      build.onResolve({ filter: /\.wasm\?module$/ }, ({ path }) => ({ path, external: true }))
    },
  }
  const options = { ...COMMON, entryPoints, outdir: dist, plugins: [plugin, whole] }
  await write(await bundle(options), 'esm')
}

/**
 * Writes a bundle. Each chunk is called after the largest file in it: then its ES module and its CommonJS lie
 * side by side in the package, where gzip finds the one in the other. By their hashes it is 8 kB up or down.
 * Lines stay, since Node prints that of an error. They begin without blanks, a hundredth of the package.
 */
async function write({ metafile, outputFiles }, format) {
  const { transform } = await import('esbuild')
  const names = new Map()
  for (const [path, { entryPoint, inputs }] of Object.entries(metafile.outputs)) {
    const [largest] = Object.keys(inputs).sort((a, b) => inputs[b].bytesInOutput - inputs[a].bytesInOutput)
    const name = basename(path)
    names.set(name, entryPoint ? name : `shared-${basename(largest).split('.')[0]}.js`)
  }
  if (new Set(names.values()).size < names.size) throw new Error(`Two files have one name: ${[...names]}`)
  const rename = (text) => text.replaceAll(/\bshared-[A-Z\d]{8}\.js/g, (name) => names.get(name))
  for (const { path, text } of outputFiles) {
    mkdirSync(dirname(path), { recursive: true })
    const { code: long } = await transform(text, { format, target: COMMON.target })
    const code = await short(long)
    const flat = code.replaceAll(/^ +/gm, '')
    const [one, other] = await Promise.all(
      [code, flat].map((of) => transform(of, { minifyWhitespace: true })),
    )
    if (one.code !== other.code) throw new Error(`${path}: a text in it has blanks at the start of a line`)
    writeFileSync(rename(path), rename(flat))
  }
}

/**
 * The code with short names inside its functions: a ninth of what a runtime reads. Functions and classes keep
 * theirs, which an error's stack shows. esbuild renames at the top only what it knows to be a module, so what
 * makes it one stands aside meanwhile; what it names there is unknown then, and no short name is one of them.
 */
async function short(code) {
  const { transform } = await import('esbuild')
  const statements = code.match(MODULE) ?? []
  const script = code.replaceAll(MODULE, '')
  const made = await transform(script, { minifyIdentifiers: true, minifySyntax: true, target: COMMON.target })
  const isImport = (statement) => statement.startsWith('import')
  const [above, below] = [statements.filter(isImport), statements.filter((each) => !isImport(each))]
  return `${[...above, made.code.trimEnd(), ...below].join('\n')}\n`
}

/** A statement that makes a file of esbuild a module. */
const MODULE = /^(?:import|export)\b[^;]*;$/gm

const besideOf = (name) => `
  import { readFileSync } from 'node:fs'
  export const ${name}Module = () => readFileSync(\`\${__dirname}/${fileOf(name)}\`)`

/** The simulator is in the package once, in an ES module: CommonJS reads it there, as text. */
const SIMULATOR = `
  import { readFileSync } from 'node:fs'
  import { inflateRawSync } from 'node:zlib'
  const data = /base64: *["']([^"']+)/
  export const simulatorModule = () => {
    const [, base64] = data.exec(readFileSync(\`\${__dirname}/../simulator-module.js\`, 'utf8'))
    return inflateRawSync(Buffer.from(base64, 'base64'))
  }`

/** All entries but for Workers', in CommonJS: the module is the file beside. */
async function commonJs() {
  const { build: bundle } = await import('esbuild')
  const entries = [...Object.keys(BRINGING), ...PLAIN]
  const plugin = {
    name: 'file beside',
    setup(build) {
      build.onResolve({ filter: /-module\.js$/ }, ({ path }) => ({
        path: basename(path, '-module.js'),
        namespace: 'beside',
      }))
      build.onLoad({ filter: /./, namespace: 'beside' }, ({ path }) => ({
        contents: path === 'simulator' ? SIMULATOR : besideOf(path),
        resolveDir: root,
      }))
    },
  }
  const made = await bundle({
    ...COMMON,
    entryPoints: entries.map((entry) => `${root}/js/${entry}.ts`),
    outdir: `${dist}/cjs`,
    external: ['node:fs', 'node:zlib'],
    plugins: [plugin, whole],
  })
  await write(made, 'cjs')
  writeFileSync(`${dist}/cjs/package.json`, '{ "type": "commonjs" }\n')
}

/**
 * The command, in one file of its own package: it imports ours as a program of yours would, and what reads
 * HTML and robots.txt travels along. Our `bin` starts it where it is installed. The clone has it in a
 * folder of `dist/`, since a file finds the package that it lies in by its name.
 */
async function command() {
  await program('start', `${dist}/bin.js`)
  await program('bin', `${dist}/cli/bin.js`)
}

async function program(source, outfile) {
  const { build: bundle } = await import('esbuild')
  await bundle({
    entryPoints: [`${root}/js/command/${source}.ts`],
    outfile,
    banner: { js: '#!/usr/bin/env node' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    external: ['autothrottle', 'autothrottle/*', 'warcio'],
    minify: true,
    // Its paths are for the sources: the bundle wants the package.
    tsconfigRaw: '{}',
    target: 'node20',
    logLevel: 'error',
  })
  chmodSync(outfile, 0o755)
}

/** Tells JSR, and no other reader, where the types of its entries are, and which entries it leaves out. */
function typesForJsr() {
  const jsr = JSON.parse(readFileSync(`${root}/jsr.json`, 'utf8'))
  const { exports } = jsr
  const own = Object.values(exports).map((path) => basename(path, '.js'))
  const others = [...Object.keys(BRINGING), ...PLAIN, 'durable-object'].filter((name) => !own.includes(name))
  const entries = others.toSorted().map((name) => `dist/${name}.*`)
  const { include, exclude } = jsr.publish
  const isEntry = (path) => /^dist\/[\w-]+\.\*$/.test(path)
  const publish = { include, exclude: [...exclude.filter((path) => !isEntry(path)), ...entries] }
  const written = `${JSON.stringify({ ...jsr, publish }, undefined, 2)}\n`
  if (written !== readFileSync(`${root}/jsr.json`, 'utf8')) writeFileSync(`${root}/jsr.json`, written)
  for (const path of Object.values(exports)) {
    const types = path.replace(/.*\//, './cjs/').replace(/\.js$/, '.d.ts')
    const file = `${root}/${path}`
    writeFileSync(file, `/* @ts-self-types="${types}" */ ${readFileSync(file, 'utf8')}`)
  }
}
