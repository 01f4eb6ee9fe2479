/** What each entry costs a user who bundles it: JavaScript and WebAssembly, minified and gzipped. */
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

/** What is not counted: peers. */
const EXTERNAL = ['tldts', 'robots-parser', 'undici', 'node:*']

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
  autothrottle: 150_000,
  'autothrottle/engine': 131_500,
  'autothrottle/undici': 148_000,
  'autothrottle/simulate': 136_500,
  'autothrottle/domains': 1_000,
  'autothrottle/robots': 1_000,
  'autothrottle/testing': 1_500,
  'autothrottle/got': 2_000,
  'autothrottle/axios': 2_500,
  'autothrottle/crawlee': 2_000,
  'autothrottle/playwright': 2_000,
  'autothrottle/redis': 144_500,
  'autothrottle/local': 144_000,
}

/** Entries that share limits, and the most bytes, gzipped, that each may add to the main one in a bundle. */
export const OVER_MAIN = { redis: 10_800, local: 10_000, 'durable-object': 10_100 }

/** What such an entry adds; `dist` is that of an installed package. */
export async function sizeOverMain(entry, dist) {
  const options = { resolveDir: dist, external: [...EXTERNAL, 'cloudflare:workers'] }
  const main = await sizeOf("export * from './index.js'", options)
  const both = await sizeOf(`export * from './index.js'; export * from './${entry}.js'`, options)
  return both.gzipped - main.gzipped
}

/** The most that the component may weigh in bytes, gzipped: it is no entry and no bundle has it. */
export const COMPONENT_BUDGET = 135_000
