/**
 * Endpoint-specific limits: endpoints of one host as if they were hosts of their own. `npx tsx
 * examples/endpoints.ts`
 *
 * Source: Scrapy's throttling draft, *Endpoint-specific throttling*.
 */
import { byEndpoint, createThrottle, type ThrottleOptions } from 'autothrottle'

export function perEndpoint(options: ThrottleOptions = {}) {
  return createThrottle({
    maxInFlight: 1000,
    ...options,
    defaults: { jitter: false },
    scopes: {
      'api.toscrape.com/fast-endpoint': { concurrency: 1000, delay: 80, slotDelay: 0 },
      'api.toscrape.com/slow-endpoint': { delay: 5000 },
    },
    getScopes: byEndpoint('api.toscrape.com'),
  })
}

if (process.argv[1]?.endsWith('endpoints.ts')) {
  const throttle = perEndpoint({ fetch: async () => new Response('page') })
  const start = performance.now()
  const get = async (path: string) => {
    await throttle.fetch(`https://api.toscrape.com/${path}`)
    console.log(`${path}: ${Math.round(performance.now() - start)} ms`)
  }
  await Promise.all(['slow-endpoint', ...Array(5).fill('fast-endpoint'), 'slow-endpoint'].map(get))
}
