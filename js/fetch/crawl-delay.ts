/**
 * The pace in a robots.txt for a host: one slot and its `Crawl-delay`, in place of what the defaults say.
 *
 * A scope with a pace of its own keeps it, with one warning.
 */
import { kindOf } from '../base/checks.js'
import type { Host } from '../core/host.js'
import type { Scheduler } from '../core/scheduler.js'
import { ROBOTS_MAX_DELAY } from '../options/generated.js'
import { checkedName, hostOf, hostOfName } from '../scopes/names.js'
import { parseRobots } from '../wasm/engine.js'

export function applyRobots(
  scheduler: Scheduler,
  engine: Host,
  host: string,
  text: string | Uint8Array,
  { userAgent, maxDelay = ROBOTS_MAX_DELAY }: { userAgent?: string; maxDelay?: number | undefined },
): { crawlDelayMs: number } | null {
  const isText = typeof text === 'string' || ArrayBuffer.isView(text)
  if (!isText || typeof userAgent !== 'string') {
    const got = isText ? `${kindOf(userAgent)} for userAgent` : `${kindOf(text)} for the text`
    throw new TypeError(`robots: want a host, its robots.txt as text, and { userAgent: "name" }; got ${got}`)
  }
  const asked = parseRobots(text, userAgent)
  const name = checkedName(host).includes('://') ? hostOf(host) : (hostOfName(host) ?? host)
  const delay = asked ? Math.min(asked.crawlDelayMs, maxDelay) : undefined
  if (asked) scheduler.robotsHosts.add(name)
  else scheduler.robotsHosts.delete(name)
  const outcome = engine.crawlDelay(scheduler.clock.now(), scheduler.handles.of(name).handle, delay)
  scheduler.driver.drain()
  if (asked && asked.crawlDelayMs > maxDelay && outcome === 'applied') {
    const wish = `robots.txt of ${name} asks for ${asked.crawlDelayMs} ms between requests`
    scheduler.warnings.once('wait-capped', `${wish}; robots.maxDelay makes it ${maxDelay}`, name)
  }
  if (outcome !== 'overruled') return asked
  const wish = `robots.txt of ${name} asks for one request at a time, ${delay} ms apart`
  const message = `${wish}; the scope keeps its own settings (ignoreRobotsTxt: true silences this)`
  scheduler.warnings.once('robots-overruled', message, name)
  return asked
}
