/**
 * Scrapy's settings → ours: names, seconds, booleans that stand for 1 and 0, in one place. A setting that has
 * no meaning here is an error.
 */

import { isObject, shown } from '../base/checks.js'
import { ConfigError, type Problem } from '../base/errors.js'
import { byIp } from '../scopes/by-ip.js'
import type { MakeScopeManager, ScopeManager } from '../scopes/strategy.js'
import { nearestName } from '../wasm/engine.js'
import { ROBOTS_MAX_DELAY } from './generated.js'
import type { BackoffOptions, Jitter, QuotaOptions, ScopeOptions, ThrottleOptions } from './options.js'

/** Settings of Scrapy's, as `settings.py` has them. Spans are seconds. */
export type ScrapySettings = Readonly<Record<string, unknown>>

type Draft = Record<string, unknown>
/** Reads one setting into the options; throws what it wants instead. */
type Reader = (value: unknown, options: ThrottleOptions & { defaults: Draft }, key: string) => void

class Want extends Error {}

const number = (value: unknown): number => {
  const text = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  if (typeof text !== 'number' || !Number.isFinite(text)) throw new Want('a number')
  return text
}
const millis = (value: unknown): number => {
  if (number(value) < 0) throw new Want('seconds from 0')
  // 0.3 s are 300 ms, not 299.99999999999994.
  return Math.round(number(value) * 1e6) / 1e3
}
const flag = (value: unknown): boolean => {
  const text = typeof value === 'object' ? '' : String(value)
  if (/^(?:[Tt]rue|1)$/.test(text)) return true
  if (/^(?:[Ff]alse|0)$/.test(text)) return false
  throw new Want('True or False')
}
const list = (value: unknown): readonly unknown[] => {
  if (typeof value === 'string') return value.split(',').map((item) => item.trim())
  if (!Array.isArray(value)) throw new Want('a list')
  return value
}
const codes = (value: unknown): number[] => list(value).map(number)
const jitter = (value: unknown): Jitter => {
  if (typeof value === 'number') return value
  if (!Array.isArray(value)) return flag(value)
  if (value.length !== 2) throw new Want('a flag, a number or two numbers')
  return [number(value[0]), number(value[1])]
}
const target = (value: unknown): number | [number, number] =>
  Array.isArray(value) ? [number(value[0]), number(value[1])] : number(value)
const text = (value: unknown): string => {
  if (typeof value !== 'string' || value === '') throw new Want('a string')
  return value
}

/** Classes of Scrapy's and Twisted's by what they are about. */
const errors = (value: unknown): ('timeout' | 'connection')[] => {
  const kinds = list(value).map((name) => {
    if (/timeout|timedout/i.test(text(name))) return 'timeout'
    if (/connect|responsefailed|dns|ioerror|oserror|socket|tunnel|ssl|tls/i.test(String(name)))
      return 'connection'
    throw new Want('exceptions that are timeouts or failed connections')
  })
  return [...new Set(kinds)]
}

const backoffReaders: Record<string, (value: unknown) => BackoffOptions> = {
  http_codes: (value) => ({ statusCodes: codes(value) }),
  exceptions: (value) => ({ errors: errors(value) }),
  delay_factor: (value) => ({ factor: number(value) }),
  min_delay: (value) => ({ minDelay: millis(value) }),
  max_delay: (value) => ({ maxDelay: millis(value), maxHold: millis(value) }),
  window: (value) => ({ window: millis(value) }),
  jitter: (value) => ({ jitter: jitter(value) }),
  concurrency_factor: (value) => ({ concurrencyFactor: number(value) }),
}

const scopeReaders: Record<string, (value: unknown, problems: Problem[], path: string) => ScopeOptions> = {
  concurrency: (value) => ({ concurrency: number(value) }),
  delay: (value) => ({ delay: millis(value) }),
  slot_delay: (value) => ({ slotDelay: millis(value) }),
  jitter: (value) => ({ jitter: jitter(value) }),
  randomize_delay: (value) => ({ jitter: jitter(value) }),
  throttle: (value) => ({ autothrottle: flag(value) }),
  rampup: (value) => {
    if (!isObject(value)) return { rampup: flag(value) }
    return { rampup: { backoffTarget: target((value as Draft).backoff_target) } }
  },
  quota: (value) => ({ quota: number(value) as number | QuotaOptions }),
  window: (value) => ({ window: millis(value) }),
  ignore_robots_txt: (value) => ({ ignoreRobotsTxt: flag(value) }),
  manager: (value) => {
    if (typeof value !== 'function' && !isObject(value))
      throw new Want('an object or a function that makes one')
    return { manager: value as ScopeManager }
  },
  backoff: (value, problems, path) => ({ backoff: read(value, backoffReaders, problems, path) }),
}

