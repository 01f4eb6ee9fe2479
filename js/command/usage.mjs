/**
 * What the command can be told, and its help. Plain JavaScript: `npm start -- --help` answers before anything
 * is installed or built.
 */
import { parseArgs } from 'node:util'

const PACE = `
Pace
  --delay MS           least milliseconds between two requests to a host (default 250)
  --start-delay MS     delay before anything is known of a host (default 1000)
  --concurrency N      requests in flight at one host (default 4)
  --total N            requests in flight in all (default 64)
  --rate N             so many requests a second to a host, evenly spaced; also 100/min
  --rampup             find each host's limit instead of following its latency
  --options FILE       options of createThrottle as JSON; what is typed here comes on top

Requests
  --header 'K: V'      send a header; may be repeated
  --user-agent NAME    who asks, also robots.txt (default autothrottle)
  --timeout MS         from a send to its answer's headers (default 30000)
  --retries N          send again what was refused or failed (default 3)
  --max-size BYTES     longest body that is kept; the rest is cut off (default 10000000)
  --ignore-robots      do not ask for robots.txt: for hosts of your own`

const OUTPUT = `
Output
  --out DIR            bodies as DIR/pages/HOST/…, and DIR/index.jsonl; without it, the lines of the index
                       go to standard output where that is no terminal
  --warc FILE          the answers as WARC, too; needs the package warcio
  --state FILE         pace and frontier: go on where a run has ended, however it ended
  --plot FILE          a picture (SVG) of rate, delay and refusals
  --json               progress and summary as lines of JSON
  --quiet              no progress
  --help               this text`

/** Help, by command. */
export const HELP = {
  '': `autothrottle COMMAND …

  crawl URL… [--out DIR]     follow links (or sitemaps) on the hosts of the URLs, each host at its own pace
  get FILE|-                 fetch a list of URLs, each host at its own pace
  simulate FILE|-            what options would do to a server, in virtual time
  robots HOST [PATH…]        what a host's robots.txt asks for, and whether it allows the paths

  autothrottle COMMAND --help tells more; autothrottle --version which this is.

Exit codes
  0  done
  1  nothing was answered, or the command itself failed
  2  wrong usage or bad input: nothing was sent
  3  done, and some URLs had no answer
  130, 143  stopped by Ctrl-C, or by SIGTERM; with --state the same command goes on
`,
  crawl: `autothrottle crawl URL… [options]

  --max-pages N        stop after N pages (default: no bound)
  --depth N            links away from the URLs at most (default: no bound)
  --include REGEXP     follow only links that match; may be repeated
  --exclude REGEXP     follow no links that match; may be repeated
  --sitemaps           start from the hosts' sitemaps as well: those of robots.txt, else /sitemap.xml
                       (a URL that is a sitemap is read as one without this)
${PACE}
${OUTPUT}
`,
  get: `autothrottle get FILE|- [options]

  FILE has a URL a line, or an object: {"url": "…", "method": "POST", "headers": {…}, "body": "…", "id": 7}.
  What else an object says comes back as "input" in its line of the output. - is standard input.

  --body               the body as text in each line of the output ("body", or "base64" if it is no text)
${PACE}
${OUTPUT}
`,
  simulate: `autothrottle simulate FILE|- [options]

  FILE has the options of simulate as JSON: {"server": {"model": "nginx", "rate": 10}, "throttle": {…}, …}.

  --json               the summary as JSON
  --plot FILE          a picture (SVG) of what was sent and refused
  --help               this text
`,
  robots: `autothrottle robots HOST|URL [PATH…] [options]

  --user-agent NAME    for whom (default autothrottle)
  --timeout MS         for the answer (default 30000)
  --json               as JSON
  --help               this text

  Exit code 3 if one of the paths is not allowed.
`,
}

/** @type {Record<string, { type: 'string' | 'boolean'; multiple?: boolean }>} */
const FETCHING = {
  delay: { type: 'string' },
  'start-delay': { type: 'string' },
  concurrency: { type: 'string' },
  total: { type: 'string' },
  rate: { type: 'string' },
  rampup: { type: 'boolean' },
  options: { type: 'string' },
  header: { type: 'string', multiple: true },
  'user-agent': { type: 'string' },
  timeout: { type: 'string' },
  retries: { type: 'string' },
  'max-size': { type: 'string' },
  'ignore-robots': { type: 'boolean' },
  out: { type: 'string' },
  warc: { type: 'string' },
  state: { type: 'string' },
  plot: { type: 'string' },
  json: { type: 'boolean' },
  quiet: { type: 'boolean' },
  help: { type: 'boolean' },
}

/** Options, by command. */
const OPTIONS = {
  crawl: {
    ...FETCHING,
    'max-pages': { type: 'string' },
    depth: { type: 'string' },
    include: { type: 'string', multiple: true },
    exclude: { type: 'string', multiple: true },
    sitemaps: { type: 'boolean' },
  },
  get: { ...FETCHING, body: { type: 'boolean' } },
  simulate: { json: { type: 'boolean' }, plot: { type: 'string' }, help: { type: 'boolean' } },
  robots: {
    'user-agent': { type: 'string' },
    timeout: { type: 'string' },
    json: { type: 'boolean' },
    help: { type: 'boolean' },
  },
}

/**
 * Reads the arguments of a command.
 *
 * @throws an error with a code `ERR_PARSE_ARGS_…` for what it does not know.
 */
export function readArguments(command, args, more = {}) {
  return parseArgs({ args, allowPositionals: true, options: { ...OPTIONS[command], ...more } })
}
