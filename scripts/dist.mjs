/**
 * TypeScript → `dist/`: plain modules with relative imports, which a page can load without a bundler, and
 * three variants of them for those who cannot use these.
 *
 * The traps: a Worker that carries the module twice, as bytes it cannot compile and as the module it can;
 * Jest and older Nodes, which cannot `require` ES modules; a program that gets the package both ways and then
 * has two of each class. So a variant has all entries, and its entries share their chunks.
 */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { newest, root, run, step } from './lib.mjs'

const dist = `${root}/dist`
const ENTRIES = [
  ...['index', 'engine', 'domains', 'robots', 'simulate', 'testing'],
  ...['undici', 'got', 'axios', 'crawlee', 'playwright'],
  ...['local', 'redis', 'durable-object'],
]

/**
 * What package.json's conditions choose; `workerd` and `edge-light` import the module instead of its bytes,
 * `node` reads the file beside.
 */
const VARIANTS = { workerd: 'esm', 'edge-light': 'esm', node: 'esm', cjs: 'cjs' }

/** Makes `dist/`, if anything that it comes from has changed. */
export async function makeDist() {
  // Not in `dist/`: it is a time, and two builds would differ in it.
  const stamp = `${root}/target/dist.stamp`
  const inputs = ['js', 'pkg', 'scripts/dist.mjs', 'tsconfig.json', 'tsconfig.build.json', 'jsr.json']
  const made = existsSync(`${dist}/index.js`) && existsSync(stamp) ? Number(readFileSync(stamp, 'utf8')) : 0
  const inputsAt = newest(inputs)
  if (made === inputsAt) return
  await step('types and code', async () => {
    rmSync(dist, { recursive: true, force: true })
    mkdirSync(dist)
    await run('npx', ['--no-install', 'tsc', '-p', 'tsconfig.build.json'])
    declarePlatform()
    await together()
    await command()
    await Promise.all(Object.entries(VARIANTS).map(([name, format]) => variant(name, format)))
    typesForCommonJs()
    typesForJsr()
  })
  mkdirSync(`${root}/target`, { recursive: true })
  writeFileSync(stamp, String(inputsAt))
}

/**
 * The entries and the chunks that they share, in place of sixty modules: a runtime that reads each by
 * itself took longer for that than for all the rest up to the first permit. The deflated module stays a file
 * of its own.
 */
async function together() {
  const { build: bundle } = await import('esbuild')
  for (const path of readdirSync(dist, { recursive: true }))
    if (/\.js(?:\.map)?$/.test(path)) rmSync(join(dist, path))
  await bundle({
    entryPoints: ENTRIES.map((entry) => `${root}/js/${entry}.ts`),
    outdir: dist,
    chunkNames: 'shared-[hash]',
    bundle: true,
    splitting: true,
    sourcemap: 'linked',
    format: 'esm',
    platform: 'neutral',
    packages: 'external',
    target: 'es2022',
    plugins: [deflated('../pkg')],
    logLevel: 'error',
  })
}

/**
 * Each entry with the main one, so that all they share is one file: a runtime that reads modules from a disk
 * needs a millisecond and more for each, and entries are used together.
 */
function whole() {
  const main = `${root}/js/index.ts`
  const entries = ENTRIES.filter((entry) => entry !== 'index').join('|')
  return {
    name: 'whole',
    setup(build) {
      build.onResolve({ filter: /^whole$/ }, () => ({ path: main, sideEffects: true }))
      build.onLoad({ filter: new RegExp(`/js/(?:${entries})\\.ts$`) }, ({ path }) => ({
        contents: `${readFileSync(path, 'utf8')}\nimport 'whole'\n`,
        loader: 'ts',
      }))
    },
  }
}

/** Leaves deflated modules files of their own. */
function deflated(folder) {
  return {
    name: 'deflated',
    setup(build) {
      build.onResolve({ filter: /\.deflated\.js$/ }, ({ path }) => ({
        path: `${folder}/${basename(path)}`,
        external: true,
      }))
    },
  }
}

/**
 * The command, in one file: the package is imported as anybody would import it, and what reads HTML and
 * robots.txt travels along, since npx installs the package alone.
 */
