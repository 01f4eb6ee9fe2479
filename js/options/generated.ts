/** The options' types, written from `src/config/rows.rs` by `npm run bless`: change them there. */

import type { Shared } from '../core/host.js'
import type { RobotsRules } from '../fetch/robots.js'
import type { GetErrorBackoff, GetResponseBackoff, GetResponseDelay, GetScopes } from '../scopes/hooks.js'
import type { MakeScopeManager, ScopeManager } from '../scopes/strategy.js'
import type { Snapshot } from '../wasm/engine.js'
import type { Clock, GetHints, Jitter, Rate } from './options.js'

/**
 * What the engine is told. Settings of scopes may stand at the top: `{ rate: 5 }` is short for `{
 * defaults: { rate: 5 } }`. Only `concurrency` means something else here: the limit of all scopes
 * together.
 */
export interface EngineOptions extends Omit<ScopeOptions, 'concurrency'> {
  /**
   * Requests in flight, all scopes together. A whole number from 1 to 1000000. Default 16; 256 where a
   * scope ramps. Sixteen keep a crawl of many hosts busy and one laptop calm, as in Scrapy; what `rampup`
   * finds may need more. Scrapy: CONCURRENT_REQUESTS.
   */
  concurrency?: number
  /**
   * Settings of every scope that is not named in `scopes`, and of what those leave out. All but
   * `concurrency` may stand at the top instead: `{ rate: 5 }` is `{ defaults: { rate: 5 } }`. Typed in
   * both places they are an error. Default {}. Each setting's own default is polite.
   */
  defaults?: ScopeOptions
  /**
   * Settings of single scopes, by name. A scope's name is by default the host of the URL. Default {}. No
   * host is known before the first request. Scrapy: THROTTLING_SCOPES, DOWNLOAD_SLOTS.
   */
  scopes?: Record<string, ScopeOptions>
  /**
   * Milliseconds of nothing but bad answers after which a scope has stalled: one `stall` event, or a
   * `warning` where nobody listens to that. Default 120000. In two minutes somebody who waits for a
   * program looks what it is doing.
   */
  stallAfter?: number
  /**
   * Makes jitter repeat exactly. Default drawn from the system on first use. Two clients with the same
   * seed would send in step.
   */
  seed?: number
  /**
   * Beyond so many waiting requests a new one is refused at once with a `QueueFullError`. A whole number
   * from 1 to 100000000. Default none. How much memory a program may use is not ours to guess;
   * `warnThreshold` tells before it hurts.
   */
  maxWaiting?: number
  /**
   * Beyond so many scopes the least recently used idle ones are forgotten with what they learned, but
   * never one that holds, is paused, has used quota or whose delay lasts. A whole number from 1 to
   * 100000000. Default 100000. Some hundred bytes each: tens of megabytes at most, and more hosts than a
   * crawl visits in an hour.
   */
  maxScopes?: number
  /**
   * So many waiting requests cause one warning. A whole number from 1 to 100000000. Default 500. Each
   * keeps its promise and its context in memory; whoever has more should pull them (`throttle.map`). The
   * draft's number. Scrapy: DELAYED_REQUESTS_WARN_THRESHOLD.
   */
  warnThreshold?: number
  /**
   * Whether and how `throttle.fetch` tries again. Default none. `fetch` does not, and to send a request
   * twice is its caller's decision. Scrapy: RETRY_TIMES, RETRY_HTTP_CODES.
   */
  retry?: RetryOptions
}

