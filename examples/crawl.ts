/**
 * A polite crawl with live progress: `npm start`, or `npm start -- https://host/ --max-pages 50`.
 *
 * Without a URL it serves a rate-limited site on this machine and crawls that. It follows links on the hosts
 * that it was given, each host at its own pace: AutoThrottle makes it follow the latency, or rampup finds the
 * limit. What is refused is tried again; hosts that are not ours are asked for their robots.txt first.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { ConfigError, createThrottle, type Snapshot, SnapshotError, type ThrottleOptions } from 'autothrottle'
import { rules } from 'autothrottle/robots'
import { defaultTreeAdapter, parse } from 'parse5'
import { crawlOptions, HELP } from './crawl-options.mjs'
import { serveSite } from './site.js'

const USER_AGENT = 'autothrottle-example'

interface Totals {
  pages: number
  bytes: number
  refused: number
  failed: number
  statuses: Map<number, number>
}

async function main(): Promise<number> {
  const { values, positionals } = crawlOptions()
  if (values.help) {
    process.stdout.write(HELP)
    return 0
  }
  const urls = positionals.map(startUrl)
  const isLocal = urls.length === 0
  const maxPages = number('--max-pages', values['max-pages']) || Number.POSITIVE_INFINITY
  const totals: Totals = { pages: 0, bytes: 0, refused: 0, failed: 0, statuses: new Map() }
  const paced = {
    concurrency: number('--concurrency', values.concurrency),
    delay: number('--min-delay', values['min-delay'] ?? (isLocal ? '0' : '250')),
    slotDelay: 0,
    autothrottle: {
      startDelay: number('--start-delay', values['start-delay'] ?? (isLocal ? '250' : '1000')),
      targetConcurrency: isLocal ? 1.5 : 1,
    },
  }
  const options: ThrottleOptions = {
    concurrency: 16,
    defaults: values.rampup ? { rampup: true } : paced,
    retry: { limit: 3 },
    ...(isLocal ? {} : { robots: { userAgent: USER_AGENT, rules } }),
    // Every attempt is counted, also those that the throttle makes again by itself.
    fetch: async (input, init) => {
      const response = await fetch(input, init)
      count(totals, response.status)
      return response
    },
  }
  const { state } = values
  if (state !== undefined && existsSync(state)) options.snapshot = readState(state)
  const throttle = createThrottle(options)
  const limit = number('--limit', values.limit)
  const site = isLocal
    ? await serveSite({ limit, latency: 80, port: number('--port', values.port) })
    : undefined
  if (site) {
    urls.push(new URL(site.url))
    console.log(`serving ${site.what} at ${site.url}: ${limit} requests per second, 80 ms latency`)
  }
  console.log(`crawling ${urls.map(String).join(' ')} (Ctrl-C stops and keeps what there is)\n`)

  const stop = new AbortController()
  const onSignal = () => stop.abort(new Error('stopped'))
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  const start = performance.now()
  const show = progress(() => {
    const seconds = (performance.now() - start) / 1000
    const { waiting, inFlight, scopes } = throttle.stats()
    const busiest = Object.values(scopes).sort((a, b) => b.waiting - a.waiting)[0]
    return [
      `${totals.pages} pages`,
      `${(totals.pages / seconds).toFixed(1)}/s`,
      `delay ${(busiest?.delayMs ?? 0).toFixed(0)} ms`,
      `${inFlight} in flight`,
      `${waiting} waiting${busiest?.reason ? ` (${busiest.reason})` : ''}`,
      `${totals.refused} refused`,
    ].join('  ')
  })

  const hosts = new Set(urls.map(({ host }) => host))
  const seen = new Set<string>()
  const visits: Promise<void>[] = []
  const visit = async (url: URL): Promise<void> => {
    try {
      const response = await throttle.fetch(url, {
        signal: stop.signal,
        headers: { 'user-agent': USER_AGENT, accept: 'text/html' },
      })
      const isPage = response.ok && response.headers.get('content-type')?.includes('text/html')
      if (!isPage || totals.pages >= maxPages) return void (await response.body?.cancel())
      const html = await response.text()
      totals.pages++
      totals.bytes += html.length
      if (totals.pages >= maxPages) return stop.abort(new Error('enough'))
      const base = new URL(response.url || url)
      if (hosts.has(base.host)) for (const link of linksOf(html, base)) enqueue(link)
    } catch (error) {
      if (!stop.signal.aborted) totals.failed++
      if (!stop.signal.aborted && totals.failed <= 3) show.line(`${url}: ${messageOf(error)}`)
    }
  }
  const enqueue = (url: URL): void => {
    url.hash = ''
    if (stop.signal.aborted || !hosts.has(url.host) || seen.has(url.href)) return
    seen.add(url.href)
    visits.push(visit(url))
  }

  for (const url of urls) enqueue(url)
  for (let done = 0; done < visits.length; done++) await visits[done]
  show.end()
  process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
  await site?.close()
  if (state !== undefined) writeFileSync(state, JSON.stringify(throttle.snapshot()))
  summarise(totals, (performance.now() - start) / 1000, (stop.signal.reason as Error | undefined)?.message)
  return totals.pages > 0 ? 0 : 1
}

function* linksOf(html: string, base: URL): Generator<URL> {
  const left = [...parse(html).childNodes]
  for (let node = left.pop(); node; node = left.pop()) {
    if (!defaultTreeAdapter.isElementNode(node)) continue
    left.push(...node.childNodes)
    const href = node.tagName === 'a' ? node.attrs.find(({ name }) => name === 'href')?.value : undefined
    if (href === undefined || !URL.canParse(href, base)) continue
    const url = new URL(href, base)
    if (url.protocol === 'http:' || url.protocol === 'https:') yield url
  }
}

function count(totals: Totals, status: number): void {
  totals.statuses.set(status, (totals.statuses.get(status) ?? 0) + 1)
  if (status === 429 || status === 503) totals.refused++
}

/** One line that is written over on a terminal, a line every other second elsewhere. */
function progress(text: () => string) {
  const isTerminal = process.stdout.isTTY === true
  const draw = () => process.stdout.write(isTerminal ? `\r\x1b[K${text()}` : `${text()}\n`)
  const timer = setInterval(draw, isTerminal ? 100 : 2000)
  return {
    line: (message: string) => process.stdout.write(isTerminal ? `\r\x1b[K${message}\n` : `${message}\n`),
    end: () => {
      clearInterval(timer)
      draw()
      if (isTerminal) process.stdout.write('\n')
    },
  }
}

