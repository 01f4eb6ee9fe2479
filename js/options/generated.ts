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
   * scope ramps. As in Scrapy; `rampup` may find that a server bears more. Scrapy: CONCURRENT_REQUESTS.
   */
  concurrency?: number
  /**
   * Settings of every scope, unless `scopes` overrides them. All but `concurrency` may stand at the top
   * instead: `{ rate: 5 }` is `{ defaults: { rate: 5 } }`. Both at once are an error. Default {}. Each
   * setting's own default is polite.
   */
  defaults?: ScopeOptions
  /**
   * Settings of single scopes, by name. By default a scope is the host of the URL. Default {}. No host is
   * known before the first request. Scrapy: THROTTLING_SCOPES, DOWNLOAD_SLOTS.
   */
  scopes?: Record<string, ScopeOptions>
  /**
   * Milliseconds of only bad answers after which a scope has stalled: one `stall` event, or a `warning`
   * if it has no listener. Default 120000. A person who waits for a program looks after two minutes.
   */
  stallAfter?: number
  /**
   * Makes jitter repeat exactly. Default drawn from the system on first use. Two clients with the same
   * seed would send in step.
   */
  seed?: number
  /**
   * Beyond this many waiting requests, a new one is a `QueueFullError`. A whole number from 1 to
   * 100000000. Default none. How much memory a program may use is your choice; `warnThreshold` warns
   * before.
   */
  maxWaiting?: number
  /**
   * Beyond this many scopes, the least recently used idle ones are forgotten. Scopes that hold, are
   * paused, have used quota or wait out a delay stay. A whole number from 1 to 100000000. Default 100000.
   * A scope takes some hundred bytes; a crawl visits fewer hosts in an hour.
   */
  maxScopes?: number
  /**
   * This many waiting requests cause one warning. A whole number from 1 to 100000000. Default 500. Each
   * keeps its promise and context in memory; `throttle.map` pulls work instead. The draft's number.
   * Scrapy: DELAYED_REQUESTS_WARN_THRESHOLD.
   */
  warnThreshold?: number
  /**
   * Whether and how `throttle.fetch` repeats requests. Default none. `fetch` does not, and sending twice
   * is your decision. Scrapy: RETRY_TIMES, RETRY_HTTP_CODES.
   */
  retry?: RetryOptions
}

