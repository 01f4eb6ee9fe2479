/**
 * A scraping API with an upstream: many requests to the API at once, few to each of its targets; and a target
 * that fails is not the API failing. `npx tsx examples/scraping-api.ts`
 *
 * Source: Scrapy's throttling draft, *Web scraping API throttling*. The API answers 200 and says in
 * `X-Upstream-Status-Code` what the target said.
 */
import { addScope, byHost, createThrottle, type ScopeRequest, type ThrottleOptions } from 'autothrottle'

const API = 'api.toscrape.com'

/** The host that the API is asked to fetch. */
function targetOf({ url }: ScopeRequest): string | undefined {
  const target = new URL(url).searchParams.get('url')
  if (byHost({ url }) !== API || target === null) return undefined
  try {
    return new URL(target).host
  } catch {
    return undefined // no URL: the API will say so
  }
}

export function scrapingApi(options: ThrottleOptions = {}) {
  return createThrottle({
    maxInFlight: 1000,
    defaults: { jitter: false },
    ...options,
    scopes: { [API]: { concurrency: 1000, delay: 80, slotDelay: 0 } },
    getScopes(request) {
      const target = targetOf(request)
      return target ? addScope(byHost(request), target) : byHost(request)
    },
    getResponseBackoff(response, request) {
      const target = targetOf(request)
      if (!target || response.status !== 200) return target ? API : undefined // the API itself
      const upstream = Number(response.headers.get('x-upstream-status-code') ?? 200)
      return upstream === 429 || upstream >= 502 ? target : {}
    },
  })
}

if (process.argv[1]?.endsWith('scraping-api.ts')) {
  const answer = (status: number) =>
    new Response('page', { headers: { 'x-upstream-status-code': String(status) } })
  const throttle = scrapingApi({ fetch: async (input) => answer(String(input).includes('busy') ? 503 : 200) })
  const through = (url: string) => `https://${API}/?url=${encodeURIComponent(url)}`
  await Promise.all(
    ['https://busy.example/', 'https://calm.example/'].map((url) => throttle.fetch(through(url))),
  )
  for (const [name, stats] of Object.entries(throttle.stats().scopes)) console.log(name, stats.backoffStep)
}