/** What `createThrottle` is told. */
export interface ThrottleOptions extends EngineOptions {
  /**
   * Where time and timers come from. `FakeClock` of autothrottle/testing stands in for it in tests.
   * Default the system's. Programs run in real time.
   */
  clock?: Clock
  /**
   * Learned state to go on with. A bad or newer one is a `SnapshotError`, never a half-restored throttle.
   * Default none. Where to keep it is the program's own matter.
   */
  snapshot?: Snapshot
  /**
   * One limit for many processes: one of them runs the engine, the others ask it (docs/shared.md). All
   * with the same options. Default none. Most programs are one process.
   */
  shared?: Shared
  /**
   * What `throttle.fetch` sends with. Default `globalThis.fetch`, looked up at each call. Whoever
   * replaces the global one (a test, an agent) means all of them.
   */
  fetch?: typeof fetch
  /**
   * Milliseconds from the send to the headers, after which a request has failed with `timeout`. Waiting
   * for its turn does not count. Default none. A slow server is not a failed one, and `fetch` has no such
   * limit either. Scrapy: DOWNLOAD_TIMEOUT.
   */
  requestTimeout?: number
  /**
   * Whether `throttle.fetch` asks each host for its robots.txt first. Default none. A client of an API
   * has no use for it; a crawler says by what name it goes. Scrapy: ROBOTSTXT_OBEY.
   */
  robots?: RobotsOptions
  /**
   * How to read the headers of servers that speak a dialect of their own, by scope name. Default {}. The
   * formats of docs/hints.md are read without.
   */
  hints?: Record<string, HeaderMap>
  /**
   * Names the scopes of a request that names none itself: a name, names, or a map of scope to expected
   * cost, perhaps as a promise. What it throws rejects its request as a `ManagerError`. Helpers:
   * `byHost`, `byEndpoint`, `byDomainHierarchy`, `addScope`. Default none. The host of the URL is what
   * servers limit by. Scrapy: THROTTLING_MANAGER.
   */
  getScopes?: GetScopes
  /**
   * Names the scopes that a response makes back off, where its status does not say it: an API that
   * answers 200 for a target that refuses. The slot is kept until it has answered; `undefined` lets the
   * status count. Default none. A status says it for nearly all servers. Scrapy: THROTTLING_MANAGER.
   */
  getResponseBackoff?: GetResponseBackoff
  /**
   * Names the scopes that a failure makes back off. Default none. A failure is news for all scopes of its
   * request. Scrapy: THROTTLING_MANAGER.
   */
  getErrorBackoff?: GetErrorBackoff
  /**
   * How long a response asks not to be sent anything, in milliseconds, in place of its headers. Default
   * none. Headers are read by themselves. Scrapy: THROTTLING_MANAGER.
   */
  getResponseDelay?: GetResponseDelay
  /**
   * Finds hints that are not in headers (Shopify's and Discord's are in bodies: read a clone). The slot
   * is kept until it has answered. `undefined`: the headers count. What it throws rejects the request as
   * a `ManagerError`. Default none. Bodies are the caller's.
   */
  getHints?: GetHints
  /**
   * Who follows redirects: `fetch` itself, as one request, or the throttle, hop by hop, where every hop
   * is a request of the scope that it goes to. Browsers hide redirects: there only `native` works.
   * Default native. It works everywhere.
   */
  redirects?: 'native' | 'throttle'
  /**
   * With `redirects: 'throttle'`: the longest `Retry-After` of a redirect to wait for, in milliseconds.
   * Beyond it the redirect itself is the answer. Default 300000. As long as `backoff.maxDelay` and
   * `retry.maxRetryAfter`. Scrapy: REDIRECT_MAX_DELAY.
   */
  redirectMaxDelay?: number
  /**
   * When a request gives its slots back: when the headers are there, or when the body was read, cancelled
   * or has failed. A body that nobody reads keeps them until it is collected as garbage. Default headers.
   * A body that is forgotten would keep its slot.
   */
  release?: 'headers' | 'body'
  /**
   * Prints AutoThrottle's line for each response with `console.debug`: slot, in flight, delay and its
   * change, latency. Default false. A library is silent. Scrapy: AUTOTHROTTLE_DEBUG.
   */
  debug?: boolean
  /**
   * Whether a warning that nobody listens to (`addEventListener('warning', …)`) is one line of
   * `console.warn`, once for each code and scope. Default true. A setting without effect, or a throttle
   * that hears nothing, is found out before the ban.
   */
  warnings?: boolean
  /**
   * Whether the one timer lets a Node, Deno or Bun process end while requests wait. Default false. What
   * was asked for is to be sent.
   */
  unref?: boolean
}

