/**
 * Alternative domain groupings: one scope for a registrable domain, or one for each level of it. `npx tsx
 * examples/domains.ts`
 *
 * Source: Scrapy's throttling draft, *Alternative domain throttling*.
 */
import { createThrottle, type ThrottleOptions } from 'autothrottle'
import { byDomainHierarchy, byRegistrableDomain } from 'autothrottle/domains'

/** books.toscrape.com and toscrape.com are throttled together. */
export function oneScope(options: ThrottleOptions = {}) {
  return createThrottle({ ...options, getScopes: byRegistrableDomain })
}

/** Each subdomain has a limit of its own, and all of them together have another. */
export function everyLevel(options: ThrottleOptions = {}) {
  return createThrottle({
    ...options,
    maxInFlight: 100,
    defaults: { delay: 0, slotDelay: 0 },
    scopes: {
      'toscrape.com': { concurrency: 32 },
      'books.toscrape.com': { concurrency: 24 },
      'quotes.toscrape.com': { concurrency: 16 },
    },
    getScopes: byDomainHierarchy,
  })
}

if (process.argv[1]?.endsWith('domains.ts')) {
  const throttle = everyLevel({ fetch: async () => new Response('page') })
  await Promise.all(['books', 'quotes'].map((name) => throttle.fetch(`https://${name}.toscrape.com/`)))
  console.log(Object.keys(throttle.stats().scopes))
}