/** What `createThrottle` is told. */
export interface ThrottleOptions extends EngineOptions {
  /**
   * Where time and timers come from. Tests use `FakeClock` of autothrottle/testing. Default the system's.
   * Programs run in real time.
   */
  clock?: Clock
  /**
   * Learned state to go on with. A damaged or newer one is a `SnapshotError`. Default none. Where to keep
   * it is your choice.
   */
  snapshot?: Snapshot
  /**
   * One limit for many processes (docs/shared.md). Give all of them the same options. Default none. Most
   * programs are one process.
   */
  shared?: Shared
  /**
   * What `throttle.fetch` sends with. Default `globalThis.fetch`, looked up at each call. If a test or an
   * agent replaces the global one, it means all calls.
   */
  fetch?: typeof fetch
  /**
   * Milliseconds from the send to the headers, after which a request has failed with `timeout`. The wait
   * before the send does not count. Default none. `fetch` has no limit either. Scrapy: DOWNLOAD_TIMEOUT.
   */
  requestTimeout?: number
  /**
   * Whether `throttle.fetch` asks each host for its robots.txt first. Default none. A client of an API
   * has no use for it; a crawler needs a name. Scrapy: ROBOTSTXT_OBEY.
   */
  robots?: RobotsOptions
  /**
   * How to read the headers of servers with a dialect of their own, by scope name. Default {}. The
   * formats of docs/hints.md need no setting.
   */
  hints?: Record<string, HeaderMap>
  /**
   * Names the scopes of a request: a name, names, or a map of scope to expected cost, also as a promise.
   * An exception rejects the request with a `ManagerError`. Helpers: `byHost`, `byEndpoint`,
   * `byDomainHierarchy`, `addScope`. Default none. Servers limit by host. Scrapy: THROTTLING_MANAGER.
   */
  getScopes?: GetScopes
  /**
   * Names the scopes that a response makes back off, if its status does not say it. The slot is kept
   * until it has answered; `undefined` lets the status count. Default none. A status says it for nearly
   * all servers. Scrapy: THROTTLING_MANAGER.
   */
  getResponseBackoff?: GetResponseBackoff
  /**
   * Names the scopes that a failure makes back off. Default none. A failure concerns all scopes of its
   * request. Scrapy: THROTTLING_MANAGER.
   */
  getErrorBackoff?: GetErrorBackoff
  /**
   * How many milliseconds a response asks to wait, in place of its headers. Default none. Headers are
   * read without it. Scrapy: THROTTLING_MANAGER.
   */
  getResponseDelay?: GetResponseDelay
  /**
   * Finds hints in bodies, as of Shopify and Discord: read a clone. The slot is kept until it has
   * answered. `undefined`: the headers count. An exception rejects the request with a `ManagerError`.
   * Default none. Bodies are yours.
   */
  getHints?: GetHints
  /**
   * Who follows redirects: `fetch` itself, as one request, or the throttle, where each hop is a request
   * of its own scope. Browsers hide redirects, so there only `native` works. Default `native`. It works
   * everywhere.
   */
  redirects?: 'native' | 'throttle'
  /**
   * With `redirects: 'throttle'`: the longest `Retry-After` of a redirect to wait for, in milliseconds.
   * Beyond it the redirect itself is the answer. Default 300000. As long as `backoff.maxDelay` and
   * `retry.maxRetryAfter`. Scrapy: REDIRECT_MAX_DELAY.
   */
  redirectMaxDelay?: number
  /**
   * When a request gives its slots back: at the headers, or when the body was read, cancelled or has
   * failed. An unread body keeps them until it is garbage-collected. Default `headers`. A forgotten body
   * would keep its slot.
   */
  release?: 'headers' | 'body'
  /**
   * Prints AutoThrottle's line for each response with `console.debug`. Default false. A library is
   * silent. Scrapy: AUTOTHROTTLE_DEBUG.
   */
  debug?: boolean
  /**
   * Whether a warning without a listener is a line of `console.warn`, once per code and scope. Default
   * true. You should learn of a setting without effect before the ban.
   */
  warnings?: boolean
  /**
   * Whether a Node, Deno or Bun process may end while requests wait. Default false. You asked for these
   * requests.
   */
  unref?: boolean
}

