/**
 * A load that never ends, for so many seconds: how much of it was served. Sixty-four workers, one throttle.
 */
import { createThrottle } from 'autothrottle'

export async function load(options, url, seconds) {
  const throttle = createThrottle(options)
  const counts = { ok: 0, refused: 0 }
  const end = performance.now() + seconds * 1000
  const work = async () => {
    while (performance.now() < end) {
      const response = await throttle.fetch(url)
      await response.arrayBuffer()
      if (performance.now() < end) counts[response.status === 200 ? 'ok' : 'refused']++
    }
  }
  const all = Promise.all(Array.from({ length: 64 }, work)).catch(() => {})
  await Promise.race([all, new Promise((resolve) => setTimeout(resolve, seconds * 1000))])
  throttle.close()
  return counts
}
