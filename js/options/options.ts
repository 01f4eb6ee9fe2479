/**
 * The options, typed. The types of options that are objects are written from the engine's own table
 * (`generated.ts`, `docs/settings.md`); the engine checks every value and reports all problems at once.
 *
 * Units: options are milliseconds under plain names; results, statistics, hints and events say it
 * (`delayMs`).
 */

import type { RateOptions } from './generated.js'

// written by `cargo xtask write`: objects of settings

export type {
  AutoThrottleOptions,
  BackoffOptions,
  EngineOptions,
  HeaderMap,
  QuotaOptions,
  RampupOptions,
  RateOptions,
  RetryOptions,
  RobotsOptions,
  ScopeOptions,
  ThrottleOptions,
} from './generated.js'

// end of what is written

/**
 * How far a delay may stray from its mean, drawn once per send: `true` is ±50 %, `0.2` ±20 %, a pair its
 * own ends.
 */
export type Jitter = boolean | number | readonly [low: number, high: number]

/** `5` is five a second; `'100/min'` a hundred a minute, evenly spaced. */
export type Rate =
  | number
  | `${number}/${'s' | 'min' | 'h' | 'day'}`
  | `${number} / ${'s' | 'min' | 'h' | 'day'}`
  | RateOptions

/** Where time comes from. All in milliseconds. */
export interface Clock {
  /** Engine time: only goes forward, from any origin from 0 on. */
  now(): number
  /** Wall time since 1970. Serves only to read dates in headers. */
  wallNow(): number
  /** Calls `wake` after `ms`, which is never above 2³¹−1. */
  setTimeout(wake: () => void, ms: number): unknown
  /** Takes a timer back. */
  clearTimeout(handle: unknown): void
  /**
   * Calls `wake` in the next turn of the event loop. With it, gaps of 10 to 100 ms are met to a small part of
   * a millisecond, for a tenth of a processor at most; without it timers do, which are up to a millisecond
   * late. Default of the system's clock: the global function, where there is one.
   */
  setImmediate?(wake: () => void): unknown
  /**
   * Whether a timer belongs to the request that armed it, as in Cloudflare's Workers: it ends with it, and
   * may not wake another. Then every waiter has a timer of its own. Default false.
   */
  readonly isPerRequest?: boolean
}
