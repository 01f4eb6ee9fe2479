/**
 * Scopes by IP address: hosts on one machine are throttled together. Scrapy: CONCURRENT_REQUESTS_PER_IP.
 *
 * Needs a resolver that only Node, Deno and Bun have (`node:dns`). It is taken from the process and not
 * imported, so that bundles for browsers do not contain it. A host is looked up once for many requests, and
 * its address is believed for a while only.
 */

import { builtin } from '../base/builtin.js'
import { systemClock } from '../base/clock.js'
import { isAddress } from './hooks.js'
import { urlOf } from './names.js'

/** How names become addresses. */
export interface ByIpOptions {
  /** Milliseconds for which an address is believed. Default 60000. */
  ttl?: number
  /** Names remembered at most; beyond them the oldest is forgotten. Default 10000. */
  maxNames?: number
  /** Another resolver. Default: the system's, `dns.lookup`. */
  lookup?: (hostname: string) => Promise<string>
}

interface Dns {
  promises: { lookup(hostname: string): Promise<{ address: string }> }
}

/**
 * The address of the URL's host, looked up once a minute. A name that cannot be resolved is its own scope:
 * the request itself will say what is wrong.
 *
 * @throws {TypeError} where the runtime has no resolver and `lookup` is not given.
 */
export function byIp({
  ttl = 60_000,
  maxNames = 10_000,
  lookup = systemLookup(),
}: ByIpOptions = {}): (request: { readonly url: string }) => Promise<string> {
  const clock = systemClock(false)
  const known = new Map<string, { address: Promise<string>; until: number }>()
  return async ({ url }) => {
    const { hostname } = urlOf(url)
    if (isAddress(hostname)) return hostname
    const now = clock.now()
    const entry = known.get(hostname)
    if (entry && entry.until > now) return entry.address
    const address = lookup(hostname).catch(() => {
      known.delete(hostname)
      return hostname
    })
    known.delete(hostname)
    if (known.size >= maxNames) known.delete(known.keys().next().value as string)
    known.set(hostname, { address, until: now + ttl })
    return address
  }
}

function systemLookup(): (hostname: string) => Promise<string> {
  const dns = builtin('dns') as Dns | undefined
  if (!dns)
    throw new TypeError(
      'byIp: want `lookup` in a runtime without dns (Node before 20.16 and browsers have none)',
    )
  return async (hostname) => (await dns.promises.lookup(hostname)).address
}
