/**
 * The bytes that each entry costs a user who bundles it: JavaScript and WebAssembly, minified and gzipped.
 */
import { readdirSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

/** Packages that are not counted: peers. */
const EXTERNAL = ['tldts', 'robots-parser', 'undici', '@opentelemetry/api', 'node:*']

/** Bytes of what `code` needs, as a browser would load it. */
export async function sizeOf(code, options = {}) {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: options.resolveDir ?? process.cwd() },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: options.platform ?? 'browser',
    target: 'es2022',
    external: options.external ?? EXTERNAL,
    conditions: ['browser'],
    // Its paths lead to the sources.
    tsconfigRaw: '{}',
    logLevel: 'error',
  })
  const [{ contents }] = outputFiles
  return { bytes: contents.length, gzipped: gzipSync(contents, { level: 9 }).length }
}

/**
 * Entries, and the most that each may cost in bytes, gzipped. Peers (tldts, robots-parser, undici) are not
 * counted.
 */
export const BUDGETS = {
  autothrottle: 160_300,
  'autothrottle/slim': 34_300,
  'autothrottle/engine': 130_800,
  'autothrottle/undici': 157_000,
  'autothrottle/simulate': 129_200,
}

/** Every file of `js/` is an entry of the package. */
export const ENTRIES = readdirSync(new URL('../../js', import.meta.url))
  .filter((name) => name.endsWith('.ts'))
  .map((name) => name.slice(0, -3))

/** The most that an entry adds that only adapts a client. */
const ADAPTER = 1_700

/**
 * The other entries, and the most bytes, gzipped, that each may add to the main one in a bundle. In those of
 * `redis` and `local` are a module of their own; that of Workers is a file.
 */
export const OVER_MAIN = {
  ...Object.fromEntries(
    ENTRIES.filter((name) => name !== 'index' && !(`autothrottle/${name}` in BUDGETS)).map((name) => [
      name,
      ADAPTER,
    ]),
  ),
  redis: 211_500,
  local: 211_100,
  'durable-object': 7_000,
  got: 1_000,
  testing: 1_000,
  // With the reader of headers, which the main entry leaves out where no entry calls it. A module of 19 kB
  // reads bodies, refusals and requests: JavaScript and Python read 18 of 88 answers differently. It keeps
  // the budgets, too, which were written twice.
  llm: 25_800,
  presets: 2_600,
  opentelemetry: 1_000,
  domains: 300,
  robots: 800,
}

/** The most that `redis` and `local` add without that module. */
export const WITHOUT_MODULE = 6_500

/**
 * The bytes that an entry of this kind adds; `dist` is that of an installed package. It stands before the
 * main one, for gzip looks back 32 kB, and the module would be between.
 */
export async function sizeOverMain(entry, dist) {
  const options = { resolveDir: dist, external: [...EXTERNAL, 'cloudflare:workers', '*.wasm?module'] }
  const folder = entry === 'durable-object' ? './edge' : '.'
  const index = `export * from '${folder}/index.js'`
  const main = await sizeOf(index, options)
  const both = await sizeOf(`export * from '${folder}/${entry}.js'; ${index}`, options)
  return both.gzipped - main.gzipped
}

/** The most that the module of `autothrottle/slim` may weigh in bytes, by brotli as a server sends it. */
export const SLIM_MODULE_BUDGET = 106_900

/** The most that the component may weigh in bytes, gzipped: it is no entry and no bundle has it. */
export const COMPONENT_BUDGET = 151_000
