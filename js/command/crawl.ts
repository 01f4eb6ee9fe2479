/**
 * `autothrottle-cli crawl`: follows links on the hosts that it was given, each host at its own pace.
 *
 * A redirect is a link like any other: where it leads is fetched once, however many lead there.
 */
import type { ThrottleOptions } from 'autothrottle'
import { asUtf8 } from '../scopes/names.js'
import { robotsText } from './body.js'
import type { Job } from './journal.js'
import { readingOf, sitemapsIn, urlIn } from './links.js'
import { perform } from './perform.js'
import type { Reader, Run, Task } from './run.js'
import { type Filter, filterOf, settingsOf, UsageError, urlOf } from './settings.js'
import type { Values } from './usage.mjs'
import type { Entry } from './warc.js'

/** @param more options of the throttle, for tests: a clock, a web. */
export async function crawl(urls: readonly string[], values: Values, more?: ThrottleOptions): Promise<Run> {
  const settings = settingsOf(values, more)
  const filter = filterOf(values)
  const starts = urls.map((url) => urlOf(url, true))
  const bare = new Set(starts.filter((_, index) => !urls[index]!.includes('://')).map(({ host }) => host))
  const task = new Crawl(starts, bare, filter, settings.headers, values.sitemaps === true)
  return perform(settings, task, () => {
    if (task.hosts.size === 0)
      throw new UsageError('crawl: want a URL to start from, or a --state that has some')
  })
}

/**
 * Redirects and sitemaps that lead on, one after the other, without a page between: fetch's own limit.
 * `--depth` counts links of pages and `--max-pages` pages, so a server could lead on for ever.
 */
const MOST_HOPS = 20

/** Headers that are for the origins that were given: another scheme or port is another origin. */
const SECRET = new Set(['authorization', 'cookie', 'proxy-authorization'])

/** The most that the command names one by one. */
const TOO_FAR_SHOWN = 3

/** How far a URL is away from the start. */
type Near = Pick<Job, 'depth' | 'hops'>

class Crawl implements Task {
  readonly command = 'crawl'
  readonly hosts = new Set<string>()
  readonly most: number
  readonly #starts: readonly URL[]
  /** Hosts that were given without `https://`. */
  readonly #bare: ReadonlySet<string>
  /** Those that were given. */
  readonly #origins = new Set<string>()
  readonly #filter: Filter
  readonly #headers: Record<string, string>
  readonly #hasSitemaps: boolean
  #run: Run | undefined
  #tooFar = 0

  constructor(
    starts: readonly URL[],
    bare: ReadonlySet<string>,
    filter: Filter,
    headers: Record<string, string>,
    hasSitemaps: boolean,
  ) {
    this.#starts = starts
    this.#bare = bare
    this.#filter = filter
    this.#headers = headers
    this.#hasSitemaps = hasSitemaps
    this.most = filter.maxPages
    for (const { host, origin } of starts) {
      this.hosts.add(host)
      this.#origins.add(origin)
    }
  }

