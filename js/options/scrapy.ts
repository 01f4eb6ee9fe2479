/**
 * Scrapy's settings → ours. The engine's table (`src/config/scrapy.rs`) says which names there are, where
 * each goes and how its value is read; `autothrottle.scrapy` reads by the same. A setting that has no meaning
 * here is an error.
 */

import { isObject, shown } from '../base/checks.js'
import { ConfigError, type Problem } from '../base/errors.js'
import { byIp } from '../scopes/by-ip.js'
import { nearestName } from '../wasm/engine.js'
import { ROBOTS_MAX_DELAY, SCRAPY_DEFAULTS, SCRAPY_KEYS, SCRAPY_SETTINGS } from './generated.js'
import type { ThrottleOptions } from './options.js'

/** Settings of Scrapy's, as `settings.py` has them. Spans are seconds. */
export type ScrapySettings = Readonly<Record<string, unknown>>

type Draft = Record<string, unknown>
/** Reads a dict of a section, or of a scope by this name. */
type ReadDict = (section: string, value: unknown, name?: string) => Draft

/** The expected type of a value, or of an item of it. */
class Want extends Error {
  readonly item: readonly [index: number, value: unknown] | undefined

  constructor(want: string, item?: readonly [index: number, value: unknown]) {
    super(want)
    this.item = item
  }
}

const isDict = (value: unknown): value is Draft => isObject(value) && !Array.isArray(value)

const WORDS: Draft = { True: true, False: false, None: null }

/** Text as what it stands for: JSON, a number, Python's words. (Python itself reads all of its literals.) */
function plain(value: unknown): unknown {
  if (typeof value !== 'string') return value
  const text = value.trim()
  if (Object.hasOwn(WORDS, text)) return WORDS[text]
  try {
    return JSON.parse(text)
  } catch {
    return text === '' || Number.isNaN(Number(text)) ? value : Number(text)
  }
}

/** `value`, if it is right. */
function checked<T>(value: unknown, isRight: boolean, want: string): T {
  if (!isRight) throw new Want(want)
  return value as T
}
const number = (value: unknown) => checked<number>(value, Number.isFinite(value), 'a number')
const seconds = (value: unknown) =>
  // 0.3 s are 300 ms, not 299.99999999999994.
  Math.round(checked<number>(value, number(value) >= 0, 'seconds from 0') * 1e6) / 1e3
const flag = (value: unknown) =>
  Boolean(checked(value, value === 0 || value === 1 || typeof value === 'boolean', 'True or False'))
const text = (value: unknown) => checked<string>(value, typeof value === 'string' && value !== '', 'a string')
/** A list, which may be typed as a text with commas. */
function list(value: unknown): readonly unknown[] {
  const typed = plain(value)
  if (Array.isArray(typed)) return typed
  return checked<string>(value, typeof value === 'string', 'a list')
    .split(',')
    .flatMap((item) => item.trim() || [])
}
/** Each item converted. An error names the item that it is about. */
function items<T>(typed: readonly unknown[], convert: (item: unknown) => T): T[] {
  return typed.map((item, index) => {
    try {
      return convert(item)
    } catch (error) {
      throw error instanceof Want ? new Want(error.message, [index, item]) : error
    }
  })
}
function jitter(value: unknown) {
  if (typeof value === 'number') return value
  if (!Array.isArray(value)) return flag(value)
  return checked<unknown[]>(value, value.length === 2, 'a flag, a number or two numbers').map(number)
}

const HOOKS = ['getScopes', 'getResponseBackoff', 'getErrorBackoff', 'getResponseDelay']

/** The converters of values, by kind. For a section as a kind it is a dict or a flag. */
const KINDS: Record<string, (value: unknown, dict: ReadDict) => unknown> = {
  number,
  total: (value) => (value === 0 ? SCRAPY_DEFAULTS.noLimit : number(value)),
  count: (value) => checked(value, Number.isInteger(value) && number(value) >= 0, 'a whole number from 0'),
  seconds,
  'seconds or false': (value) => value !== false && seconds(value),
  flag,
  jitter,
  randomize: (value) => (value === 1 ? true : jitter(value)),
  target: (value) => (Array.isArray(value) ? value.map(number) : number(value)),
  codes: (value) => items(list(value), (code) => number(plain(code))),
  text,
  rate: (value, dict) => {
    if (isDict(value)) return dict('rate', value)
    return typeof value === 'string' ? value : number(value)
  },
  quota: (value, dict) => {
    if (Array.isArray(value)) return value.map((each) => KINDS.quota!(plain(each), dict))
    return isDict(value) ? dict('quota', value) : number(value)
  },
  scope: (value, dict) => dict('scope', value),
  scopes: (value, dict) =>
    Object.entries(checked<Draft>(value, isDict(value), 'an object of scopes')).map(([name, scope]) => [
      name,
      dict('scope', plain(scope), name),
    ]),
  // Classes of Scrapy's and Twisted's, by what they are about: a failure has no class here.
  exceptions: (value) => {
    const kinds = items(list(value), (name) => {
      if (/timeout|timedout/i.test(text(name))) return 'timeout'
      const isKnown = /connect|responsefailed|dns|ioerror|oserror|socket|tunnel|ssl|tls/i.test(text(name))
      return checked('connection', isKnown, 'an exception that is a timeout or a failed connection')
    })
    return [...new Set(kinds)]
  },
  // Functions, where Scrapy has classes and import paths.
  hooks: (value) => {
    const isKnown = isDict(value) && Object.keys(value).every((hook) => HOOKS.includes(hook))
    return checked(value, isKnown, `an object with ${HOOKS.join(', ')}`)
  },
  managers: (value) =>
    checked(value, typeof value === 'function', 'a function that makes a manager for each scope'),
  manager: (value) =>
    checked(value, typeof value === 'function' || isObject(value), 'an object or a function that makes one'),
}