function summarise(totals: Totals, seconds: number, stopped: string | undefined): void {
  const statuses = [...totals.statuses]
    .sort(([a], [b]) => a - b)
    .map(([status, times]) => `${status} × ${times}`)
  const why = stopped === 'enough' ? 'as many as asked for' : (stopped ?? 'no more links')
  console.log(`
${totals.pages} pages, ${(totals.bytes / 1e6).toFixed(1)} MB in ${seconds.toFixed(1)} s (${why})
rate      ${(totals.pages / seconds).toFixed(1)} pages/s
answers   ${statuses.join(', ') || 'none'}
refused   ${totals.refused}
failed    ${totals.failed}`)
}

function startUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url
  throw new UsageError(`want a URL that starts with http:// or https://; got ${JSON.stringify(text)}`)
}

function readState(file: string): Snapshot {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new UsageError(`--state: ${messageOf(error)}`)
  }
}

function number(option: string, text: string): number {
  const value = Number(text)
  if (text.trim() !== '' && Number.isFinite(value) && value >= 0) return value
  throw new UsageError(`${option}: want a number from 0; got ${JSON.stringify(text)}`)
}

class UsageError extends Error {}

/** The error's words and those of its causes: `fetch failed` alone does not say that the host is down. */
function messageOf(error: unknown): string {
  const words: string[] = []
  for (let at = error; at instanceof Error && words.length < 5; at = at.cause) {
    const { message, code } = at as NodeJS.ErrnoException
    words.push(message || code || at.name)
  }
  const [first = String(error), ...causes] = words
  return causes.length > 0 ? `${first} (${causes.join(': ')})` : first
}

try {
  process.exitCode = await main()
} catch (error) {
  const isUsage =
    error instanceof UsageError ||
    error instanceof ConfigError ||
    error instanceof SnapshotError ||
    (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS')
  if (!isUsage) throw error
  console.error(`${(error as Error).message}\n\n${HELP}`)
  process.exitCode = 2
}
