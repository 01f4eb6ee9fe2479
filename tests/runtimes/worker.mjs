/**
 * The Worker that the package is tried in: the conformance program inside a request and inside a Durable
 * Object, redirects, and requests that share a throttle, in the Worker or in an object.
 */
import { DurableObject } from 'cloudflare:workers'
import { createThrottle } from 'autothrottle'
import { check } from './redirects.mjs'

let shared

async function conformance(program) {
  const lines = []
  console.log = (line) => lines.push(line)
  try {
    await program()
  } catch (error) {
    lines.push(String(error), error.stack)
  }
  return new Response(lines.join('\n'))
}

/** One limit for all of a program's Workers: the usual reason for a Durable Object. */
export class Limiter extends DurableObject {
  #throttle = createThrottle({ defaults: { delay: 60, slotDelay: 0, jitter: false } })

  async fetch(request) {
    if (new URL(request.url).pathname === '/conformance')
      return conformance(() => import('./conformance-again.mjs'))
    return Response.json(await this.#throttle.run({ scopes: 'shared' }, ({ sentAt }) => sentAt))
  }
}

export default {
  async fetch(request, env) {
    const { pathname, searchParams } = new URL(request.url)
    if (pathname === '/conformance') return conformance(() => import('./conformance.mjs'))
    if (pathname === '/redirects') return new Response(await check(createThrottle, searchParams.get('base')))
    if (pathname.startsWith('/object/')) {
      const object = env.LIMITER.get(env.LIMITER.idFromName('one'))
      return object.fetch(`https://object${pathname.slice('/object'.length)}`)
    }
    // Every request waits in its own context, for a slot that another request holds or for a time that
    // another one set.
    shared ??= createThrottle({
      maxInFlight: 2,
      defaults: { delay: 60, slotDelay: 0, jitter: false, concurrency: 1 },
    })
    const sentAt = await shared.run({ scopes: 'shared' }, async (permit) => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      return permit.sentAt
    })
    return Response.json(sentAt)
  },
}