  init({ url }: Job): RequestInit {
    const accept = 'text/html,application/xhtml+xml,*/*;q=0.8'
    return { headers: { accept, ...this.#headersFor(new URL(url)) }, redirect: 'manual' }
  }

  #headersFor({ origin }: URL): Record<string, string> {
    const isOurs = this.#origins.has(origin)
    return Object.fromEntries(Object.entries(this.#headers).filter(([name]) => isOurs || !SECRET.has(name)))
  }

  recall({ url, isStart, isLed }: Job): void {
    const { host, origin } = new URL(url)
    this.hosts.add(host)
    if (isStart && !isLed) this.#origins.add(origin)
  }

  hint({ url }: Job): string {
    const { host } = new URL(url)
    return this.#bare.has(host) ? `; try http://${host}` : ''
  }

  async feed(run: Run): Promise<void> {
    this.#run = run
    run.add(this.#starts.map(({ href }) => ({ url: href, depth: 0, isStart: true })))
    if (!this.#hasSitemaps) return
    const origins = new Set(this.#starts.map(({ origin }) => origin))
    await Promise.all([...origins].map((origin) => this.#sitemaps(run, origin)))
  }

  /** Those that robots.txt names, else the usual one. */
  async #sitemaps(run: Run, origin: string): Promise<void> {
    let text = ''
    try {
      const init = { headers: this.#headersFor(new URL(origin)), signal: run.signal }
      const response = await run.throttle.fetch(`${origin}/robots.txt`, init)
      const within = { ms: run.settings.timeout, clock: run.settings.clock }
      text = response.ok ? await robotsText(response, within) : ''
      if (!response.ok) void response.body?.cancel()
    } catch {
      // A host without robots.txt may have a sitemap.
    }
    const named = sitemapsIn(text)
    const urls = named.length > 0 ? named : [`${origin}/sitemap.xml`]
    run.add(
      this.#wanted(
        urls.flatMap((url) => urlIn(url, new URL(origin)) ?? []),
        { depth: 0 },
        false,
      ),
    )
  }

  read(job: Job, response: Response, entry: Entry): Reader {
    const { status, headers } = response
    const field = status >= 300 && status < 400 ? headers.get('location') : null
    const place = field === null ? null : asUtf8(field)
    const from = new URL(job.url)
    if (place !== null) {
      const to = urlIn(place, from)
      entry.location = to?.href ?? place
      return { end: () => (to ? this.#redirected(job, from, to) : []) }
    }
    const reading = response.ok ? readingOf(headers.get('content-type') ?? '', from) : undefined
    return {
      onPart: (part) => reading?.write(part),
      end: () => {
        const { urls, isSitemap } = reading?.end() ?? { urls: [], isSitemap: false }
        if (!isSitemap) return this.#wanted(urls, { depth: job.depth + 1 }, true)
        const next = this.#next(job)
        return next ? this.#wanted(urls, next, true) : []
      },
    }
  }

  /** How far what this leads to is away: no farther than it, but a hop more; `undefined` after too many. */
  #next({ url, depth, hops = 0 }: Job): Near | undefined {
    if (hops < MOST_HOPS) return { depth, hops: hops + 1 }
    if (++this.#tooFar <= TOO_FAR_SHOWN)
      this.#run?.say(`${url} leads on after ${MOST_HOPS} redirects and sitemaps: it is not followed`)
    return undefined
  }

  /** Where a start leads is as good as given, also at another host: `site.example` to `www.site.example`. */
  #redirected(job: Job, from: URL, to: URL): Iterable<Job> {
    const next = this.#next(job)
    if (next === undefined) return []
    if (!job.isStart) return this.#wanted([to], next, true)
    const isLed = job.isLed === true || !this.#origins.has(to.origin)
    const isSecret = isLed && Object.keys(this.#headers).some((name) => SECRET.has(name))
    const without = isSecret ? ', without the headers that say who you are' : ''
    if (!this.hosts.has(to.host)) {
      this.hosts.add(to.host)
      this.#run?.say(`${from.href} leads to ${to.host}, which is crawled as well${without}`)
    } else if (isSecret) this.#run?.say(`${from.href} leads to ${to.origin}, which is crawled${without}`)
    return [{ url: to.href, ...next, isStart: true, ...(isLed ? { isLed } : {}) }]
  }

  *#wanted(urls: Iterable<URL>, near: Near, isFiltered: boolean): Generator<Job> {
    const { include, exclude, depth: deepest } = this.#filter
    if (near.depth > deepest) return
    for (const { href, host } of urls) {
      if (!this.hosts.has(host)) continue
      const isWanted =
        !isFiltered ||
        ((include.length === 0 || include.some((each) => each.test(href))) &&
          !exclude.some((each) => each.test(href)))
      if (isWanted) yield { url: href, ...near }
    }
  }
}
