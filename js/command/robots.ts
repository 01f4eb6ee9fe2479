/** `autothrottle-cli robots`: what a host's robots.txt asks for, and whether it allows the paths. */
import { createThrottle, type ThrottleOptions } from 'autothrottle'
import { parseRobots } from 'autothrottle/engine'
import { systemClock } from '../base/clock.js'
import { rules } from '../robots.js'
import { robotsText } from './body.js'
import { codeOf } from './failures.js'
import { sitemapsIn } from './links.js'
import { fetchOf } from './network.js'
import { networkOf, number, UsageError, urlOf } from './settings.js'
import { json, print } from './terminal.js'
import type { Values } from './usage.mjs'

/** Whether the server is down, or counts what is asked: then the file is not known. */
const isUnknown = (status: number) => status >= 500 || status === 429

/**
 * @param more options of the throttle, for tests: a clock, a web.
 * @returns whether all of the paths are allowed.
 */
export async function robots(
  [host, ...paths]: readonly string[],
  values: Values,
  more: ThrottleOptions = {},
): Promise<boolean> {
  if (host === undefined) throw new UsageError('robots: want a host or a URL')
  const userAgent = (values['user-agent'] as string | undefined) ?? 'autothrottle'
  const at = urlOf(host, true)
  const url = `${at.origin}/robots.txt`
  const requestTimeout = number(values, 'timeout', 30_000, 1)
  const throttle = createThrottle({
    requestTimeout,
    retry: { limit: 3 },
    fetch: (await fetchOf(networkOf(values))) ?? fetch,
    ...more,
  })
  const response = await throttle.fetch(url, { headers: { 'user-agent': userAgent } }).catch((cause) => {
    if (host.includes('://')) throw cause
    const hint = codeOf(cause) === 'ERR_DNS' ? '' : `; try http://${at.host}`
    throw new Error(`no server answers at ${at.origin}${hint}`, { cause })
  })
  const isThere = response.ok
  const within = { ms: requestTimeout, clock: more.clock ?? systemClock(false) }
  const text = isThere ? await robotsText(response, within) : ''
  if (!isThere) void response.body?.cancel()
  // RFC 9309 §2.3.1: without the file all is allowed; if the server does not tell, no URL is.
  const isAllowed = (path: string) =>
    !isUnknown(response.status) && (!isThere || rules(url, text, userAgent)(new URL(path, at.origin).href))
  const asked = at.pathname === '/' && at.search === '' ? paths : [at.pathname + at.search, ...paths]
  const answer = {
    url,
    status: response.status,
    userAgent,
    crawlDelayMs: isThere ? (parseRobots(text, userAgent)?.crawlDelayMs ?? null) : null,
    sitemaps: isThere ? sitemapsIn(text) : [],
    paths: Object.fromEntries(asked.map((path) => [path, isAllowed(path)])),
  }
  if (values.json === true) print(`${json(answer)}\n`)
  else print(inWords(answer))
  return Object.values(answer.paths).every(Boolean)
}

function inWords(answer: {
  url: string
  status: number
  userAgent: string
  crawlDelayMs: number | null
  sitemaps: string[]
  paths: Record<string, boolean>
}): string {
  const { url, status, userAgent, crawlDelayMs, sitemaps, paths } = answer
  const missing = isUnknown(status) ? 'no URL may be fetched' : 'no rules'
  const lines = [
    `${url}: ${status}${status >= 200 && status < 300 ? '' : `, ${missing}`}`,
    `for         ${userAgent}`,
    `crawl delay ${crawlDelayMs === null ? 'none' : `${crawlDelayMs} ms, one request at a time`}`,
    ...sitemaps.map((place) => `sitemap     ${place}`),
    ...Object.entries(paths).map(([path, allowed]) => `${allowed ? 'allowed    ' : 'disallowed '} ${path}`),
  ]
  return `${lines.join('\n')}\n`
}
