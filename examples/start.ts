/**
 * The program behind `npm start`: `autothrottle-cli crawl`, and without a URL a rate-limited site of its own.
 *
 * The site is the Rust toolchain's manual behind express-rate-limit; the crawl's delay follows its latency,
 * or finds its limit with `--rampup`.
 */
import { main } from '../js/command/main.js'
import { readArguments } from '../js/command/usage.mjs'
import { serveSite } from './site.js'

/** The options that `npm start` adds to those of `crawl`. */
const SITE = { limit: { type: 'string' }, port: { type: 'string' } } as const
/** For a machine of one's own: no robots.txt, and no more politeness than is needed. */
const HERE = ['--delay', '0', '--start-delay', '250', '--max-pages', '150', '--ignore-robots']

const given = process.argv.slice(2)
const { positionals, values } = read(given)
const rest = without(given, ['--limit', '--port'])
if (positionals.length > 0) {
  process.exitCode = await main(['crawl', ...rest])
} else {
  const number = (text: unknown, otherwise: number) => (text === undefined ? otherwise : Number(text))
  const limit = number(values.limit, 20)
  const site = await serveSite({ limit, latency: 80, port: number(values.port, 0) })
  process.stderr.write(`serving ${site.what} at ${site.url}\n`)
  process.stderr.write(`its limit is ${limit} requests per second, its latency 80 ms\n`)
  process.stderr.write('crawling it (Ctrl-C stops)\n\n')
  // Options that you type win over these.
  const typed = Object.keys(values).map((option) => `--${option}`)
  process.exitCode = await main(['crawl', site.url, ...without(HERE, typed), ...rest])
  await site.close()
}

/** A slip is for the command to explain. */
function read(args: string[]): ReturnType<typeof readArguments> {
  try {
    return readArguments('crawl', args, SITE)
  } catch {
    return { positionals: ['a slip'], values: {} }
  }
}

function without(args: readonly string[], options: readonly string[]): string[] {
  return args.filter((arg, index) => {
    const isValue = index > 0 && options.includes(args[index - 1]!)
    return !isValue && !options.some((option) => arg === option || arg.startsWith(`${option}=`))
  })
}
