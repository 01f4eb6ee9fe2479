/**
 * The options, typed. Ranges, defaults and Scrapy's names are in `docs/settings.md`, which is written from the
 * engine's own table; the engine checks every value and reports all problems at once.
 */

import type { RetryOptions } from '../fetch/retry.js'
import type { RobotsOptions } from '../fetch/robots.js'
import type { GetErrorBackoff, GetResponseBackoff, GetResponseDelay, GetScopes } from '../scopes/hooks.js'
import type { MakeScopeManager, ScopeManager } from '../scopes/strategy.js'
import type { Snapshot } from '../wasm/engine.js'
import type { HeaderMap, SomeHints } from '../wasm/headers.js'

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

/** A longer delay after bad answers, and the way back. */
export interface BackoffOptions {
  /** Statuses that are bad answers. Default 429, 502, 503, 504, 520 to 524. Scrapy: BACKOFF_HTTP_CODES. */
  httpCodes?: readonly number[]
  /** Failures that are bad answers. Default both. Scrapy: BACKOFF_EXCEPTIONS. */
  errors?: readonly ('timeout' | 'connection')[]
  /** What a bad answer multiplies the delay by, above 1. Default 2. Scrapy: BACKOFF_DELAY_FACTOR. */
  factor?: number
  /** Milliseconds of delay after the first bad answer, at least. Default 1000. Scrapy: BACKOFF_MIN_DELAY. */
  minDelay?: number
  /** The longest delay and the longest hold in milliseconds. Default 300000. Scrapy: BACKOFF_MAX_DELAY. */
  maxDelay?: number
  /** Milliseconds without a bad answer, and with a good one, before a step back. Default 60000. Scrapy: BACKOFF_WINDOW. */
  window?: number
  /** Spread of the delay while backing off. Default 0.1. Scrapy: BACKOFF_JITTER. */
  jitter?: Jitter
  /** What slots are multiplied by at the longest delay, between 0 and 1. Default 0.5. Scrapy: BACKOFF_CONCURRENCY_FACTOR. */
  concurrencyFactor?: number
}

/** Find the server's limit and stay just below it. */
export interface RampupOptions {
  /**
   * Bad answers per `backoff.window` that finding the limit may cost: a number, or a range, of which the middle is aimed
   * at. Default 1. Scrapy: RAMPUP_BACKOFF_TARGET.
   */
  backoffTarget?: number | readonly [low: number, high: number]
  /** Milliseconds of delay before anything is known; the scope's own delay if that is longer. Default 1000. */
  startDelay?: number
  /** The least delay in milliseconds. Default 0. */
  minDelay?: number
  /** The most slots. Default: the global `concurrency`. */
  maxConcurrency?: number
}

/** A rate with its own span, or with bursts. */
export interface RateOptions {
  /** Requests per span, above 0; fractions welcome. */
  limit: number
  /** The span in milliseconds. Default 1000. */
  per?: number
  /** How many may follow each other at once after an idle time. Default 1. */
  burst?: number
}

/** `5` is five a second; `'100/min'` a hundred a minute, evenly spaced. */
export type Rate =
  | number
  | `${number}/${'s' | 'min' | 'h' | 'day'}`
  | `${number} / ${'s' | 'min' | 'h' | 'day'}`
  | RateOptions

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
  /**
   * Requests a second, evenly spaced whatever the latency. It takes the place of `delay` and `slotDelay`; `jitter` is
   * then 0 and `concurrency` the global limit, unless they are typed in the same place. Default none.
   */
  rate?: Rate
  /**
   * Slots: requests in flight in this scope. A whole number from 1, default 1; with `rate` the global limit.
   * Scrapy: CONCURRENT_REQUESTS_PER_DOMAIN.
   */
  concurrency?: number
  /**
   * Milliseconds between two sends of the scope, from send to send. Default 1000; 0 beside `rate`, `quota` or `rampup`.
   * Scrapy: DOWNLOAD_DELAY.
   */
  delay?: number
  /**
   * Milliseconds between two sends of one slot. Default 1000; 0 where `delay`, `rate`, `quota`, `rampup` or `autothrottle`
   * is typed, in the same place or a farther one. Scrapy: DOWNLOAD_DELAY_PER_SLOT.
   */
  slotDelay?: number
  /** Spread of the delay. Default true; 0 with `rate`. Scrapy: RANDOMIZE_DOWNLOAD_DELAY. */
  jitter?: Jitter
  /** Let the delay follow the latency. Default false. Scrapy: AUTOTHROTTLE_ENABLED. */
  autothrottle?: boolean | AutoThrottleOptions
  /** Slow down after bad answers. Default true. */
  backoff?: boolean | BackoffOptions
  /**
   * Find the server's limit and stay just below it. The delays and slots of the defaults are no bounds then; what you set for
   * this very scope is. Default false.
   */
  rampup?: boolean | RampupOptions
  /** Pace by what RateLimit headers say: the slower of reset / remaining and window / limit. Default false. */
  followRateLimit?: boolean
  /** Let robots.txt have no say in the pace of this scope. Default false. Scrapy's draft: ignore_robots_txt. */
  ignoreRobotsTxt?: boolean
  /** Units that the scope may consume per window. Default none. */
  quota?: number | QuotaOptions | readonly (number | QuotaOptions)[]
  /** The window of a quota that names none, in milliseconds above 0. Default 60000. Scrapy: THROTTLING_WINDOW. */
  window?: number
  /** Whether the window of a quota that does not say rolls. Default false. */
  strict?: boolean
  /**
   * A strategy of your own in place of backoff and rampup: an object, or a function that makes one for each scope (in `defaults`
   * only that). Default none. Scrapy: THROTTLING_SCOPE_MANAGER.
   */
  manager?: ScopeManager | MakeScopeManager
}