/** Settings of one scope. */
export interface ScopeOptions {
  /**
   * Requests a second, evenly spaced whatever the latency: `5`, `'100/min'` (`/s`, `/min`, `/h`, `/day`),
   * or `{ limit, per, burst }`. It takes the place of `delay` and `slotDelay`; `jitter` is then 0 and
   * `concurrency` the global limit, unless they are typed in the same place. With a `jitter` each request
   * is put off by up to so much of a gap; the mean stays. Default none. The default of `delay` is a pace
   * already.
   */
  rate?: Rate
  /**
   * Slots: requests in flight in this scope. A whole number from 1 to 1000000. Default 1; with `rate` the
   * global limit. One is what a visitor with a browser tab does. Scrapy: CONCURRENT_REQUESTS_PER_DOMAIN.
   */
  concurrency?: number
  /**
   * Milliseconds between two sends of the scope, from send to send. Default 1000; 0 beside `rate`,
   * `quota` or `rampup`. A second is polite everywhere; whoever sets another pace has thought of one.
   * Scrapy: DOWNLOAD_DELAY.
   */
  delay?: number
  /**
   * Milliseconds between two sends of one slot, from send to send. Default 1000; 0 beside `delay`,
   * `rate`, `quota`, `rampup` or `autothrottle`. The draft's second, but only where nothing else was said
   * of the pace, in this place or a farther one: it would make five a second one. Scrapy:
   * DOWNLOAD_DELAY_PER_SLOT.
   */
  slotDelay?: number
  /**
   * Spread of the delay, drawn once per send: 0.2 is ±20 %, [-0.1, 0.3] is from -10 % to +30 %, true is
   * ±50 %. The mean is the delay. Default true; with `rate` 0. As in Scrapy: requests like clockwork are
   * a sign of a program. Scrapy: RANDOMIZE_DOWNLOAD_DELAY, DOWNLOAD_DELAY_JITTER.
   */
  jitter?: Jitter
  /**
   * Let the delay follow the latency: Scrapy's AutoThrottle. The scope's `delay` is the least delay then.
   * Default false. A delay that was typed should stay; Scrapy's is off, too. Scrapy:
   * AUTOTHROTTLE_ENABLED.
   */
  autothrottle?: boolean | AutoThrottleOptions
  /**
   * Slow down after bad answers. False: bad answers change nothing; what the server asks for
   * (`Retry-After`) is kept all the same. Default true. A server that says too fast means it.
   */
  backoff?: boolean | BackoffOptions
  /**
   * Find the server's limit and stay just below it. `delay`, `slotDelay` and `concurrency` of the
   * defaults are no bounds then; what you set for this very scope is. Default false. To look for a limit
   * costs refusals: somebody must want it.
   */
  rampup?: boolean | RampupOptions
  /**
   * Pace by what `RateLimit` headers say: the slower of reset / remaining and window / limit. Without it
   * they only say when to stop. Default false. Clients that share a limit would be paced by each other's
   * use.
   */
  followRateLimit?: boolean
  /**
   * Milliseconds of nothing but failed connections and timeouts after which a scope is down: what waits
   * is rejected with a `ScopeDownError`, and one request at a time is let through to see whether the
   * server is back. Default false. Whether to wait for a server that is away is the program's own matter:
   * a crawl does, a page does not.
   */
  downAfter?: number | false
  /**
   * Let robots.txt have no say in the pace of this scope, and do not warn about it. Default false.
   * Whoever asks for robots.txt means to keep to it. Scrapy: ignore_robots_txt.
   */
  ignoreRobotsTxt?: boolean
  /**
   * Units that the scope may consume per window: a number, `{ limit, window, strict }`, or a list of
   * those. Default none. What a budget is, only its owner knows. Scrapy: quota.
   */
  quota?: number | QuotaOptions | readonly (number | QuotaOptions)[]
  /**
   * The window of a quota that names none, in milliseconds. It starts with the scope's first request.
   * Default 60000. Most limits of APIs are per minute; the draft's number. Scrapy: THROTTLING_WINDOW,
   * window.
   */
  window?: number
  /**
   * Rolling window for quotas that omit `strict`: never more than the quota in any window-long span.
   * Default false. Most servers count in fixed windows, and a rolling one remembers each send.
   */
  strict?: boolean
  /**
   * A strategy of your own in place of backoff and rampup. In `defaults` a function that makes one for
   * each scope. Default none. The ones here need nobody to write code. Scrapy: THROTTLING_SCOPE_MANAGER,
   * manager.
   */
  manager?: ScopeManager | MakeScopeManager
}

