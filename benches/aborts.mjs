/**
 * A million waits that are aborted: what is left of them. `npm run bench:aborts`
 *
 * Half of them have a signal each, half share one with a thousand others; nothing is ever sent. Afterwards
 * nothing may wait, no timer may be armed, no listener may hang on a signal, and the heap is where it was.
 */
import { getEventListeners, setMaxListeners } from 'node:events'
import { createThrottle } from 'autothrottle'

const N = 1_000_000
const BATCH = 1000
const throttle = createThrottle({ defaults: { delay: 300_000, jitter: false } })
await (await throttle.acquire('https://a.example/')).settle()
globalThis.gc?.()
const before = process.memoryUsage()
const start = performance.now()
let listeners = 0
for (let done = 0; done < N; done += BATCH) {
  const shared = new AbortController()
  setMaxListeners(BATCH, shared.signal)
  const controllers = Array.from({ length: BATCH }, (_, index) =>
    index % 2 ? new AbortController() : shared,
  )
  const waits = controllers.map(({ signal }) => throttle.acquire('https://a.example/', { signal }))
  for (const controller of new Set(controllers)) controller.abort()
  await Promise.allSettled(waits)
  for (const { signal } of new Set(controllers)) listeners += getEventListeners(signal, 'abort').length
}
const seconds = (performance.now() - start) / 1000
globalThis.gc?.()
await new Promise((resolve) => setTimeout(resolve, 100))
globalThis.gc?.()
const after = process.memoryUsage()
const { waiting, inFlight, cancelled } = throttle.stats()
const armed = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
console.log(`${N} waits aborted in ${seconds.toFixed(1)} s (${((seconds / N) * 1e6).toFixed(1)} µs each)`)
console.log(`waiting ${waiting}, in flight ${inFlight}, cancelled ${cancelled}, timers armed ${armed}`)
console.log(`listeners left: ${listeners}`)
console.log(
  `heap: ${((after.heapUsed - before.heapUsed) / 1e6).toFixed(1)} MB more, array buffers ${((after.arrayBuffers - before.arrayBuffers) / 1e6).toFixed(1)} MB more`,
)
throttle.close()
