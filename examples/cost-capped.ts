/**
 * Cost-capped: requests that cost differently, and at most so much a minute. Their real cost is known
 * afterwards. `npx tsx examples/cost-capped.ts`
 *
 * Source: Scrapy's throttling draft, *Cost-capped throttling*.
 */
import { addScope, byHost, createThrottle, type ThrottleOptions, updateScopeBackoff } from 'autothrottle'

const API = 'api.toscrape.com'

/** A browser costs five times a plain request. */
const estimate = (url: string) => (new URL(url).searchParams.has('browser') ? 5 : 1)

export function costCapped(options: ThrottleOptions = {}) {
  return createThrottle({
    ...options,
    scopes: {
      [API]: { concurrency: 16, delay: 0, slotDelay: 0 },
      cost: { concurrency: 16, delay: 0, slotDelay: 0, quota: 20, window: 60_000 },
    },
    getScopes: (request) =>
      byHost(request) === API ? addScope(API, 'cost', estimate(request.url)) : byHost(request),
    getResponseBackoff(response, request) {
      const cost = response.headers.get('x-actual-cost')
      if (byHost(request) !== API || cost === null) return undefined
      return updateScopeBackoff(undefined, 'cost', { cost: Number(cost) })
    },
  })
}

if (process.argv[1]?.endsWith('cost-capped.ts')) {
  const throttle = costCapped({
    fetch: async () => new Response('page', { headers: { 'x-actual-cost': '4' } }),
  })
  await Promise.all([1, 2, 3].map((page) => throttle.fetch(`https://${API}/${page}?browser=1`)))
  console.log(`left of 20: ${throttle.scope('cost').stats.quotaLeft}`)
}