/** A rate with its own span, or with bursts. */
export interface RateOptions {
  /** Requests per span; fractions welcome. A number above 0, at most 1000000000. */
  limit: number
  /** The span in milliseconds. Default 1000. As for a rate that is a plain number. */
  per?: number
  /**
   * How many may follow each other at once after an idle time. A whole number from 1 to 1000000. Default
   * 1. Evenly spaced is what no server refuses.
   */
  burst?: number
}

/** A budget per window. */
export interface QuotaOptions {
  /** Units per window. A number above 0, at most 1000000000000. Scrapy: quota. */
  limit: number
  /**
   * The window in milliseconds. Default the scope's `window`. Said once for all quotas of the scope.
   * Scrapy: window.
   */
  window?: number
  /**
   * Whether the window rolls: never more than the limit in any window-long span. Default the scope's
   * `strict`. Said once for all quotas of the scope.
   */
  strict?: boolean
}

/** Scrapy's AutoThrottle: the delay follows the latency. */
export interface AutoThrottleOptions {
  /**
   * Milliseconds of delay before anything is known, and never less than the scope's `delay`. Default
   * 5000. Scrapy's number. Scrapy: AUTOTHROTTLE_START_DELAY.
   */
  startDelay?: number
  /**
   * The greatest delay in milliseconds. It wins where the scope's `delay` is larger, as in Scrapy.
   * Default 60000. Scrapy's number. Scrapy: AUTOTHROTTLE_MAX_DELAY.
   */
  maxDelay?: number
  /**
   * How many requests the server should have in its hands on average; fractions welcome. A number above
   * 0. Default 1. Scrapy's number: the most careful that is not idle. Scrapy:
   * AUTOTHROTTLE_TARGET_CONCURRENCY.
   */
  targetConcurrency?: number
}

