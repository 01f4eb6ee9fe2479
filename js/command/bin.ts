#!/usr/bin/env node
/** What `npx autothrottle` runs. */
import { main } from './main.js'

// Whoever reads our output may leave before its end (`| head`).
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
})
process.exitCode = await main(process.argv.slice(2))
