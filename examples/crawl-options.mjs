/**
 * What `npm start` can be told. Plain JavaScript: `npm start -- --help` answers before anything is installed
 * or built.
 */
import { parseArgs } from 'node:util'

export const HELP = `npm start -- [URL…] [options]

  --max-pages N      stop after N pages (default 150; 0 for no bound)
  --concurrency N    requests in flight at one host (default 4)
  --min-delay MS     least milliseconds between two requests to a host (default 0 here, 250 for other hosts)
  --start-delay MS   delay before anything is known (default 250 here, 1000 for other hosts)
  --rampup           find the host's limit instead of following its latency
  --limit N          requests per second that the site on this machine allows (default 20)
  --state FILE       go on at the pace that FILE remembers, and remember it there at the end
  --port N           port of the site on this machine (default: any that is free)
  --help             this text
`

const options = /** @type {const} */ ({
  'max-pages': { type: 'string', default: '150' },
  concurrency: { type: 'string', default: '4' },
  'min-delay': { type: 'string' },
  'start-delay': { type: 'string' },
  rampup: { type: 'boolean', default: false },
  limit: { type: 'string', default: '20' },
  state: { type: 'string' },
  port: { type: 'string', default: '0' },
  help: { type: 'boolean', default: false },
})

/** Throws an error with a code `ERR_PARSE_ARGS_…` for what it does not know. */
export function crawlOptions(args = process.argv.slice(2)) {
  return parseArgs({ args, allowPositionals: true, options })
}
