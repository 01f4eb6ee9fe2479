/** A Worker and its object, as a program would have them; what the tests ask of it stands in the path. */
import { ThrottleObject, throttleOf, WaitTooLongError } from '../../dist/edge/durable-object.js'

const free = { delay: 0, slotDelay: 0, jitter: false, concurrency: 100 }

export class Limiter extends ThrottleObject {
  options = {
    maxInFlight: 1000,
    scopes: {
      quota: { ...free, quota: { limit: 10, window: 600_000 } },
      slots: { ...free, concurrency: 2 },
      bad: { ...free, backoff: { minDelay: 60_000, jitter: false } },
    },
  }
}

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url)
    const [scope, target] = [searchParams.get('scope'), searchParams.get('target')]
    const maxWait = Number(searchParams.get('maxWait') ?? 10_000)
    const throttle = throttleOf(env.LIMITER, { name: searchParams.get('name') ?? 'one', maxWait })
    if (pathname === '/up') return new Response('up')
    if (pathname === '/waits') return new Response(String((await throttle.stats()).waiting))
    try {
      if (pathname === '/die') {
        await throttle.acquire({ scopes: scope })
        throw new Error('it holds a permit and throws')
      }
      const signal = searchParams.get('signal') === 'no' ? undefined : request.signal
      const init = { signal, throttle: { scopes: scope } }
      const response = target
        ? await throttle.fetch(target, init)
        : await throttle.run({ scopes: scope }, () => new Response('ok'))
      return new Response(await response.text(), { status: response.status })
    } catch (error) {
      if (!(error instanceof WaitTooLongError)) throw error
      return Response.json({ retryAfterMs: error.retryAfterMs }, { status: 503 })
    }
  },
}