const into = (place: Draft, key: string, value: object) => {
  place[key] = { ...(typeof place[key] === 'object' ? (place[key] as object) : {}), ...value }
}
const backoff =
  (key: string): Reader =>
  (value, { defaults }) =>
    into(defaults, 'backoff', backoffReaders[key]!(value))
const autothrottle =
  (key: string, convert: (value: unknown) => number): Reader =>
  (value, options) =>
    into(options as unknown as Draft, 'autothrottle', { [key]: convert(value) })

const option =
  (key: string, convert: (value: unknown) => number): Reader =>
  (value, options) => {
    Object.assign(options, { [key]: convert(value) })
  }
const byDefault =
  (key: string, convert: (value: unknown) => unknown): Reader =>
  (value, { defaults }) => {
    defaults[key] = convert(value)
  }

const HOOKS = ['getScopes', 'getResponseBackoff', 'getErrorBackoff', 'getResponseDelay']

/** Made by the first who asks, so that a bundle without Scrapy's settings leaves it out. */
const settingReaders = (): Record<string, Reader> => ({
  CONCURRENT_REQUESTS: option('concurrency', number),
  CONCURRENT_REQUESTS_PER_DOMAIN: byDefault('concurrency', number),
  DOWNLOAD_DELAY: byDefault('delay', millis),
  DOWNLOAD_DELAY_PER_SLOT: byDefault('slotDelay', millis),
  RANDOMIZE_DOWNLOAD_DELAY: (value, { defaults }) => {
    defaults.jitter ??= jitter(value)
  },
  DOWNLOAD_DELAY_JITTER: byDefault('jitter', jitter),
  CONCURRENT_REQUESTS_PER_IP: (value, options) => {
    // Zero is Scrapy's way of having it off; else it is for addresses what the setting for domains is for
    // domains.
    if (number(value) === 0) return
    options.defaults.concurrency = number(value)
    try {
      options.getScopes = byIp()
    } catch {
      throw new Want('0 in a runtime that cannot look addresses up')
    }
  },
  DOWNLOAD_TIMEOUT: option('requestTimeout', millis),
  REDIRECT_MAX_DELAY: (value, options) => {
    options.redirects = 'throttle'
    options.redirectMaxDelay = millis(value)
  },
  THROTTLING_MANAGER: (value, options) => {
    if (!isObject(value)) throw new Want(`an object with ${HOOKS.join(', ')}`)
    for (const hook of Object.keys(value))
      if (!HOOKS.includes(hook)) throw new Want(`an object with ${HOOKS.join(', ')}`)
    Object.assign(options, value)
  },
  THROTTLING_SCOPE_MANAGER: (value, { defaults }) => {
    if (typeof value !== 'function') throw new Want('a function that makes a manager for each scope')
    defaults.manager = value as MakeScopeManager
  },
  BACKOFF_HTTP_CODES: backoff('http_codes'),
  BACKOFF_EXCEPTIONS: backoff('exceptions'),
  BACKOFF_DELAY_FACTOR: backoff('delay_factor'),
  BACKOFF_MIN_DELAY: backoff('min_delay'),
  BACKOFF_MAX_DELAY: backoff('max_delay'),
  BACKOFF_WINDOW: backoff('window'),
  BACKOFF_JITTER: backoff('jitter'),
  BACKOFF_CONCURRENCY_FACTOR: backoff('concurrency_factor'),
  THROTTLING_WINDOW: byDefault('window', millis),
  DELAYED_REQUESTS_WARN_THRESHOLD: option('warnThreshold', number),
  AUTOTHROTTLE_DEBUG: (value, options) => {
    options.debug = flag(value)
  },
  AUTOTHROTTLE_START_DELAY: autothrottle('startDelay', millis),
  AUTOTHROTTLE_MAX_DELAY: autothrottle('maxDelay', millis),
  AUTOTHROTTLE_TARGET_CONCURRENCY: autothrottle('targetConcurrency', number),
})

