/** Builds what is not built and runs the main job, a crawl: `npm start`, `npm start -- URL…`. */
import { spawn } from 'node:child_process'
import { build } from './build.mjs'
import { main, root } from './lib.mjs'

await main(async () => {
  console.log('building (only what changed)')
  await build()
  console.log('')
  const child = spawn(process.execPath, ['--import', 'tsx', 'examples/crawl.ts', ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
  })
  // Ctrl-C reaches both of us; the crawl ends by itself and prints what it has.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => child.kill('SIGTERM'))
  process.exitCode = await new Promise((resolve) => child.on('exit', (code) => resolve(code ?? 1)))
})