/** Settings of one scope. */
export interface ScopeOptions {
  /**
   * Requests a second, evenly spaced: `5`, `'100/min'` (`/s`, `/min`, `/h`, `/day`), or `{ limit, per,
   * burst }`. A request counts as its `cost`, 1 unless you say another. It replaces `delay` and
   * `slotDelay`. `jitter` is then 0 and `concurrency` the global limit, unless you set them in the same
   * place. A `jitter` puts each request off by up to that share of a gap; the mean stays. Default none.
   * The default of `delay` is a pace already.
   */
  rate?: Rate
  /**
   * Slots: requests in flight in this scope. A whole number from 1 to 1000000. Default 1; with `rate` the
   * global limit. A visitor with a browser tab does one at a time. Scrapy:
   * CONCURRENT_REQUESTS_PER_DOMAIN.
   */
  concurrency?: number
  /**
   * Milliseconds between two sends of the scope, from send to send. Default 1000; 0 beside `rate`,
   * `quota` or `rampup`. A second is polite everywhere. Scrapy: DOWNLOAD_DELAY.
   */
  delay?: number
  /**
   * Milliseconds between two sends of one slot, from send to send. Default 1000; 0 beside `delay`,
   * `rate`, `quota`, `rampup` or `autothrottle`. The draft's second. Beside another pace it would make
   * five a second one. Scrapy: DOWNLOAD_DELAY_PER_SLOT.
   */
  slotDelay?: number
  /**
   * Spread of the delay, drawn once per send: 0.2 is ±20 %, [-0.1, 0.3] is from -10 % to +30 %, true is
   * ±50 %. The mean is the delay. Default true; with `rate` 0. As in Scrapy: only programs send like
   * clockwork. Scrapy: RANDOMIZE_DOWNLOAD_DELAY, DOWNLOAD_DELAY_JITTER.
   */
  jitter?: Jitter
  /**
   * Let the delay follow the latency: Scrapy's AutoThrottle. The scope's `delay` is then the least delay.
   * Default false. Scrapy's is off, too. Scrapy: AUTOTHROTTLE_ENABLED.
   */
  autothrottle?: boolean | AutoThrottleOptions
  /**
   * Slow down after bad answers. If false, only waits that the server asks for (`Retry-After`) count.
   * Default true. A refusal means too fast.
   */
  backoff?: boolean | BackoffOptions
  /**
   * Find the server's limit and stay just below it. `delay`, `slotDelay` and `concurrency` of the
   * defaults are no bounds then; those of the scope itself are. Default false. To look for a limit costs
   * refusals.
   */
  rampup?: boolean | RampupOptions
  /**
   * Pace by `RateLimit` headers: the slower of reset / remaining and window / limit. Without it they only
   * say when to stop. Default false. Clients that share a limit would be paced by each other's use.
   */
  followRateLimit?: boolean
  /**
   * Milliseconds of only failed connections and timeouts after which a scope is down. Waiting requests
   * are then rejected with a `ScopeDownError`, and one request at a time probes the server. Default
   * false. A crawl waits for a server that is away, a page does not.
   */
  downAfter?: number | false
  /**
   * Ignore `Crawl-delay` for this scope, without a warning. Default false. If you set `robots`, you want
   * it obeyed. Scrapy: ignore_robots_txt.
   */
  ignoreRobotsTxt?: boolean
  /**
   * Units that the scope may consume per window: a number, `{ limit, window, strict }`, or a list of
   * those. Default none. Only you know your budget. Scrapy: quota.
   */
  quota?: number | QuotaOptions | readonly (number | QuotaOptions)[]
  /**
   * The window of quotas without one, in milliseconds. It starts with the scope's first request. Default
   * 60000. Most limits of APIs are per minute; the draft's number. Scrapy: THROTTLING_WINDOW, window.
   */
  window?: number
  /**
   * Rolling window for quotas that omit `strict`: no span of the window's length holds more. Default
   * false. Most servers count in fixed windows, and a rolling one remembers each send.
   */
  strict?: boolean
  /**
   * A strategy of your own in place of backoff and rampup. In `defaults` a function that makes one for
   * each scope. Default none. The built-in ones need no code. Scrapy: THROTTLING_SCOPE_MANAGER, manager.
   */
  manager?: ScopeManager | MakeScopeManager
}

/** A rate with its own span, or with bursts. */
export interface RateOptions {
  /**
   * Units of cost per span (requests, where no other cost is said); fractions welcome. A number above 0,
   * at most 1000000000.
   */
  limit: number
  /** The span in milliseconds. Default 1000. As for a rate that is a number. */
  per?: number
  /**
   * How many units of cost may leave at once, at the start and after an idle time. A request that costs
   * more is a `CostExceedsQuotaError`. For tokens a minute: as many as `limit`. A whole number from 1 to
   * 1000000000. Default 1. No server refuses even gaps.
   */
  burst?: number
}

/** A budget per window. */
export interface QuotaOptions {
  /** Units per window. A number above 0, at most 1000000000000. Scrapy: quota. */
  limit: number
  /**
   * The window in milliseconds. Default the scope's `window`. One for all quotas of the scope. Scrapy:
   * window.
   */
  window?: number
  /**
   * Whether the window rolls: no span of its length holds more. Default the scope's `strict`. One for all
   * quotas of the scope.
   */
  strict?: boolean
}

