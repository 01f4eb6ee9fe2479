/**
 * The typed options, as settings: every number, URL and expression checked, each error with the name of its
 * option and what was got.
 */
import { existsSync, readFileSync } from 'node:fs'
import type { ThrottleOptions } from 'autothrottle'
import { isObject } from '../base/checks.js'
import { systemClock } from '../base/clock.js'
import type { Clock } from '../options/options.js'
import { toUrl } from '../scopes/names.js'
import type { Values } from './usage.mjs'

/** Wrong usage or bad input: exit code 2. */
export class UsageError extends Error {}

/** How long a body may take, in milliseconds: one that drips for ever ends. */
export const MAX_TIME = 300_000

/** The options of a command that fetches. */
export interface Settings {
  readonly throttle: ThrottleOptions
  readonly headers: Record<string, string>
  readonly userAgent: string
  readonly isObeying: boolean
  readonly network: Network
  readonly maxSize: number
  /** Milliseconds to an answer's headers, at most, with all redirects before; and from there to its end. */
  readonly timeout: number
  readonly maxTime: number
  readonly clock: Clock
  /** Which response headers a line has. */
  readonly headersKept: HeadersKept | undefined
  readonly isRetryingFailed: boolean
  readonly out: string | undefined
  readonly warc: string | undefined
  readonly state: string | undefined
  readonly plot: string | undefined
  readonly isJson: boolean
  readonly isQuiet: boolean
  /** Lines and bodies go nowhere: there is no folder, and standard output is a terminal. */
  readonly isKeepingNothing: boolean
}

/** How hosts are reached. */
export interface Network {
  readonly proxy: string | undefined
  /** Certificates that are trusted beside the usual ones. */
  readonly ca: string | undefined
  readonly isInsecure: boolean
}

/** Names of response headers; `all` are all but those that hold cookies. */
export interface HeadersKept {
  readonly isAll: boolean
  readonly names: ReadonlySet<string>
}

/** Which links a crawl follows. */
export interface Filter {
  readonly maxPages: number
  readonly depth: number
  readonly include: readonly RegExp[]
  readonly exclude: readonly RegExp[]
}

export function settingsOf(values: Values, more: ThrottleOptions = {}): Settings {
  const userAgent = text(values, 'user-agent') ?? 'autothrottle'
  const isObeying = values['ignore-robots'] !== true
  if (values['retry-failed'] === true && values.state === undefined)
    throw new UsageError('--retry-failed: want --state FILE as well, which says what failed')
  const throttle = { ...throttleOptions(values), ...more }
  return {
    throttle,
    headers: { 'user-agent': userAgent, ...headersOf(values.header as string[] | undefined) },
    userAgent,
    isObeying,
    network: networkOf(values),
    maxSize: number(values, 'max-size', 10_000_000),
    timeout: throttle.requestTimeout!,
    maxTime: number(values, 'max-time', MAX_TIME, 1),
    clock: more.clock ?? systemClock(false),
    headersKept: headersKept(text(values, 'headers')),
    isRetryingFailed: values['retry-failed'] === true,
    out: text(values, 'out'),
    warc: text(values, 'warc'),
    state: text(values, 'state'),
    plot: text(values, 'plot'),
    isJson: values.json === true,
    isQuiet: values.quiet === true,
    isKeepingNothing: ['out', 'warc'].every((key) => !(key in values)) && process.stdout.isTTY === true,
  }
}

export function filterOf(values: Values): Filter {
  return {
    maxPages: whole(values, 'max-pages', Number.POSITIVE_INFINITY, 1),
    depth: whole(values, 'depth', Number.POSITIVE_INFINITY),
    include: expressions(values, 'include'),
    exclude: expressions(values, 'exclude'),
  }
}

/** How hosts are reached; the environment's words about proxies are read where the connection is made. */
export function networkOf(values: Values): Network {
  const proxy = text(values, 'proxy')
  if (proxy !== undefined && !/^https?:\/\/[^/]/.test(proxy))
    throw new UsageError(`--proxy: want a URL that starts with http:// or https://; got ${shown(proxy)}`)
  const file = text(values, 'ca')
  if (file !== undefined && !existsSync(file)) throw new UsageError(`--ca: there is no file ${file}`)
  const ca = file === undefined ? undefined : readFileSync(file, 'utf8')
  if (ca !== undefined && !ca.includes('-----BEGIN CERTIFICATE-----'))
    throw new UsageError(`--ca: want a file of certificates in PEM; got ${file}`)
  return { proxy, ca, isInsecure: values.insecure === true }
}

function headersKept(typed: string | undefined): HeadersKept | undefined {
  if (typed === undefined) return undefined
  const names = new Set(typed.toLowerCase().split(','))
  return { isAll: names.delete('all'), names }
}

/** Options on the command line win over the file; what neither says is polite. */
function throttleOptions(values: Values): ThrottleOptions {
  const file = text(values, 'options')
  const typed = file === undefined ? {} : optionsIn(file)
  const retries = whole(values, 'retries', typed.retry?.limit ?? 3)
  const paced = ['delay', 'start-delay', 'concurrency', 'rate', 'rampup'].some((key) => key in values)
  const options: ThrottleOptions = {
    // A host that stalls is given up after this time: longer than most deployments, and most bans that end by
    // themselves.
    stallAfter: 900_000,
    ...typed,
    maxInFlight: whole(values, 'total', typed.maxInFlight ?? 64, 1),
    requestTimeout: number(values, 'timeout', typed.requestTimeout ?? 30_000, 1),
    ...(retries > 0 ? { retry: { ...typed.retry, limit: retries } } : { retry: undefined }),
  } as ThrottleOptions
  const isWhole = file !== undefined && !paced
  return isWhole ? options : { ...options, defaults: { ...typed.defaults, ...pace(values) } }
}