/** A longer delay after bad answers, and the way back. */
export interface BackoffOptions {
  /**
   * Statuses that are bad answers. A 403 of a rate limit (it names a wait, or nothing is left) counts as
   * a 429. Default 429, 430, 502, 503, 504, 520, 521, 522, 523, 524, 529; without 430 and 529 under
   * Scrapy's names. Too many requests, and a server (or the CDN before it) that cannot cope. A 500 is
   * mostly a bug. Scrapy: BACKOFF_HTTP_CODES.
   */
  statusCodes?: readonly number[]
  /**
   * Failures that are bad answers. An abort by the caller never is. Default timeout, connection. A server
   * under load drops connections and answers late. Scrapy: BACKOFF_EXCEPTIONS.
   */
  errors?: readonly ('timeout' | 'connection')[]
  /**
   * What a bad answer multiplies the delay by, once per flight. A number above 1, at most 1000. Default
   * 2. Ten steps reach any limit; the draft's number. Scrapy: BACKOFF_DELAY_FACTOR.
   */
  factor?: number
  /**
   * Milliseconds of delay after the first bad answer, at least. Default 1000. Less is not felt by a
   * server that is overloaded; the draft's number. Scrapy: BACKOFF_MIN_DELAY.
   */
  minDelay?: number
  /**
   * The longest delay in milliseconds. Default 300000; a longer `delay` or gap of `rate`. A program that
   * waits for longer looks as if it hangs; the draft's number. Scrapy: BACKOFF_MAX_DELAY.
   */
  maxDelay?: number
  /**
   * The longest wait in milliseconds that a server may ask for (`Retry-After`, a reset with nothing
   * left). A longer one is cut, with the warning `hold-cut`. Default 86400000; `BACKOFF_MAX_DELAY` under
   * Scrapy's names. What a server asks for is kept; but one wrong field must not silence a host for a
   * year.
   */
  maxHold?: number
  /**
   * Milliseconds without a bad answer (and with a good one) before a step back. Default 60000. Most
   * limits are per minute; the draft's number. Scrapy: BACKOFF_WINDOW.
   */
  window?: number
  /**
   * Spread of the delay while backing off, instead of the scope's; no gap is shorter than the scope's can
   * be. Default 0.1. Clients that were refused together should not come back together; more would break
   * what a server asked for. Scrapy: BACKOFF_JITTER.
   */
  jitter?: Jitter
  /**
   * What slots are multiplied by when the delay is at its longest and bad answers go on. A number above 0
   * and below 1. Default 0.5. As the delay's factor, the other way round; the draft's number. Scrapy:
   * BACKOFF_CONCURRENCY_FACTOR.
   */
  concurrencyFactor?: number
}

/** Find the server's limit and stay just below it. */
export interface RampupOptions {
  /**
   * Bad answers per `backoff.window` that finding the limit may cost: a number, or a range [low, high],
   * of which the middle is aimed at. Default 1. One a minute is heard by no operator; the draft's number.
   * Scrapy: RAMPUP_BACKOFF_TARGET.
   */
  backoffTarget?: number | readonly [low: number, high: number]
  /**
   * Milliseconds of delay before anything is known. Default 1000; the scope's own delay if that is
   * longer. A second is polite everywhere, and ten doublings from the fastest server.
   */
  startDelay?: number
  /** The least delay in milliseconds. Default 0. The server's limit is the bound. */
  minDelay?: number
  /**
   * The most slots. A whole number from 1 to 1000000. Default the global `concurrency`. The limit of all
   * scopes together is one already.
   */
  maxConcurrency?: number
}

/** Retries of `throttle.fetch`. Scrapy: RETRY_ENABLED and its kin. */
export interface RetryOptions {
  /** Attempts after the first. A whole number from 1 to 1000000. Scrapy: RETRY_TIMES. */
  limit: number
  /**
   * Statuses to try again. A 403 of a rate limit counts as a 429. Default 408, 413, 429, 430, 500, 502,
   * 503, 504, 520, 521, 522, 523, 524, 529; 413 only with `Retry-After`. Timeouts, refusals and servers
   * (or the CDN before them) that cannot cope. Scrapy: RETRY_HTTP_CODES.
   */
  statusCodes?: readonly number[]
  /**
   * Methods to try again. Default GET, HEAD, PUT, DELETE, OPTIONS, TRACE. The idempotent ones (RFC 9110
   * §9.2.2): to send them twice does no harm.
   */
  methods?: readonly string[]
  /**
   * The longest `Retry-After` to wait for, in milliseconds. Default 300000. A program that waits for
   * longer looks as if it hangs.
   */
  maxRetryAfter?: number
  /**
   * What to do beyond it: fail with a `RetryAfterTooLongError`, wait all the same, or cap the wait at
   * `maxRetryAfter`, which is earlier than the server asked. The scope is held for as long as
   * `backoff.maxHold` allows, so cap that, too. Default fail. The only one that neither hangs nor comes
   * too early.
   */
  longRetryAfter?: 'fail' | 'wait' | 'cap'
}

