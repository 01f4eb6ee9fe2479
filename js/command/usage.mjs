/**
 * The command's options, and its help. Plain JavaScript: `npm start -- --help` answers before anything is
 * installed or built.
 *
 * Arguments are checked here and not by `parseArgs`: its message about an unknown option is about positional
 * arguments, and it knows no option with a value that may be left out.
 */
import { parseArgs } from 'node:util'

const NETWORK = `
Network
  --proxy URL          send everything through this proxy; needs the package undici. Without it,
                       HTTP_PROXY, HTTPS_PROXY and NO_PROXY count (NO_PROXY=* turns them off)
  --ca FILE            trust the certificates (PEM) in FILE as well; needs the package undici
  --insecure           accept any certificate`

const PACE = `
Pace
  --delay MS           least milliseconds between two requests to a host (default 250)
  --start-delay MS     delay before anything is known of a host (default 1000)
  --concurrency N      requests in flight at one host (default 4)
  --total N            requests in flight in all (default 64)
  --rate N             requests per second to each host, evenly spaced; also 100/min
  --rampup             find each host's limit instead of following its latency
  --options FILE       options of createThrottle as JSON; what is typed here comes on top

Requests
  --header 'K: V'      send a header; may be repeated
  --user-agent NAME    who asks, also robots.txt (default autothrottle)
  --timeout MS         from a send to its answer's headers, with all redirects before (default 30000)
  --max-time MS        from the headers to the end of the body (default 300000)
  --retries N          send again what was refused or failed, robots.txt too (default 3)
  --max-size BYTES     longest body that is kept; the rest is cut off (default 10000000)
  --ignore-robots      do not ask for robots.txt: for hosts of your own
${NETWORK}`

const OUTPUT = `
Output
  --out DIR            bodies as DIR/pages/HOST/…, and DIR/index.jsonl; without it, the lines of the index
                       go to standard output where that is no terminal
  --warc FILE          the answers as WARC, too; needs the package warcio
  --headers [NAMES]    response headers in each line: all but set-cookie, or those named, as in etag,age
  --state FILE         pace and frontier: go on where a run has ended, however it ended; what had no
                       answer then is tried again
  --retry-failed       with --state: try again what had a status from 400 or was not allowed, too
  --plot FILE          a picture (SVG) of rate, delay and refusals
  --json               progress and summary as lines of JSON
  --quiet              no progress
  --help               this text`

/** Help, by command. */
export const HELP = {
  '': `autothrottle-cli COMMAND …

  crawl URL… [--out DIR]     follow links (or sitemaps) on the hosts of the URLs, each host at its own pace
  get FILE|-                 fetch a list of URLs, each host at its own pace
  simulate FILE|-            what options would do to a server, in virtual time
  presets [HOST…]            what owners of public APIs say of their limits, as settings, with sources
  robots HOST [PATH…]        what a host's robots.txt asks for, and whether it allows the paths

  autothrottle-cli COMMAND --help tells more; autothrottle-cli --version which this is.

Exit codes
  0  done
  1  no answer came, or the command itself failed
  2  wrong usage or bad input: no request was sent
  3  done, and some URLs had no answer
  130, 143  stopped by Ctrl-C, or by SIGTERM; with --state the same command goes on
`,
  crawl: `autothrottle-cli crawl URL… [options]

  --max-pages N        stop after N pages, from 1 (default: no bound)
  --depth N            links away from the URLs at most (default: no bound)
  --include REGEXP     follow only links that match; may be repeated
  --exclude REGEXP     follow no links that match; may be repeated
  --sitemaps           start from the hosts' sitemaps as well: those of robots.txt, else /sitemap.xml
                       (a URL that is a sitemap is read as one without this)
${PACE}
${OUTPUT}
`,
  get: `autothrottle-cli get FILE|- [options]

  FILE has a URL a line, or an object: {"url": "…", "method": "POST", "headers": {…}, "body": "…", "id": 7}.
  What else an object says comes back as "input" in its line of the output. - is standard input.
  A line that is neither comes back with an "error", and the list goes on.

  --body               the body as text in each line of the output ("body", or "base64" if it is no text)
${PACE}
${OUTPUT}
`,
  presets: `autothrottle-cli presets [HOST…] [options]

  Prints the settings of each HOST as JSON, and who says so, where, and when it was read. Without a HOST, the
  hosts that have presets.

  --json               settings and sources as one line of JSON
  --help               this text
`,
  simulate: `autothrottle-cli simulate FILE|- [options]

  FILE has the options of simulate as JSON: {"server": {"model": "nginx", "rate": 10}, "throttle": {…}, …}.

  --json               the summary as JSON
  --plot FILE          a picture (SVG) of what was sent and refused
  --help               this text
`,
  robots: `autothrottle-cli robots HOST|URL [PATH…] [options]

  --user-agent NAME    for whom (default autothrottle)
  --timeout MS         from the send to the answer's headers, and again to its end (default 30000)
${NETWORK}

Output
  --json               as JSON
  --help               this text

  Exit code 3 if one of the paths is not allowed.
`,
}

/** @type {Record<string, { type: 'string' | 'boolean'; multiple?: boolean }>} */
const NETWORKING = { proxy: { type: 'string' }, ca: { type: 'string' }, insecure: { type: 'boolean' } }

