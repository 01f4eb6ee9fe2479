/** Builds what is not built and runs the main job, a crawl: `npm start`, `npm start -- URL…`. */
import { spawn } from 'node:child_process'
import { crawlOptions, HELP } from '../examples/crawl-options.mjs'
import { build } from './build.mjs'
import { main, root } from './lib.mjs'

/** Whether there is something to do: a question or a slip is answered at once, without building anything. */
function wantsToRun() {
  try {
    if (!crawlOptions().values.help) return true
    process.stdout.write(HELP)
  } catch (error) {
    console.error(`${error.message}\n\n${HELP}`)
    process.exitCode = 2
  }
  return false
}

if (wantsToRun()) {
  await main(async () => {
    console.log('building (only what changed)')
    await build()
    console.log('')
    const args = ['--import', 'tsx', 'examples/crawl.ts', ...process.argv.slice(2)]
    const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit' })
    // Ctrl-C reaches both of us; the crawl ends by itself and prints what it has.
    process.on('SIGINT', () => {})
    process.on('SIGTERM', () => child.kill('SIGTERM'))
    process.exitCode = await new Promise((resolve) => child.on('exit', (code) => resolve(code ?? 1)))
  })
}
