/**
 * `autothrottle crawl`: follows links on the hosts that it was given, each host at its own pace.
 *
 * A redirect is a link like any other: where it leads is fetched once, whoever leads there.
 */

import type { Job } from './journal.js'
import { foundIn, urlIn } from './links.js'
import { type Answer, perform, type Run, type Task } from './run.js'
import { type Filter, filterOf, settingsOf, UsageError, urlOf } from './settings.js'
import type { Entry } from './store.js'
import type { Values } from './usage.mjs'

export async function crawl(urls: readonly string[], values: Values): Promise<Run> {
  const settings = settingsOf(values)
  const filter = filterOf(values)
  const starts = urls.map((url) => urlOf(url, true))
  const task = new Crawl(starts, filter, settings.headers, values.sitemaps === true)
  return perform(settings, task, (run) => {
    if (starts.length === 0 && run.frontier.hosts.size === 0)
      throw new UsageError('crawl: want a URL to start from, or a --state that has some')
    for (const name of run.frontier.hosts.keys()) task.hosts.add(name)
  })
}

class Crawl implements Task {
  readonly command = 'crawl'
  readonly hosts = new Set<string>()
  readonly most: number
  readonly #starts: readonly URL[]
  readonly #filter: Filter
  readonly #headers: Record<string, string>
  readonly #hasSitemaps: boolean

  constructor(starts: readonly URL[], filter: Filter, headers: Record<string, string>, hasSitemaps: boolean) {
    this.#starts = starts
    this.#filter = filter
    this.#headers = headers
    this.#hasSitemaps = hasSitemaps
    this.most = filter.maxPages
    for (const { host } of starts) this.hosts.add(host)
  }

  init(): RequestInit {
    return {
      headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8', ...this.#headers },
      redirect: 'manual',
    }
  }

  async feed(run: Run): Promise<void> {
    run.add(this.#starts.map(({ href }) => ({ url: href, depth: 0 })))
    if (!this.#hasSitemaps) return
    const origins = new Set(this.#starts.map(({ origin }) => origin))
    await Promise.all([...origins].map((origin) => this.#sitemaps(run, origin)))
  }

  /** Those that robots.txt names, else the usual one. */
  async #sitemaps(run: Run, origin: string): Promise<void> {
    let text = ''
    try {
      const init = { headers: this.#headers, signal: run.signal }
      const response = await run.throttle.fetch(`${origin}/robots.txt`, init)
      text = response.ok ? await response.text() : ''
      if (!response.ok) await response.body?.cancel()
    } catch {
      // Who has no robots.txt may have a sitemap.
    }
    const named = [...text.matchAll(/^[ \t]*sitemap:[ \t]*(\S+)/gim)].map(([, url]) => url!)
    const urls = named.length > 0 ? named : [`${origin}/sitemap.xml`]
    run.add(
      this.#wanted(
        urls.flatMap((url) => urlIn(url, new URL(origin)) ?? []),
        0,
        false,
      ),
    )
  }

  *onAnswer(job: Job, { response, body, type }: Answer, entry: Entry): Iterable<Job> {
    const place = response.status >= 300 && response.status < 400 ? response.headers.get('location') : null
    if (place !== null) {
      const to = urlIn(place, new URL(job.url))
      entry.location = to?.href ?? place
      if (to) yield* this.#wanted([to], job.depth, true)
      return
    }
    if (!response.ok) return
    const { urls, isSitemap } = foundIn(body, type, new URL(job.url))
    yield* this.#wanted(urls, isSitemap ? job.depth : job.depth + 1, true)
  }

  *#wanted(urls: Iterable<URL>, depth: number, isFiltered: boolean): Generator<Job> {
    const { include, exclude, depth: deepest } = this.#filter
    if (depth > deepest) return
    for (const { href, host } of urls) {
      if (!this.hosts.has(host)) continue
      const isWanted =
        !isFiltered ||
        ((include.length === 0 || include.some((each) => each.test(href))) &&
          !exclude.some((each) => each.test(href)))
      if (isWanted) yield { url: href, depth }
    }
  }
}