/**
 * What the engine is told. Settings of scopes may stand at the top: `{ rate: 5 }` is short for
 * `{ defaults: { rate: 5 } }`. Only `concurrency` means something else here: the limit of all scopes together.
 */
export interface EngineOptions extends Omit<ScopeOptions, 'concurrency'> {
  /**
   * Requests in flight, all scopes together. A whole number from 1, default 16; 256 where a scope ramps.
   * Scrapy: CONCURRENT_REQUESTS.
   */
  concurrency?: number
  /** Settings of every scope that is not named, and of what the named ones leave out. */
  defaults?: ScopeOptions
  /** Settings of single scopes by name; by default a scope's name is the host of the URL. Scrapy: THROTTLING_SCOPES. */
  scopes?: Record<string, ScopeOptions>
  /** Milliseconds of nothing but bad answers after which a scope has stalled. Default 900000. */
  stallAfter?: number
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
  /**
   * Whether a timer belongs to the request that armed it, as in Cloudflare's Workers: it ends with it, and may not wake
   * another. Then every waiter has a timer of its own. Default false.
   */
  readonly isPerRequest?: boolean
}

/** What `createThrottle` is told. */
export interface ThrottleOptions extends EngineOptions {
  /** Default: the system's. */
  clock?: Clock
  /** What `throttle.snapshot()` gave, to go on with what was learned. Default none. */
  snapshot?: Snapshot
  /** What `throttle.fetch` sends with. Default: `globalThis.fetch`, looked up at each call. */
  fetch?: typeof fetch
  /** Whether and how `throttle.fetch` tries again. Default none: it does not. Scrapy: RETRY_TIMES. */
  retry?: RetryOptions
  /** Whether `throttle.fetch` asks each host for its robots.txt first. Default none: it does not. Scrapy: ROBOTSTXT_OBEY. */
  robots?: RobotsOptions
  /**
   * Names the scopes of a request that names none itself, perhaps as a promise. What it throws rejects its request as a
   * `ManagerError`. Helpers: `byHost`, `byEndpoint`, `byDomainHierarchy`, `addScope`. Default none: the host of the URL. Scrapy: THROTTLING_MANAGER.
   */
  getScopes?: GetScopes
  /**
   * Which scopes a response makes back off, where the status does not say it: an API that answers 200 for a target that refuses. The
   * slot is kept until it has answered; `undefined` lets the status count. Default none. Scrapy: THROTTLING_MANAGER.
   */
  getResponseBackoff?: GetResponseBackoff
  /** Which scopes a failure makes back off. Default none: all of the request's. Scrapy: THROTTLING_MANAGER. */
  getErrorBackoff?: GetErrorBackoff
  /** How long a response asks not to be sent anything, in milliseconds, in place of its headers. Default none. Scrapy: THROTTLING_MANAGER. */
  getResponseDelay?: GetResponseDelay
  /**
   * Who follows redirects: fetch itself, as one request (`native`), or the throttle, hop by hop (`throttle`), where every hop is a request of the scope
   * that it goes to. Not in browsers, which hide them. Default native.
   */
  redirects?: 'native' | 'throttle'
  /** With `redirects: 'throttle'`: the longest `Retry-After` of a redirect to wait for, in milliseconds; beyond it the redirect itself is the answer. Default 300000. Scrapy: REDIRECT_MAX_DELAY. */
  redirectMaxDelay?: number
  /**
   * When a request gives its slots back: when the headers are there, or when the body was read, cancelled or has failed. A body that
   * nobody reads keeps them until it is collected as garbage. Default headers.
   */
  release?: 'headers' | 'body'
  /**
   * Milliseconds from send to response headers; then the request fails with a `TimeoutError`, its slots come back, and
   * backoff hears of a timeout. Waiting does not count. Default none. Scrapy: DOWNLOAD_TIMEOUT.
   */
  requestTimeout?: number
  /** How to read the headers of servers with a dialect of their own, by scope name. Default none. */
  hints?: Record<string, HeaderMap>
  /**
   * Finds hints that are not in headers (Shopify's and Discord's are in bodies: read a clone). The slot is kept until it has
   * answered. `undefined`: the headers count. What it throws rejects the request as a `ManagerError`. Default none.
   */
  getHints?: (response: Response) => SomeHints | undefined | Promise<SomeHints | undefined>
  /** Prints AutoThrottle's line for each response with `console.debug`. Default false. Scrapy: AUTOTHROTTLE_DEBUG. */
  debug?: boolean
  /** Whether the one timer lets a process end while requests wait. Default false. */
  unref?: boolean
}
