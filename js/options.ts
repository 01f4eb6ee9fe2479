/**
 * The options, typed. Ranges, defaults and Scrapy's names are in `docs/settings.md`, which is written from the
 * engine's own table; the engine checks every value and reports all problems at once.
 */

import type { Snapshot } from './engine.js'

/** How far a delay may stray from its mean, drawn once per send: `true` is ±50 %, `0.2` ±20 %, a pair its own ends. */
export type Jitter = boolean | number | readonly [low: number, high: number]

/** Scrapy's AutoThrottle: the delay follows the latency. */
export interface AutoThrottleOptions {
  /** Milliseconds of delay before anything is known. Default 5000. Scrapy: AUTOTHROTTLE_START_DELAY. */
  startDelay?: number
  /** The greatest delay in milliseconds. Default 60000. Scrapy: AUTOTHROTTLE_MAX_DELAY. */
  maxDelay?: number
  /** Requests that the server should have in its hands on average, above 0. Default 1. Scrapy: AUTOTHROTTLE_TARGET_CONCURRENCY. */
  targetConcurrency?: number
}

/** A budget per window. */
export interface QuotaOptions {
  /** Units per window, above 0. */
  limit: number
  /** The window in milliseconds. Default: the scope's `window`. */
  window?: number
  /** Whether the window rolls: never more than the limit in any window-long span. Default: the scope's `strict`. */
  strict?: boolean
}

/** Settings of one scope. */
export interface ScopeOptions {
  /** Slots: requests in flight in this scope. A whole number from 1, default 1. Scrapy: CONCURRENT_REQUESTS_PER_DOMAIN. */
  concurrency?: number
  /** Milliseconds between two sends of the scope, from send to send. Default 1000. Scrapy: DOWNLOAD_DELAY. */
  delay?: number
  /** Milliseconds between two sends of one slot. Default 1000. Scrapy: DOWNLOAD_DELAY_PER_SLOT. */
  slotDelay?: number
  /** Spread of the delay. Default true. Scrapy: RANDOMIZE_DOWNLOAD_DELAY. */
  jitter?: Jitter
  /** Let the delay follow the latency. Default false. Scrapy: AUTOTHROTTLE_ENABLED. */
  autothrottle?: boolean | AutoThrottleOptions
  /** Units that the scope may consume per window. Default none. */
  quota?: number | QuotaOptions | readonly (number | QuotaOptions)[]
  /** The window of a quota that names none, in milliseconds above 0. Default 60000. Scrapy: THROTTLING_WINDOW. */
  window?: number
  /** Whether the window of a quota that does not say rolls. Default false. */
  strict?: boolean
}

/** What the engine is told. */
export interface EngineOptions {
  /** Requests in flight, all scopes together. A whole number from 1, default 16. Scrapy: CONCURRENT_REQUESTS. */
  concurrency?: number
  /** Settings of every scope that is not named, and of what the named ones leave out. */
  defaults?: ScopeOptions
  /** Settings of single scopes by name; by default a scope's name is the host of the URL. Scrapy: THROTTLING_SCOPES. */
  scopes?: Record<string, ScopeOptions>
  /** The same as `defaults.autothrottle`, which wins where both are given. Default false. Scrapy: AUTOTHROTTLE_ENABLED. */
  autothrottle?: boolean | AutoThrottleOptions
  /** Makes jitter repeat exactly. A whole number; drawn from the system on first use by default. */
  seed?: number
  /** Beyond so many waiting requests a new one is refused with a `QueueFullError`. Default none. */
  maxWaiting?: number
  /** Beyond so many scopes the least recently used idle ones are forgotten. Default 100000. */
  maxScopes?: number
  /** So many waiting requests cause one warning. Default 500. Scrapy: DELAYED_REQUESTS_WARN_THRESHOLD. */
  warnThreshold?: number
}

/** Where time comes from. All in milliseconds. */
export interface Clock {
  /** Engine time: only goes forward, from any origin. */
  now(): number
  /** Wall time since 1970. Serves only to read dates in headers. */
  wallNow(): number
  /** Calls `wake` after `ms`, which is never above 2³¹−1. */
  setTimeout(wake: () => void, ms: number): unknown
  /** Takes a timer back. */
  clearTimeout(handle: unknown): void
}

/** What `createThrottle` is told. */
export interface ThrottleOptions extends EngineOptions {
  /** Default: the system's. */
  clock?: Clock
  /** What `throttle.snapshot()` gave, to go on with what was learned. Default none. */
  snapshot?: Snapshot
  /** What `throttle.fetch` sends with. Default: `globalThis.fetch`, looked up at each call. */
  fetch?: typeof fetch
  /** Whether the one timer lets a process end while requests wait. Default false. */
  unref?: boolean
}