/** Scrapy's AutoThrottle: the delay follows the latency. */
export interface AutoThrottleOptions {
  /**
   * Milliseconds of delay before the first answer, and never less than the scope's `delay`. Default 5000.
   * Scrapy's number. Scrapy: AUTOTHROTTLE_START_DELAY.
   */
  startDelay?: number
  /**
   * The longest delay in milliseconds. It wins over a larger `delay` of the scope, as in Scrapy. Default
   * 60000. Scrapy's number. Scrapy: AUTOTHROTTLE_MAX_DELAY.
   */
  maxDelay?: number
  /**
   * Requests that the server should work on at a time, on average; fractions are allowed. A number above
   * 0. Default 1. Scrapy's number. Scrapy: AUTOTHROTTLE_TARGET_CONCURRENCY.
   */
  targetConcurrency?: number
}

/** A longer delay after bad answers, and the way back. */
export interface BackoffOptions {
  /**
   * Statuses that are bad answers. A 403 of a rate limit counts as a 429. Default 429, 430, 502, 503,
   * 504, 520, 521, 522, 523, 524, 529; without 430 and 529 under Scrapy's names. Refusals, and servers
   * that cannot cope. A 500 is mostly a bug. Scrapy: BACKOFF_HTTP_CODES.
   */
  statusCodes?: readonly number[]
  /**
   * Failures that are bad answers. Your own aborts never are. Default timeout, connection. A server under
   * load drops connections and answers late. Scrapy: BACKOFF_EXCEPTIONS.
   */
  errors?: readonly ('timeout' | 'connection')[]
  /**
   * What a bad answer multiplies the delay by, once per flight. A number above 1, at most 1000. Default
   * 2. Ten steps reach any limit; the draft's number. Scrapy: BACKOFF_DELAY_FACTOR.
   */
  factor?: number
  /**
   * The least delay after a bad answer, in milliseconds. Default 1000. An overloaded server does not feel
   * less; the draft's number. Scrapy: BACKOFF_MIN_DELAY.
   */
  minDelay?: number
  /**
   * The longest delay in milliseconds. Default 300000; a longer `delay` or gap of `rate`. A program that
   * waits longer looks as if it hangs; the draft's number. Scrapy: BACKOFF_MAX_DELAY.
   */
  maxDelay?: number
  /**
   * The longest wait in milliseconds that a server may ask for (`Retry-After`, a reset with none left). A
   * longer one is cut, with the warning `hold-cut`. Default 86400000; `BACKOFF_MAX_DELAY` under Scrapy's
   * names. One wrong field must not silence a host for a year.
   */
  maxHold?: number
  /**
   * Milliseconds without a bad answer, and with a good one, before a step back. Default 60000. Most
   * limits are per minute; the draft's number. Scrapy: BACKOFF_WINDOW.
   */
  window?: number
  /**
   * Spread of the delay while backing off, in place of the scope's. No gap is shorter than the scope's
   * can be. Default 0.1. Clients that were refused together should not come back together. Scrapy:
   * BACKOFF_JITTER.
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
   * Bad answers per `backoff.window` that the search may cost: a number, or a range [low, high] whose
   * middle is the aim. Default 1. No operator notices one a minute; the draft's number. Scrapy:
   * RAMPUP_BACKOFF_TARGET.
   */
  backoffTarget?: number | readonly [low: number, high: number]
  /**
   * Milliseconds of delay before the first answer. Default 1000; the scope's own delay if that is longer.
   * A second is polite everywhere, and ten doublings from the fastest server.
   */
  startDelay?: number
  /** The least delay in milliseconds. Default 0. The server's limit is the bound. */
  minDelay?: number
  /**
   * The most slots. A whole number from 1 to 1000000. Default the global `concurrency`. The limit of all
   * scopes together.
   */
  maxConcurrency?: number
}