/** `BACKOFF_MAX_DELAY` and `BACKOFF_HTTP_CODES` of the draft; the engine keeps longer holds and has more. */
const MAX_DELAY = 300_000
const HTTP_CODES = [429, 502, 503, 504, 520, 521, 522, 523, 524]

/** What `scrapy startproject` writes besides: no pace. */
const OF_NO_PACE = [
  'BOT_NAME',
  'SPIDER_MODULES',
  'NEWSPIDER_MODULE',
  'ADDONS',
  'FEED_EXPORT_ENCODING',
  'TWISTED_REACTOR',
  'REQUEST_FINGERPRINTER_IMPLEMENTATION',
]

/** Settings that only mean something beside another. */
const PAIRED = [
  'AUTOTHROTTLE_ENABLED',
  'RAMPUP_BACKOFF_TARGET',
  'ROBOTSTXT_OBEY',
  'THROTTLING_ROBOTSTXT_OBEY',
  'THROTTLING_ROBOTSTXT_MAX_DELAY',
  'ROBOTSTXT_USER_AGENT',
  'USER_AGENT',
  'RETRY_ENABLED',
  'RETRY_TIMES',
  'RETRY_HTTP_CODES',
  'THROTTLING_SCOPES',
  'DOWNLOAD_SLOTS',
]

/**
 * Scrapy's setting names and seconds as {@link ThrottleOptions}. What is left out has the defaults of
 * Scrapy's draft.
 *
 * @throws {ConfigError} listing every name that is unknown (with the nearest one that is known) and every
 * value that makes no sense.
 */
export function fromScrapySettings(settings: ScrapySettings): ThrottleOptions {
  const problems: Problem[] = []
  const options: ThrottleOptions & { defaults: Draft } = { defaults: {} }
  const attempt = <T>(path: string, value: unknown, work: () => T): T | undefined => {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof Want)) throw error
      problems.push({ path, want: error.message, got: shown(value) })
      return undefined
    }
  }
  if (!isObject(settings) || Array.isArray(settings)) {
    throw new ConfigError([{ path: '', want: 'an object of Scrapy settings', got: shown(settings) }])
  }
  const readers = settingReaders()
  const known = [...Object.keys(readers), ...PAIRED]
  for (const [key, value] of Object.entries(settings)) {
    const reader = Object.hasOwn(readers, key) ? readers[key] : undefined
    if (reader) attempt(key, value, () => reader(value, options, key))
    else if (!PAIRED.includes(key) && !OF_NO_PACE.includes(key))
      problems.push(unknown(key, value, known, key))
  }
  const has = (key: string) => settings[key] !== undefined && settings[key] !== null
  const take = <T>(key: string, convert: (value: unknown) => T, otherwise: T): T =>
    has(key) ? (attempt(key, settings[key], () => convert(settings[key])) ?? otherwise) : otherwise
  // AutoThrottle's numbers without AUTOTHROTTLE_ENABLED are Scrapy's way of having it off.
  const tuned = options.autothrottle
  delete options.autothrottle
  if (take('AUTOTHROTTLE_ENABLED', flag, false)) options.autothrottle = tuned ?? true
  const backoffTarget = take('RAMPUP_BACKOFF_TARGET', target, 1)
  for (const place of ['DOWNLOAD_SLOTS', 'THROTTLING_SCOPES']) {
    if (!has(place)) continue
    const scopes = readScopes(settings[place], problems, place, backoffTarget)
    if (place === 'DOWNLOAD_SLOTS') for (const scope of Object.values(scopes)) startsSlot(scope, options)
    options.scopes = { ...options.scopes, ...scopes }
  }
  const obeys = take('ROBOTSTXT_OBEY', flag, false)
  if (take('THROTTLING_ROBOTSTXT_OBEY', flag, true) && obeys) {
    const userAgent = take('ROBOTSTXT_USER_AGENT', text, take('USER_AGENT', text, 'Scrapy'))
    options.robots = {
      obey: true,
      userAgent,
      maxDelay: take('THROTTLING_ROBOTSTXT_MAX_DELAY', millis, ROBOTS_MAX_DELAY),
    }
  }
  const limit = take('RETRY_TIMES', number, 2)
  if (take('RETRY_ENABLED', flag, has('RETRY_TIMES') || has('RETRY_HTTP_CODES')) && limit > 0) {
    const statusCodes = take<number[] | undefined>('RETRY_HTTP_CODES', codes, undefined)
    options.retry = { limit, ...(statusCodes ? { statusCodes } : {}) }
  }
  if (problems.length > 0) throw new ConfigError(problems)
  const isRampedUp = Object.values(options.scopes ?? {}).some(({ rampup }) => rampup)
  if (has('RAMPUP_BACKOFF_TARGET') && !isRampedUp)
    console.warn('autothrottle: RAMPUP_BACKOFF_TARGET has no effect: no scope has rampup (no-effect)')
  keepSlotDelay(options)
  options.defaults.backoff = {
    statusCodes: HTTP_CODES,
    maxHold: MAX_DELAY,
    ...(options.defaults.backoff as BackoffOptions),
  }
  return options
}