/** How `throttle.fetch` asks for robots.txt. */
export interface RobotsOptions {
  /**
   * Keep to `Crawl-delay` and `Request-rate`, and to `rules` if there are any. Default true. Whoever
   * gives `robots` wants it. Scrapy: ROBOTSTXT_OBEY, THROTTLING_ROBOTSTXT_OBEY.
   */
  obey?: boolean
  /**
   * The product token to look for, and the `User-Agent` to ask with. Scrapy: ROBOTSTXT_USER_AGENT,
   * USER_AGENT.
   */
  userAgent: string
  /**
   * The longest delay to believe, in milliseconds. Default 60000. Longer ones are mostly meant to keep
   * robots out; the draft's number. Scrapy: THROTTLING_ROBOTSTXT_MAX_DELAY.
   */
  maxDelay?: number
  /**
   * Allow and Disallow: `rules` of autothrottle/robots. Default only the pace is obeyed. Its library is a
   * dependency that not everybody needs.
   */
  rules?: RobotsRules
}

/** How one server's headers are to be read. Names are those of header fields, in any case. */
export interface HeaderMap {
  /** What a plain number in a reset means. Default s. Seconds are what most servers mean. */
  resetUnit?: 's' | 'ms'
  /** What a plain number in `Retry-After` means. Default s. RFC 9110 §10.2.3. */
  retryAfterUnit?: 's' | 'ms'
  /**
   * The field that says how long to wait, read as `Retry-After`. Default none. The usual fields are read
   * without.
   */
  retryAfter?: string
  /**
   * The field that holds a quota's limit, read as `X-RateLimit-Limit`. Default none. The usual fields are
   * read without.
   */
  limit?: string
  /**
   * The field that holds what is left of it, read as `X-RateLimit-Remaining`. Default none. The usual
   * fields are read without.
   */
  remaining?: string
  /**
   * The field that says when it resets, read as `X-RateLimit-Reset`. Default none. The usual fields are
   * read without.
   */
  reset?: string
}

/** What to simulate. */
export interface SimulationOptions {
  /** The server: its `model` and what that takes. Its scope is called `server`. */
  server: SimulatedServer
  /**
   * Further servers, by the names of their scopes. Each client sends to all of them in turn. Default {}.
   * One limit is easier to follow.
   */
  servers?: Record<string, SimulatedServer>
  /** The way there and back. Default {}. A path across a continent. */
  network?: SimulatedNetwork
  /** What each client has to send. Default {}. Something always waits: what a throttle is for. */
  load?: SimulatedLoad
  /** Options of the throttle, as for `createThrottle`. Default {}. A throttle's own defaults. */
  throttle?: EngineOptions
  /**
   * Clients, each with a throttle of its own. A whole number from 1 to 1000. Default 1. Others make it
   * harder to read.
   */
  clients?: number
  /** Milliseconds of simulated time. Default 60000. A window of most limits. */
  duration?: number
  /**
   * Makes the network's jitter repeat exactly, and that of throttles without a seed. Default 1. A run
   * that cannot be repeated proves nothing.
   */
  seed?: number
}