/** Retries of `throttle.fetch`. Scrapy: RETRY_ENABLED, RETRY_TIMES. */
export interface RetryOptions {
  /** Attempts after the first. A whole number from 1 to 1000000. Scrapy: RETRY_TIMES. */
  limit: number
  /**
   * Statuses to retry. A 403 of a rate limit counts as a 429. Default 408, 413, 429, 430, 500, 502, 503,
   * 504, 520, 521, 522, 523, 524, 529; 413 only with `Retry-After`. Timeouts, refusals and servers that
   * cannot cope. Scrapy: RETRY_HTTP_CODES.
   */
  statusCodes?: readonly number[]
  /**
   * Methods to retry. Default GET, HEAD, PUT, DELETE, OPTIONS, TRACE. The idempotent ones (RFC 9110
   * §9.2.2).
   */
  methods?: readonly string[]
  /**
   * The longest `Retry-After` to wait for, in milliseconds. Default 300000. A program that waits longer
   * looks as if it hangs.
   */
  maxRetryAfter?: number
  /**
   * Beyond it: `fail` with a `RetryAfterTooLongError`, `wait` as long as the server asks, or `cap` the
   * wait at `maxRetryAfter`, earlier than it asked. A hold of the scope lasts up to `backoff.maxHold`, so
   * cap that, too. Default `fail`. It neither hangs nor comes too early.
   */
  longRetryAfter?: 'fail' | 'wait' | 'cap'
}

/** How `throttle.fetch` asks for robots.txt. */
export interface RobotsOptions {
  /**
   * Obey `Crawl-delay` and `Request-rate`, and `rules` if you give them. Default true. If you set
   * `robots`, you want it obeyed. Scrapy: ROBOTSTXT_OBEY, THROTTLING_ROBOTSTXT_OBEY.
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
   * Allow and Disallow: `rules` of autothrottle/robots. Default only the pace is obeyed. It needs a
   * library.
   */
  rules?: RobotsRules
}

/** How one server's headers are to be read. Names are those of header fields, in any case. */
export interface HeaderMap {
  /** The unit of a plain number in a reset. Default `s`. Most servers mean seconds. */
  resetUnit?: 's' | 'ms'
  /** The unit of a plain number in `Retry-After`. Default `s`. RFC 9110 §10.2.3. */
  retryAfterUnit?: 's' | 'ms'
  /** The field with the wait, read as `Retry-After`. Default none. Usual fields need no name. */
  retryAfter?: string
  /**
   * The field with a quota's limit, read as `X-RateLimit-Limit`. Default none. Usual fields need no name.
   */
  limit?: string
  /**
   * The field with what is left, read as `X-RateLimit-Remaining`. Default none. Usual fields need no
   * name.
   */
  remaining?: string
  /** The field with the reset, read as `X-RateLimit-Reset`. Default none. Usual fields need no name. */
  reset?: string
}

