/** A throttle that waits for slots alone, by a fake clock, for tests that look whether these come back. */
import assert from 'node:assert/strict'
import { createThrottle, type Throttle, type ThrottleOptions } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

export const page = 'https://a.example/page'
export const free = { delay: 0, slotDelay: 0, jitter: false } as const

/** `answer` is each response. */
export function unpaced(
  options: ThrottleOptions = {},
  answer: (init: RequestInit) => unknown = () => new Response('ok'),
) {
  const clock = new FakeClock()
  const fetch = (async (_: unknown, init: RequestInit) => answer(init)) as typeof globalThis.fetch
  return { clock, throttle: createThrottle({ clock, fetch, defaults: free, ...options }) }
}

export function isAtRest(throttle: Throttle): void {
  const { waiting, inFlight } = throttle.stats()
  assert.deepEqual({ waiting, inFlight }, { waiting: 0, inFlight: 0 })
}

export const never = () => new Promise<never>(() => {})
