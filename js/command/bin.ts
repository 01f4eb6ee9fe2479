/** The program behind `npx autothrottle-cli`. */
import { setFlagsFromString } from 'node:v8'
import { main } from './main.js'
import { say } from './terminal.js'

// V8 lets the heap double before it collects: twice the memory for a program that waits most of the time.
setFlagsFromString('--heap-growing-percent=20')
setFlagsFromString('--semi-space-growth-factor=1')

// The reader of our output may leave before its end (`| head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  say(`autothrottle-cli: standard output: ${error.message}\n`)
  process.exit(1)
})
// The progress may lose its reader: the work goes on.
process.stderr.on('error', () => {})
process.exitCode = await main(process.argv.slice(2))