/** Kinds whose text is no JSON. */
const TEXTS = ['text', 'codes', 'exceptions']

/** Settings that `scrapy startproject` writes besides: no pace. */
const OF_NO_PACE =
  'BOT_NAME SPIDER_MODULES NEWSPIDER_MODULE ADDONS FEED_EXPORT_ENCODING TWISTED_REACTOR ' +
  'REQUEST_FINGERPRINTER_IMPLEMENTATION'

/** The converted values of a dict, by name and our key. Wrong values become problems. */
function readAll(dict: Draft, known: Record<string, readonly string[]>, at: string, problems: Problem[]) {
  const made: [name: string, key: string, value: unknown][] = []
  for (const [name, value] of Object.entries(dict)) {
    const path = at + name
    try {
      if (!Object.hasOwn(known, name)) {
        const nearest = nearestName(name, Object.keys(known))
        throw new Want(nearest ? `a known setting (did you mean ${nearest}?)` : 'a known setting')
      }
      const [kind, key] = [known[name]!.at(-1)!, known[name]![0]!]
      const typed = TEXTS.includes(kind) ? value : plain(value)
      if (typed === undefined || typed === null) continue
      const readDict: ReadDict = (section, of, scope) =>
        readSection(section, of, scope === undefined ? path : `${path}.${JSON.stringify(scope)}`, problems)
      const isSection = isDict(typed) && Object.hasOwn(SCRAPY_KEYS, kind)
      const convert = KINDS[kind] ?? (isSection ? (of) => readDict(kind, of) : flag)
      made.push([name, key, convert(typed, readDict)])
    } catch (error) {
      if (!(error instanceof Want)) throw error
      const [index, item] = error.item ?? [undefined, value]
      const place = index === undefined ? path : `${path}[${index}]`
      problems.push({ path: place, want: error.message, got: shown(item) })
    }
  }
  return made
}

/** A dict of a section in Scrapy's names, as ours. */
function readSection(section: string, value: unknown, path: string, problems: Problem[]): Draft {
  if (!isDict(value)) problems.push({ path, want: 'an object', got: shown(value) })
  const made = isDict(value) ? readAll(value, SCRAPY_KEYS[section]!, `${path}.`, problems) : []
  return Object.fromEntries(made.map(([, key, each]) => [key, each]))
}

/** Settings of these kinds are put in their place by hand. */
const BY_HAND = ['scope', 'scopes', 'hooks', 'count', 'retry', 'robots']

/**
 * Scrapy's setting names and seconds as {@link ThrottleOptions}. Settings that are left out have the defaults
 * of Scrapy's draft.
 *
 * @throws {ConfigError} listing every name that is unknown (with the nearest one that is known) and every
 * value that makes no sense.
 */
export function fromScrapySettings(settings: ScrapySettings): ThrottleOptions {
  if (!isDict(settings))
    throw new ConfigError([{ path: '', want: 'an object of Scrapy settings', got: shown(settings) }])
  const problems: Problem[] = []
  const paced = Object.entries(settings).filter(([name]) => !OF_NO_PACE.split(' ').includes(name))
  const read = readAll(Object.fromEntries(paced), SCRAPY_SETTINGS, '', problems)
  const typed: Draft = Object.fromEntries(read.map(([name, , value]) => [name, value]))
  const defaults: Draft = {}
  const options: Draft = { defaults }
  const sections: Record<string, Draft> = { root: options, driver: options, scope: defaults, backoff: {} }
  // Of several names the first of the table counts. (In Scrapy the one of the higher priority.)
  for (const [name, [section, key, kind]] of Object.entries(SCRAPY_SETTINGS).reverse()) {
    if (typed[name] === undefined || BY_HAND.includes(kind)) continue
    sections[section] ??= {}
    sections[section][key] = typed[name]
  }
  // Zero is Scrapy's way of having it off. Else addresses are the scopes, each with that many slots.
  const { CONCURRENT_REQUESTS_PER_IP: perAddress } = typed
  if (perAddress) {
    defaults.concurrency = perAddress
    try {
      options.getScopes = byIp()
    } catch {
      const want = '0 in a runtime that cannot look addresses up'
      problems.push({ path: 'CONCURRENT_REQUESTS_PER_IP', want, got: shown(perAddress) })
    }
  }
  Object.assign(options, typed.THROTTLER, typed.THROTTLING_MANAGER)
  if (options.redirectMaxDelay !== undefined) options.redirects = 'throttle'
  const { obey = true, ...robots } = sections.robots ?? {}
  if (typed.ROBOTSTXT_OBEY && obey)
    options.robots = { obey, userAgent: 'Scrapy', maxDelay: ROBOTS_MAX_DELAY, ...robots }
  const retry = { limit: 2, ...sections.retry }
  if ((typed.RETRY_ENABLED ?? sections.retry) && retry.limit > 0) options.retry = retry
  if (problems.length > 0) throw new ConfigError(problems)
  readScopes(options, defaults, typed, sections)
  return options as ThrottleOptions
}