/**
 * With AutoThrottle a slot only starts at the delay of `DOWNLOAD_SLOTS`; the least is DOWNLOAD_DELAY for
 * all of them (`scrapy/extensions/throttle.py`: `mindelay` is the spider's; `scrapy/core/downloader`: the
 * slot's is where it begins).
 */
function startsSlot(scope: ScopeOptions, options: ThrottleOptions): void {
  const isFollowed = scope.autothrottle ?? options.autothrottle
  if (scope.delay === undefined || isFollowed === undefined || isFollowed === false) return
  scope.autothrottle = { startDelay: scope.delay }
  delete scope.delay
}

/**
 * In the draft a slot rests for DOWNLOAD_DELAY_PER_SLOT, a second, also where the delay is shorter; here a
 * pace that was typed sets that default aside, so it is said.
 */
function keepSlotDelay({ defaults, scopes }: ThrottleOptions & { defaults: Draft }): void {
  const isShorter = ({ delay, quota }: ScopeOptions) =>
    delay === undefined ? quota !== undefined : delay < 1000
  const places = [defaults as ScopeOptions, ...Object.values(scopes ?? {})]
  if (places.some(isShorter)) defaults.slotDelay ??= 1000
}

function readScopes(
  value: unknown,
  problems: Problem[],
  path: string,
  backoffTarget: number | [number, number],
): Record<string, ScopeOptions> {
  const scopes: Record<string, ScopeOptions> = {}
  if (!isObject(value) || Array.isArray(value)) {
    problems.push({ path, want: 'an object of scopes', got: shown(value) })
    return scopes
  }
  for (const [name, options] of Object.entries(value)) {
    const scope = read<ScopeOptions>(options, scopeReaders, problems, `${path}.${JSON.stringify(name)}`)
    if (scope.rampup === true) scope.rampup = { backoffTarget }
    scopes[name] = scope
  }
  return scopes
}

function read<T extends object>(
  value: unknown,
  readers: Record<string, (value: unknown, problems: Problem[], path: string) => T>,
  problems: Problem[],
  path: string,
): T {
  const result = {} as T
  if (!isObject(value) || Array.isArray(value)) {
    problems.push({ path, want: 'an object', got: shown(value) })
    return result
  }
  for (const [key, each] of Object.entries(value)) {
    const at = `${path}.${key}`
    const reader = Object.hasOwn(readers, key) ? readers[key] : undefined
    if (!reader) {
      problems.push(unknown(key, each, Object.keys(readers), at))
      continue
    }
    try {
      Object.assign(result, reader(each, problems, at))
    } catch (error) {
      if (!(error instanceof Want)) throw error
      problems.push({ path: at, want: error.message, got: shown(each) })
    }
  }
  return result
}

function unknown(key: string, value: unknown, known: readonly string[], path: string): Problem {
  const nearest = nearestName(key, known)
  const want = nearest ? `a known setting (did you mean ${nearest}?)` : 'a known setting'
  return { path, want, got: shown(value) }
}