/** @type {Record<string, { type: 'string' | 'boolean'; multiple?: boolean }>} */
const FETCHING = {
  ...NETWORKING,
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
  'max-time': { type: 'string' },
  'ignore-robots': { type: 'boolean' },
  out: { type: 'string' },
  warc: { type: 'string' },
  headers: { type: 'string' },
  state: { type: 'string' },
  'retry-failed': { type: 'boolean' },
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
  presets: { json: { type: 'boolean' }, help: { type: 'boolean' } },
  simulate: { json: { type: 'boolean' }, plot: { type: 'string' }, help: { type: 'boolean' } },
  robots: {
    ...NETWORKING,
    'user-agent': { type: 'string' },
    timeout: { type: 'string' },
    json: { type: 'boolean' },
    help: { type: 'boolean' },
  },
}

/** Names of these options in other programs. */
const OTHER_WORDS = {
  ca: ['cacert', 'ca-certificate', 'ca-cert'],
  concurrency: ['parallel', 'max-concurrency', 'workers'],
  delay: ['wait', 'sleep', 'interval'],
  depth: ['level', 'max-depth'],
  exclude: ['reject', 'reject-regex'],
  header: ['H'],
  'ignore-robots': ['no-robots'],
  include: ['accept', 'accept-regex'],
  insecure: ['k', 'no-check-certificate'],
  'max-pages': ['limit', 'max'],
  out: ['o', 'O', 'output', 'dir', 'directory-prefix', 'output-dir'],
  proxy: ['x'],
  retries: ['retry', 'tries'],
  state: ['resume', 'continue', 'c'],
  'user-agent': ['A', 'agent'],
}

/** Names of header fields, as --headers takes them. */
const NAMES = /^[a-z][a-z0-9-]*(?:,[a-z][a-z0-9-]*)*$/i

/** Wrong usage. */
export class ArgumentError extends Error {}

/**
 * Reads the arguments of a command.
 *
 * @throws {ArgumentError} for what it does not know.
 */
export function readArguments(command, args, more = {}) {
  const options = { ...OPTIONS[command], ...more }
  const whole = args.map((arg, index) => {
    if (arg === '-h') return '--help'
    if (arg !== '--headers' || !options.headers) return arg
    return NAMES.test(args[index + 1] ?? '') ? arg : '--headers=all'
  })
  const { positionals, tokens } = parseArgs({
    ...{ args: whole, options, allowPositionals: true, strict: false, tokens: true },
  })
  const values = {}
  for (const { kind, name, rawName, value, inlineValue } of tokens) {
    if (kind !== 'option') continue
    const option = Object.hasOwn(options, name) ? options[name] : undefined
    if (option === undefined || !rawName.startsWith('--'))
      throw new ArgumentError(unknown(rawName, name, options))
    const isFlag = option.type === 'boolean'
    if (isFlag && value !== undefined)
      throw new ArgumentError(`${rawName}: want no value; got ${JSON.stringify(value)}`)
    if (!isFlag && (value === undefined || value === ''))
      throw new ArgumentError(`${rawName}: want a value; got none`)
    if (!isFlag && !inlineValue && /^-./.test(value))
      throw new ArgumentError(`${rawName}: want a value; got ${value} (if it is one: ${rawName}=${value})`)
    if (!option.multiple && !isFlag && name in values)
      throw new ArgumentError(`${rawName}: want it once; got ${values[name]} and ${value}`)
    if (option.multiple) values[name] = [...(values[name] ?? []), value]
    else values[name] = isFlag ? true : value
  }
  return { positionals, values }
}

function unknown(rawName, name, options) {
  const other = Object.keys(OTHER_WORDS).find((each) => OTHER_WORDS[each].includes(name))
  const known =
    other !== undefined && Object.hasOwn(options, other) ? other : nearest(name, Object.keys(options))
  return `there is no option ${rawName}${known === undefined ? '' : `: did you mean --${known}?`}`
}

/** The name that was probably meant: at most a third of it is wrong, and a beginning is enough. */
export function nearest(typed, names) {
  const matches = names.filter((name) => typed.length > 1 && name.startsWith(typed))
  if (matches.length === 1) return matches[0]
  const most = Math.max(1, Math.floor(typed.length / 3))
  const [best] = names
    .map((name) => ({ name, edits: editsOf(typed, name) }))
    .filter(({ edits }) => edits <= most)
    .sort((a, b) => a.edits - b.edits)
  return best?.name
}

/** Letters to add, take away, replace or swap with their neighbour. */
function editsOf(from, to) {
  let [before, last] = [[], Array.from({ length: to.length + 1 }, (_, index) => index)]
  for (let row = 1; row <= from.length; row++) {
    const now = [row]
    for (let at = 1; at <= to.length; at++) {
      const isSame = from[row - 1] === to[at - 1]
      now[at] = Math.min(now[at - 1] + 1, last[at] + 1, last[at - 1] + (isSame ? 0 : 1))
      const isSwapped = row > 1 && at > 1 && from[row - 1] === to[at - 2] && from[row - 2] === to[at - 1]
      if (isSwapped) now[at] = Math.min(now[at], before[at - 2] + 1)
    }
    before = last
    last = now
  }
  return last[to.length]
}
