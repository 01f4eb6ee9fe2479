/**
 * The Worker that the package is tried in: the conformance program inside a request, and requests that share a throttle.
 */
import { createThrottle } from 'autothrottle'

let shared

export default {
  async fetch(request) {
    const { pathname } = new URL(request.url)
    if (pathname === '/conformance') {
      const lines = []
      console.log = (line) => lines.push(line)
      try {
        await import('./conformance.mjs')
      } catch (error) {
        lines.push(String(error), error.stack)
      }
      return new Response(lines.join('\n'))
    }
    // Every request waits in its own context, for a slot that another request holds or for a time that another one set.
    shared ??= createThrottle({
      concurrency: 2,
      defaults: { delay: 60, slotDelay: 0, jitter: false, concurrency: 1 },
    })
    const sentAt = await shared.run({ scopes: 'shared' }, async (permit) => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      return permit.sentAt
    })
    return Response.json(sentAt)
  },
}