/** Reads the settings for all scopes, and those for single ones. */
function readScopes(options: Draft, defaults: Draft, typed: Draft, sections: Record<string, Draft>): void {
  const forAll = (typed.THROTTLING_DEFAULTS ?? {}) as Draft
  // AutoThrottle's numbers without AUTOTHROTTLE_ENABLED are Scrapy's way of having it off.
  if (!defaults.autothrottle) delete defaults.autothrottle
  else Object.assign(defaults, { ...SCRAPY_DEFAULTS.besideAutothrottle, ...defaults })
  // A rate there is nearer than a setting: both in one place would be an error.
  if (forAll.rate !== undefined) for (const key of ['delay', 'slotDelay']) delete defaults[key]
  Object.assign(defaults, { backoff: true }, forAll)
  complete(defaults, sections, ['autothrottle', 'backoff', 'rampup'])
  const scopes = new Map<string, Draft>()
  for (const place of ['DOWNLOAD_SLOTS', 'THROTTLING_SCOPES'])
    for (const [name, scope] of (typed[place] ?? []) as [string, Draft][]) {
      if (place === 'DOWNLOAD_SLOTS' && scope.delay !== undefined) startsSlot(scope, defaults)
      complete(scope, sections, ['autothrottle', 'rampup'])
      scopes.set(name, { ...scopes.get(name), ...scope })
    }
  if (scopes.size > 0) options.scopes = Object.fromEntries(scopes)
  const places = [defaults, ...scopes.values()]
  if (typed.RAMPUP_BACKOFF_TARGET !== undefined && !places.some(({ rampup }) => rampup))
    console.warn('autothrottle: RAMPUP_BACKOFF_TARGET has no effect: no scope has rampup (no-effect)')
  // In the draft a slot rests for a second also where the delay is shorter. Here a pace that was typed sets
  // that default aside, so it is said.
  const { slotDelay, downAfter } = SCRAPY_DEFAULTS
  const isShorter = ({ delay = slotDelay }: Draft) => Number(delay) < slotDelay
  if (defaults.rate === undefined && defaults.slotDelay === undefined && places.some(isShorter)) {
    defaults.slotDelay = slotDelay
    for (const place of scopes.values())
      if (place.quota !== undefined && place.delay === undefined) place.slotDelay ??= 0
  }
  // Nor do slots set the second of a scope aside.
  const isPaced = ({ delay, rate, quota, rampup }: Draft) => (delay ?? rate ?? quota) !== undefined || rampup
  for (const place of places) {
    if (place.concurrency === undefined || isPaced(place) || isPaced(defaults)) continue
    place.delay = slotDelay
    if (!(place.autothrottle ?? defaults.autothrottle) && defaults.slotDelay === undefined)
      place.slotDelay ??= slotDelay
    for (const scope of place === defaults ? scopes.values() : [])
      if (scope.rate === undefined && isPaced(scope))
        Object.assign(scope, { delay: 0, slotDelay: 0, ...scope })
  }
  defaults.downAfter ??= downAfter
  // The draft has fewer statuses, and holds that are no longer than the longest delay.
  for (const place of places)
    if (isDict(place.backoff)) {
      const { maxDelay: maxHold } = place.backoff
      const draft = place === defaults && SCRAPY_DEFAULTS.backoff
      place.backoff = { ...draft, ...(maxHold !== undefined && { maxHold }), ...place.backoff }
    }
}

/** `true` and a dict stand for the settings of their section, too, as RAMPUP_BACKOFF_TARGET. */
function complete(place: Draft, sections: Record<string, Draft>, names: readonly string[]): void {
  for (const name of names) {
    const own = place[name]
    if (sections[name] && (own === true || isDict(own))) place[name] = { ...sections[name], ...Object(own) }
  }
}

/**
 * Where AutoThrottle is on, a slot only starts at the delay of `DOWNLOAD_SLOTS`; the least is DOWNLOAD_DELAY
 * for all of them (`scrapy/extensions/throttle.py`: `mindelay`). Else that delay is Scrapy's, without the
 * second of the draft's slots.
 */
function startsSlot(scope: Draft, defaults: Draft): void {
  const { delay, autothrottle } = scope
  if (defaults.autothrottle && autothrottle !== false) {
    scope.autothrottle = { startDelay: delay, ...Object(autothrottle) }
    delete scope.delay
  } else if (defaults.slotDelay === undefined) scope.slotDelay ??= 0
}
