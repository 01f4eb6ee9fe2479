/**
 * Builds what is not built and runs the main job, `autothrottle-cli crawl`: `npm start`, `npm start -- URL…`.
 * Without a URL it serves a rate-limited site on this machine and crawls that.
 */
import { spawn } from 'node:child_process'
import { HELP, readArguments } from '../../js/command/usage.mjs'
import { build } from './build.mjs'
import { main, root } from './lib.mjs'

const ABOUT = `npm start -- [URL…] [options]

  Without a URL: a site on this machine, with
  --limit N            requests per second that it allows (default 20)
  --port N             its port (default: any that is free)
  and, unless typed, --delay 0 --start-delay 250 --max-pages 150 --ignore-robots. Else it is

${HELP.crawl}`

/** Whether there is something to do: a question or a slip is answered at once, without building anything. */
function wantsToRun() {
  try {
    const site = { limit: { type: 'string' }, port: { type: 'string' } }
    if (!readArguments('crawl', process.argv.slice(2), site).values.help) return true
    process.stdout.write(ABOUT)
  } catch (error) {
    console.error(`${error.message}\n\n${ABOUT}`)
    process.exitCode = 2
  }
  return false
}

if (wantsToRun()) {
  await main(async () => {
    console.error('building what changed; the first time takes about two minutes')
    await build({ withComponent: false })
    console.error('')
    const args = ['--import', 'tsx', 'examples/start.ts', ...process.argv.slice(2)]
    const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit' })
    // Ctrl-C reaches both of us; the crawl ends by itself and prints what it has.
    process.on('SIGINT', () => {})
    process.on('SIGTERM', () => child.kill('SIGTERM'))
    process.exitCode = await new Promise((resolve) => child.on('exit', (code) => resolve(code ?? 1)))
  })
}