/** A server and its limit. What its model does not know is an error. */
export interface SimulatedServer {
  /** What kind of limit it has. */
  model:
    | 'fixed-window'
    | 'sliding-window'
    | 'sliding-counter'
    | 'token-bucket'
    | 'nginx'
    | 'gcra'
    | 'concurrency'
    | 'queue'
  /** `token-bucket`, `nginx`, `gcra`: requests per second. A number above 0, at most 100000. */
  rate?: number
  /**
   * `token-bucket`: the most tokens. A number above 0, at most 1000000. Default 1. A bucket without burst
   * is the strictest.
   */
  depth?: number
  /**
   * `nginx`, `gcra`: requests at once beyond the first. A whole number from 0 to 1000000. Default 0.
   * nginx's own default.
   */
  burst?: number
  /**
   * `nginx`: whether what is above the rate is delayed; else it is `nodelay`. Default false. Most set
   * `nodelay`.
   */
  delay?: boolean
  /**
   * `fixed-window`, `sliding-window`, `sliding-counter`: requests per window. A whole number from 1 to
   * 1000000.
   */
  limit?: number
  /**
   * `fixed-window`, `sliding-window`, `sliding-counter`: milliseconds. Default 60000. Most limits of APIs
   * are per minute.
   */
  window?: number
  /** `concurrency`: requests at a time; one more is a 503. A whole number from 1 to 1000000. */
  slots?: number
  /** `queue`: requests at a time; more wait. A whole number from 1 to 1000000. */
  workers?: number
  /** `concurrency`, `queue`: milliseconds a request takes. */
  service?: number
  /**
   * `concurrency`, `queue`: how far that strays, as a share to both sides. A number above 0 and below 1.
   * Default none. Exact times are easier to follow.
   */
  spread?: number
  /**
   * `queue`: places in it; beyond them 503. A whole number from 1 to 1000000. Default 1000000. No bound
   * in practice.
   */
  room?: number
  /**
   * `queue`: milliseconds after which the gateway before it answers 504. Default 30000. Gateways' usual
   * half minute.
   */
  patience?: number
  /**
   * Milliseconds for which a client that was refused is refused, anew with every request. Default none.
   * Most servers do not ban.
   */
  ban?: number
  /**
   * How it says no: with this status, by never answering, or by closing the connection. Default 429; of
   * `nginx`, `concurrency` and `queue` 503. What each of them says unless it is told otherwise.
   */
  refusal?: '429' | '503' | '502' | '403' | '401' | 'silence' | 'reset'
  /** Each refusal lowers the limit for a while. Default none. Limits stay as a rule. */
  adaptive?: SimulatedAdaptive
  /** A second limit over a longer time. Default none. One limit is easier to follow. */
  allowance?: SimulatedAllowance
  /**
   * The share of requests that fail at once whatever their pace. A number above 0 and below 1. Default
   * none. A server that works.
   */
  failing?: number
  /**
   * With what status they do. A whole number from 400 to 599. Default 503. What an overloaded server
   * says.
   */
  failingStatus?: number
  /** The limit becomes another. Default none. Limits stay as a rule. */
  step?: SimulatedStep
  /** The limit moves up and down. Default none. Limits stay as a rule. */
  drift?: SimulatedDrift
  /** For a while everything is a 503. Default none. A server that works. */
  outage?: SimulatedOutage
  /** Traffic of others on the same limit. Default none. Alone, a limit is easiest to find. */
  others?: SimulatedOthers
  /**
   * So many behind a balancer, each with this limit; a request goes to one of them by chance. A whole
   * number from 1 to 1000. Default 1. One server.
   */
  replicas?: number
  /**
   * Milliseconds that a served request takes behind the limit; a refused one does not. Default 0. The
   * limit alone is looked at.
   */
  upstream?: number
  /**
   * How far that strays, as a share to both sides. A number above 0 and below 1. Default none. Exact
   * times are easier to follow.
   */
  upstreamSpread?: number
  /**
   * At most so many milliseconds before the server looks at a request, drawn for each. Default 0. Exact
   * times are easier to follow.
   */
  jitter?: number
  /**
   * Milliseconds that `Retry-After` says on every refusal, whatever the truth. Default the truth. Most
   * servers say what is true.
   */
  retryAfter?: number
  /**
   * Header fields: none, `Retry-After` on refusals, or `RateLimit-*` on every answer as well. Default
   * nothing. The hardest case: a limit that nobody tells.
   */
  says?: 'nothing' | 'retry-after' | 'rate-limit'
}

