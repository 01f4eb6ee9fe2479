/**
 * The only file that names a clock or a timer.
 *
 * The globals are looked up at each call, so that tests and tools may replace them.
 */
import type { Clock } from '../options/options.js'

/** The most that `setTimeout` takes. Beyond it, every runtime fires at once. */
export const LONGEST_TIMEOUT = 2 ** 31 - 1

/** The system's clock. `unref` lets a Node process end although the timer is armed. */
export function systemClock(unref: boolean): Clock {
  // In Node `performance` is a getter, as slow as the clock itself. The clock keeps it while the timers are
  // the same ones: a tool that replaces a clock replaces both.
  const kept = { performance, now: performance.now, setTimeout, Date }
  let offset: number | undefined
  // The timers of node:test leave `performance` alone: then the date that they replace is the clock.
  const replaced = () => {
    if (performance.now !== kept.now || Date === kept.Date) return performance.now()
    offset ??= performance.now() - Date.now()
    return Date.now() + offset
  }
  // Turns of the event loop: Node, Bun and Deno have them, browsers do not.
  const host = globalThis as Pick<Clock, 'setImmediate'>
  const eased = (handle: unknown) => {
    if (unref) unrefTimer(handle)
    return handle
  }
  return {
    now: () => (kept.setTimeout === setTimeout ? kept.performance.now() : replaced()),
    wallNow: () => Date.now(),
    setTimeout: (wake, ms) => eased(setTimeout(wake, ms)),
    clearTimeout: (handle) => clearTimeout(handle as number),
    ...(typeof host.setImmediate === 'function' && {
      setImmediate: (wake: () => void) => eased(host.setImmediate!(wake)),
    }),
    isPerRequest: globalThis.navigator?.userAgent === 'Cloudflare-Workers',
  }
}

/** Node and Bun give an object; Deno a number and a function of its own. */
function unrefTimer(handle: unknown): void {
  const deno = (globalThis as { Deno?: { unrefTimer?: (id: number) => void } }).Deno
  if (typeof handle === 'number') deno?.unrefTimer?.(handle)
  else (handle as { unref?: () => void }).unref?.()
}
