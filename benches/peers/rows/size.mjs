/** What a bundle grows by. `export *` leaves a default export out. */
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

export const title = 'Size'
export const says = 'A bundle with this import alone, minified by esbuild, in kB; gzipped at level 9.'
export const columns = ['minified', 'gzipped']

const IMPORTS = {
  autothrottle: "export { createThrottle } from '../../dist/index.js'",
  'p-limit': "export { default } from 'p-limit'",
  'p-queue': "export { default } from 'p-queue'",
  'p-throttle': "export { default } from 'p-throttle'",
  bottleneck: "export { default } from 'bottleneck'",
  limiter: "export { RateLimiter } from 'limiter'",
  'rate-limiter-flexible': "export { RateLimiterMemory, RateLimiterQueue } from 'rate-limiter-flexible'",
  'async-sema': "export { RateLimit, Sema } from 'async-sema'",
  cockatiel: "export { bulkhead } from 'cockatiel'",
  Effect:
    "export * as Effect from 'effect/Effect'; export * as RateLimiter from 'effect/persistence/RateLimiter'",
}

export async function run() {
  const rows = []
  for (const [name, contents] of Object.entries(IMPORTS)) {
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: fileURLToPath(new URL('..', import.meta.url)) },
      bundle: true,
      minify: true,
      write: false,
      format: 'esm',
      platform: 'node',
      logLevel: 'error',
    })
    const bytes = outputFiles[0].contents
    const kb = (count) => (count / 1000).toFixed(1)
    rows.push([name, kb(bytes.length), kb(gzipSync(bytes, { level: 9 }).length)])
  }
  return rows
}