/** The limit becomes another. */
export interface SimulatedStep {
  /** When, in milliseconds. */
  at: number
  /** What the limit is multiplied by. A number above 0, at most 1000. */
  factor: number
}

/** The limit moves up and down, as a triangle. */
export interface SimulatedDrift {
  /** There and back, in milliseconds. */
  period: number
  /** What the limit is multiplied by at the far end. A number above 0, at most 1000. */
  factor: number
}

/** Each refusal lowers the limit for a while. */
export interface SimulatedAdaptive {
  /** What a refusal multiplies the limit by. A number above 0 and below 1. */
  factor: number
  /**
   * The share of the whole limit that comes back a second. A number above 0 and below 1. Default 0.01. It
   * is forgiven after some two minutes.
   */
  recovery?: number
}

/** A second limit over a longer time, on a grid from the start. */
export interface SimulatedAllowance {
  /** Requests per window. A whole number from 1 to 1000000. */
  limit: number
  /** Milliseconds. Default 86400000. Most quotas are per day. */
  window?: number
}

/** For a while everything is a 503. */
export interface SimulatedOutage {
  /** When it begins, in milliseconds. */
  at: number
  /** How long it lasts, in milliseconds. */
  length: number
}

/** Traffic of others on the same limit. */
export interface SimulatedOthers {
  /**
   * Their requests per second while they are there, at times by chance (Poisson). A number above 0, at
   * most 100000.
   */
  rate: number
  /** They come once in so many milliseconds. Default 60000. A window of most limits. */
  period?: number
  /**
   * The share of the period for which they stay, at its end. A number above 0 and below 1. Default 0.5.
   * As long there as away.
   */
  share?: number
}

/** The way there and back. */
export interface SimulatedNetwork {
  /**
   * Milliseconds there and back, without the server's own time. Default 100. A path across a continent.
   */
  latency?: number
  /**
   * At most so many more, each way, drawn for each request: they may overtake each other. Default 0.
   * Exact times are easier to follow.
   */
  jitter?: number
  /**
   * The share of requests that are late by `slowBy` more: a packet was lost. A number above 0 and below
   * 1. Default none. Nothing is lost.
   */
  slow?: number
  /**
   * How late those are, in milliseconds. Default 200. TCP's least retransmission time, RFC 6298 as Linux
   * has it.
   */
  slowBy?: number
  /** Milliseconds by which a client's timers fire late. Default 0. Exact timers are easier to follow. */
  timerLag?: number
  /** At most so many more, drawn for each timer. Default 0. Exact timers are easier to follow. */
  timerJitter?: number
  /** Milliseconds after which a client gives up. Default 60000. A minute is many clients' own. */
  timeout?: number
}

/** What each client has to send. */
export interface SimulatedLoad {
  /**
   * New requests per second, evenly. Without it something always waits. A number above 0, at most 100000.
   * Default none. Something always waits.
   */
  rate?: number
  /**
   * So many in all; without it there is no end. A whole number from 1 to 4294967295. Default none. As
   * many as there is time for.
   */
  requests?: number
  /**
   * What requests cost of a quota, in turn: `[1, 1, 10]`. Servers count requests, whatever they cost.
   * Default all 1. Requests alone, as most quotas count.
   */
  costs?: readonly number[]
}

/** What only a driver reads. */
export const DRIVER_KEYS = [
  'clock',
  'snapshot',
  'shared',
  'fetch',
  'requestTimeout',
  'robots',
  'hints',
  'getScopes',
  'getResponseBackoff',
  'getErrorBackoff',
  'getResponseDelay',
  'getHints',
  'redirects',
  'redirectMaxDelay',
  'release',
  'debug',
  'warnings',
  'unref',
] as const

// Defaults of settings that the engine does not read.
export const REDIRECT_MAX_DELAY = 300000
export const RETRY_METHODS = ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'TRACE']
export const RETRY_MAX_RETRY_AFTER = 300000
export const ROBOTS_MAX_DELAY = 60000