/** What to simulate. */
export interface SimulationOptions {
  /** The server: its `model` and options. Its scope is called `server`. */
  server: SimulatedServer
  /**
   * Further servers, by the names of their scopes. Each client sends to all of them in turn. Default {}.
   * One limit is easier to follow.
   */
  servers?: Record<string, SimulatedServer>
  /** The network between client and server. Default {}. A path across a continent. */
  network?: SimulatedNetwork
  /** What each client has to send. Default {}. Some request always waits. */
  load?: SimulatedLoad
  /** Options of the throttle, as for `createThrottle`. Default {}. A throttle's own defaults. */
  throttle?: EngineOptions
  /**
   * Clients, each with a throttle of its own. A whole number from 1 to 1000. Default 1. More are harder
   * to read.
   */
  clients?: number
  /** Milliseconds of simulated time. Default 60000. The window of most limits. */
  duration?: number
  /**
   * Makes the network's jitter repeat exactly, and that of throttles without a seed. Default 1. A run
   * that cannot be repeated proves no claim.
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
   * `nginx`: whether requests above the rate are delayed; else it is `nodelay`. Default false. Most set
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
   * `concurrency`, `queue`: how far the time strays, as a share to both sides. A number above 0 and below
   * 1. Default none. Exact times are easier to follow.
   */
  spread?: number
  /**
   * `queue`: places in it; one more is a 503. A whole number from 1 to 1000000. Default 1000000. No bound
   * in practice.
   */
  room?: number
  /**
   * `queue`: milliseconds after which the gateway answers 504. Default 30000. Gateways' usual half
   * minute.
   */
  patience?: number
  /**
   * Milliseconds for which a refused client stays refused, anew with each request. Default none. Most
   * servers do not ban.
   */
  ban?: number
  /**
   * How it refuses: with this status, by silence, or by closing the connection. Default 429; of `nginx`,
   * `concurrency` and `queue` 503. Each server's usual refusal.
   */
  refusal?: '429' | '503' | '502' | '403' | '401' | 'silence' | 'reset'
  /** Each refusal lowers the limit for a while. Default none. Limits stay as a rule. */
  adaptive?: SimulatedAdaptive
  /** A second limit over a longer time. Default none. One limit is easier to follow. */
  allowance?: SimulatedAllowance
  /**
   * The share of requests that fail at once, whatever the pace. A number above 0 and below 1. Default
   * none. A server that works.
   */
  failing?: number
  /**
   * The status of these failures. A whole number from 400 to 599. Default 503. An overloaded server
   * answers 503.
   */
  failingStatus?: number
  /** The limit becomes another. Default none. Limits stay as a rule. */
  step?: SimulatedStep
  /** The limit moves up and down. Default none. Limits stay as a rule. */
  drift?: SimulatedDrift
  /** For a while everything is a 503. Default none. A server that works. */
  outage?: SimulatedOutage
  /** Traffic of other clients on the same limit. Default none. Alone, a limit is easiest to find. */
  others?: SimulatedOthers
  /**
   * Servers behind a balancer, each with this limit; a request goes to a random one. A whole number from
   * 1 to 1000. Default 1. One server.
   */
  replicas?: number
  /**
   * Milliseconds that a served request takes behind the limit; a refused one takes none. Default 0. Only
   * the limit matters.
   */
  upstream?: number
  /**
   * How far that time strays, as a share to both sides. A number above 0 and below 1. Default none. Exact
   * times are easier to follow.
   */
  upstreamSpread?: number
  /**
   * The most milliseconds before the server looks at a request, drawn for each. Default 0. Exact times
   * are easier to follow.
   */
  jitter?: number
  /**
   * Milliseconds that `Retry-After` says on every refusal, true or not. Default the truth. Most servers
   * say the truth.
   */
  retryAfter?: number
  /**
   * Header fields: none, `Retry-After` on refusals, or `RateLimit-*` on every answer as well. Default
   * `nothing`. The hardest case: an unknown limit.
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
   * Their requests per second while they are there, at random times (Poisson). A number above 0, at most
   * 100000.
   */
  rate: number
  /** How often they come, in milliseconds. Default 60000. The window of most limits. */
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
   * The most milliseconds more, each way, drawn for each request: requests may overtake each other.
   * Default 0. Exact times are easier to follow.
   */
  jitter?: number
  /**
   * The share of requests that are late by `slowBy` more, as after a lost packet. A number above 0 and
   * below 1. Default none. No packet is lost.
   */
  slow?: number
  /**
   * How late those are, in milliseconds. Default 200. TCP's least retransmission time (RFC 6298, Linux).
   */
  slowBy?: number
  /** Milliseconds by which a client's timers fire late. Default 0. Exact timers are easier to follow. */
  timerLag?: number
  /** The most milliseconds more, drawn for each timer. Default 0. Exact timers are easier to follow. */
  timerJitter?: number
  /** Milliseconds after which a client gives up. Default 60000. Many clients give up after a minute. */
  timeout?: number
}

/** What each client has to send. */
export interface SimulatedLoad {
  /**
   * New requests per second, evenly. A number above 0, at most 100000. Default none. Some request always
   * waits.
   */
  rate?: number
  /** Requests in all. A whole number from 1 to 4294967295. Default none. As many as the time allows. */
  requests?: number
  /**
   * What requests cost of a quota, in turn: `[1, 1, 10]`. Servers count requests. Default all 1. Most
   * quotas count requests.
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
