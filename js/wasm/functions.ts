/**
 * Functions of the module that need no engine: what headers and robots.txt ask for, which options are none.
 */

import { type HeadersLike, type Hints, hintLines, unitsOf } from '../answers/headers.js'
import { ConfigError, withProblems } from '../base/errors.js'
import type { HeaderMap } from '../options/options.js'
import { check_driver_options, nearest, parse_crawl_delay, parse_hints, prepare } from './load/load.js'

/**
 * The name that was meant by one that is not known, if one is near enough.
 *
 * @internal
 */
export function nearestName(typed: string, known: readonly string[]): string | undefined {
  prepare()
  return nearest(typed, known.join('\n')) || undefined
}

/**
 * Checks the options that only a driver reads; functions may be among them.
 *
 * @internal
 * @throws {ConfigError} listing every problem.
 */
export function checkDriverOptions(options: object): void {
  prepare()
  withProblems(ConfigError, () => check_driver_options(options))
}

/**
 * The limits in a response's headers: waits, quotas, resets, in all the dialects of `docs/hints.md`.
 *
 * @param options.status the response's status: on good ones an explicit wait is ignored. Default 429.
 * @param options.wallNowMs wall time since 1970, for responses without a `Date`. Default unknown.
 */
export function parseHints(
  headers: HeadersLike,
  options: { status?: number; wallNowMs?: number; map?: HeaderMap } = {},
): Hints {
  const { status = 429, wallNowMs = Number.NaN, map } = options
  prepare()
  return parse_hints(hintLines(headers, map), status, wallNowMs, unitsOf(map)) as Hints
}

/**
 * The delay in milliseconds that a robots.txt asks of `userAgent` (a product token or a whole User-Agent
 * header). It is the slower of `Crawl-delay` and `Request-rate`; `null` if it asks for no pace.
 */
export function parseRobots(
  bytesOrText: Uint8Array | string,
  userAgent: string,
): { crawlDelayMs: number } | null {
  const bytes = typeof bytesOrText === 'string' ? new TextEncoder().encode(bytesOrText) : bytesOrText
  prepare()
  const crawlDelayMs = parse_crawl_delay(bytes, String(userAgent))
  return Number.isNaN(crawlDelayMs) ? null : { crawlDelayMs }
}