/** The throttle reports the options that it refuses; where something is added, it has to be an object. */
function optionsIn(file: string): ThrottleOptions {
  const typed = readJson(file, '--options')
  const places: [string, unknown][] = [['', typed]]
  if (isObject(typed))
    for (const key of ['defaults', 'retry'])
      places.push([`${key}: `, (typed as Record<string, unknown>)[key]])
  for (const [place, value] of places)
    if (value !== undefined && (!isObject(value) || Array.isArray(value)))
      throw new UsageError(`--options: ${file}: ${place}want an object; got ${shown(value)}`)
  return typed as ThrottleOptions
}

/** Everything that was typed is handed on: what contradicts itself is the library's to refuse. */
function pace(values: Values): NonNullable<ThrottleOptions['defaults']> {
  const typed = (option: string, least?: number) =>
    option in values ? number(values, option, 0, least) : undefined
  const rate = text(values, 'rate')
  const delay = typed('delay')
  const startDelay = typed('start-delay')
  const concurrency = 'concurrency' in values ? whole(values, 'concurrency', 4, 1) : undefined
  const rateTyped = rate === undefined ? {} : { rate: rateOf(rate) }
  if (values.rampup === true) {
    const bounds = { startDelay, minDelay: delay, maxConcurrency: concurrency }
    return { ...rateTyped, rampup: isEmpty(bounds) ? true : stated(bounds) }
  }
  const follows = { autothrottle: stated({ startDelay }) }
  if (rate !== undefined)
    return { ...rateTyped, ...stated({ delay, concurrency }), ...(startDelay === undefined ? {} : follows) }
  return {
    concurrency: concurrency ?? 4,
    delay: delay ?? 250,
    slotDelay: 0,
    autothrottle: { startDelay: startDelay ?? 1000 },
  }
}

const isEmpty = (values: object) => Object.values(values).every((value) => value === undefined)

/** Without what was not typed. */
function stated<T extends object>(values: T): { [Key in keyof T]: NonNullable<T[Key]> } {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as { [Key in keyof T]: NonNullable<T[Key]> }
}

function rateOf(text: string): number | `${number}/min` {
  if (/^\d+(?:\.\d+)?(?:\/(?:s|min|h|day))?$/.test(text))
    return text.includes('/') ? (text as `${number}/min`) : Number(text)
  throw new UsageError(`--rate: want requests a second, or like 100/min; got ${JSON.stringify(text)}`)
}

export function number(values: Values, option: string, otherwise: number, least = 0): number {
  return checked(values, option, otherwise, least, `a number from ${least}`, Number.isFinite)
}

function whole(values: Values, option: string, otherwise: number, least = 0): number {
  return checked(values, option, otherwise, least, `a whole number from ${least}`, Number.isSafeInteger)
}

function checked(
  values: Values,
  option: string,
  otherwise: number,
  least: number,
  want: string,
  isRight: (value: number) => boolean,
): number {
  const typed = values[option]
  if (typed === undefined) return otherwise
  const value = Number(typed)
  if (String(typed).trim() !== '' && isRight(value) && value >= least) return value
  throw new UsageError(`--${option}: want ${want}; got ${shown(typed)}`)
}

const shown = (typed: unknown) => JSON.stringify(typed)

function text(values: Values, option: string): string | undefined {
  const typed = values[option]
  if (typed === '') throw new UsageError(`--${option}: want a value; got none`)
  return typed as string | undefined
}

function expressions(values: Values, option: string): RegExp[] {
  return ((values[option] as string[] | undefined) ?? []).map((source) => {
    try {
      return new RegExp(source)
    } catch (error) {
      throw new UsageError(`--${option}: ${(error as Error).message}`)
    }
  })
}

function headersOf(lines: readonly string[] = []): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):\s*(.*)$/.exec(line) ?? []
    if (name === undefined || value === undefined)
      throw new UsageError(`--header: want 'Name: value'; got ${JSON.stringify(line)}`)
    headers[name.toLowerCase()] = value
  }
  return headers
}

/** A URL that can be fetched; a host alone is one as well, where `isHostEnough`. */
export function urlOf(typed: string, isHostEnough = false): URL {
  const text = isHostEnough && !typed.includes('://') ? `https://${typed}` : typed
  const url = toUrl(text)
  if (url?.username || url?.password)
    throw new UsageError("want a URL without a user and a password: --header 'Authorization: …' sends them")
  if (url?.protocol === 'http:' || url?.protocol === 'https:') {
    url.hash = ''
    return url
  }
  const isWeb = /^https?:\/\//i.test(text)
  const want = isWeb ? 'with a host, and a port below 65536' : 'that starts with http:// or https://'
  throw new UsageError(`want a URL ${want}; got ${JSON.stringify(typed)}`)
}

/** Opens what is written to. A wrong place ends the command before it sends a request. */
export function opened<T>(option: string, open: () => T): T {
  try {
    return open()
  } catch (error) {
    if (typeof (error as NodeJS.ErrnoException).syscall !== 'string') throw error
    throw new UsageError(`${option}: cannot be written: ${(error as Error).message}`)
  }
}

/** A file of JSON; `-` is standard input. */
export function readJson(file: string, what: string): unknown {
  try {
    return JSON.parse(readFileSync(file === '-' ? 0 : file, 'utf8'))
  } catch (error) {
    throw new UsageError(`${what}: ${file === '-' ? 'standard input' : file}: ${(error as Error).message}`)
  }
}