async function command() {
  const { build: bundle } = await import('esbuild')
  await bundle({
    entryPoints: [`${root}/js/command/bin.ts`],
    outfile: `${dist}/bin.js`,
    banner: { js: '#!/usr/bin/env node' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    external: ['autothrottle', 'autothrottle/*', 'warcio'],
    // Its paths are for the sources: the bundle wants the package.
    tsconfigRaw: '{}',
    target: 'node20',
    logLevel: 'error',
  })
  chmodSync(`${dist}/bin.js`, 0o755)
}

/** All entries again, for one condition; straight from the sources. */
async function variant(name, format) {
  // Not at the top: a fresh clone gets its packages from the step before.
  const { build: bundle, transform } = await import('esbuild')
  const { outputFiles } = await bundle({
    entryPoints: ENTRIES.map((entry) => `${root}/js/${entry}.ts`),
    outdir: `${dist}/${name}`,
    chunkNames: 'shared-[hash]',
    bundle: true,
    splitting: true,
    write: false,
    format: 'esm',
    platform: 'neutral',
    packages: 'external',
    target: 'es2022',
    plugins:
      format === 'cjs'
        ? [swap(name), whole()]
        : [swap(name), deflated('../../pkg'), ...(name === 'node' ? [whole()] : [])],
    logLevel: 'error',
  })
  mkdirSync(`${dist}/${name}`)
  for (const { path, text } of outputFiles) {
    const { code } =
      format === 'cjs' ? await transform(text, { format: 'cjs', target: 'es2022' }) : { code: text }
    writeFileSync(path, code)
  }
}

/**
 * Takes `NAME.VARIANT.ts` in place of `NAME.ts` where there is one; leaves modules of WebAssembly to the
 * user's bundler.
 */
function swap(variant) {
  return {
    name: 'variant',
    setup(build) {
      build.onResolve({ filter: /-module\.js$/ }, ({ path, resolveDir }) => {
        const other = resolve(resolveDir, path.replace(/\.js$/, `.${variant}.ts`))
        return existsSync(other) ? { path: other } : undefined
      })
      build.onResolve({ filter: /\.wasm(\?module)?$/ }, ({ path }) => ({
        path: `../../pkg/${basename(path)}`,
        external: true,
      }))
    },
  }
}

/**
 * Declarations take the platform's types from `core/platform.ts`, and say which library declares
 * `Symbol.dispose`: a compiler may know neither.
 */
function declarePlatform() {
  const platform = readFileSync(`${root}/js/core/platform.ts`, 'utf8')
  const names = [...platform.matchAll(/^export (?:type|declare const) (\w+)/gm)].map(([, name]) => name)
  for (const path of declarations()) {
    if (path === 'core/platform.d.ts') continue
    const text = readFileSync(join(dist, path), 'utf8')
    const code = text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
    const used = [...new Set(names)].filter((name) => new RegExp(`\\b${name}\\b`).test(code))
    const away = relative(dirname(join(dist, path)), `${dist}/core/platform.js`)
    const from = away.startsWith('.') ? away : `./${away}`
    const disposable = /Symbol\.(?:asyncD|d)ispose/.test(code)
      ? '/// <reference lib="esnext.disposable" />\n'
      : ''
    const imported = used.length > 0 ? `import { ${used.join(', ')} } from '${from}';\n` : ''
    writeFileSync(join(dist, path), disposable + imported + text)
  }
}

/** The declarations again, in a folder that says it is CommonJS. */
function typesForCommonJs() {
  for (const path of declarations()) {
    const copy = join(dist, 'cjs', path)
    mkdirSync(dirname(copy), { recursive: true })
    copyFileSync(join(dist, path), copy)
  }
  writeFileSync(`${dist}/cjs/package.json`, '{ "type": "commonjs" }\n')
}

function declarations() {
  return readdirSync(dist, { recursive: true }).filter(
    (path) => path.endsWith('.d.ts') && !path.startsWith('cjs'),
  )
}

/** Tells JSR where the types of its entries are; others do not look. */
function typesForJsr() {
  const { exports } = JSON.parse(readFileSync(`${root}/jsr.json`, 'utf8'))
  for (const path of Object.values(exports)) {
    const types = path.replace(/.*\//, './').replace(/\.js$/, '.d.ts')
    const file = `${root}/${path}`
    writeFileSync(file, `/* @ts-self-types="${types}" */ ${readFileSync(file, 'utf8')}`)
  }
}
