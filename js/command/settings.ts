/**
 * What was typed, as settings: every number, URL and expression checked, each error with the name of its
 * option and what was got.
 */
import { readFileSync } from 'node:fs'
import type { ThrottleOptions } from 'autothrottle'
import { toUrl } from '../scopes/places.js'
import type { Values } from './usage.mjs'

/** Wrong usage or bad input: exit code 2. */
export class UsageError extends Error {}

/** The options of a command that fetches. */
export interface Settings {
  readonly throttle: ThrottleOptions
  readonly headers: Record<string, string>
  readonly userAgent: string
  readonly isObeying: boolean
  readonly maxSize: number
  readonly out: string | undefined
  readonly warc: string | undefined
  readonly state: string | undefined
  readonly plot: string | undefined
  readonly isJson: boolean
  readonly isQuiet: boolean
}

/** Which links a crawl follows. */
export interface Filter {
  readonly maxPages: number
  readonly depth: number
  readonly include: readonly RegExp[]
  readonly exclude: readonly RegExp[]
}

export function settingsOf(values: Values): Settings {
  const userAgent = text(values, 'user-agent') ?? 'autothrottle'
  const isObeying = values['ignore-robots'] !== true
  return {
    throttle: throttleOptions(values),
    headers: { 'user-agent': userAgent, ...headersOf(values.header as string[] | undefined) },
    userAgent,
    isObeying,
    maxSize: number(values, 'max-size', 10_000_000),
    out: text(values, 'out'),
    warc: text(values, 'warc'),
    state: text(values, 'state'),
    plot: text(values, 'plot'),
    isJson: values.json === true,
    isQuiet: values.quiet === true,
  }
}

export function filterOf(values: Values): Filter {
  return {
    maxPages: number(values, 'max-pages', 0) || Number.POSITIVE_INFINITY,
    depth: number(values, 'depth', Number.POSITIVE_INFINITY),
    include: expressions(values, 'include'),
    exclude: expressions(values, 'exclude'),
  }
}

/** What is typed stands above the file; what neither says is polite. */
function throttleOptions(values: Values): ThrottleOptions {
  const file = text(values, 'options')
  const given = file === undefined ? {} : (readJson(file, '--options') as ThrottleOptions)
  const retries = number(values, 'retries', given.retry?.limit ?? 3)
  const paced = ['delay', 'start-delay', 'concurrency', 'rate', 'rampup'].some((key) => key in values)
  const options: ThrottleOptions = {
    ...given,
    concurrency: number(values, 'total', given.concurrency ?? 64),
    requestTimeout: number(values, 'timeout', given.requestTimeout ?? 30_000),
    ...(retries > 0 ? { retry: { ...given.retry, limit: retries } } : { retry: undefined }),
  } as ThrottleOptions
  const isSaid = file !== undefined && !paced
  return isSaid ? options : { ...options, defaults: { ...given.defaults, ...pace(values) } }
}

function pace(values: Values): NonNullable<ThrottleOptions['defaults']> {
  if (values.rampup === true) return { rampup: true }
  const rate = text(values, 'rate')
  if (rate !== undefined) return { rate: rateOf(rate) }
  return {
    concurrency: number(values, 'concurrency', 4),
    delay: number(values, 'delay', 250),
    slotDelay: 0,
    autothrottle: { startDelay: number(values, 'start-delay', 1000) },
  }
}

function rateOf(text: string): number | `${number}/min` {
  if (/^\d+(?:\.\d+)?(?:\/(?:s|min|h|day))?$/.test(text))
    return text.includes('/') ? (text as `${number}/min`) : Number(text)
  throw new UsageError(`--rate: want requests a second, or like 100/min; got ${JSON.stringify(text)}`)
}

export function number(values: Values, option: string, otherwise: number): number {
  const typed = values[option]
  if (typed === undefined) return otherwise
  const value = Number(typed)
  if (String(typed).trim() !== '' && Number.isFinite(value) && value >= 0) return value
  throw new UsageError(`--${option}: want a number from 0; got ${JSON.stringify(typed)}`)
}

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
  if (url?.protocol === 'http:' || url?.protocol === 'https:') {
    url.hash = ''
    return url
  }
  throw new UsageError(`want a URL that starts with http:// or https://; got ${JSON.stringify(typed)}`)
}

/** A file of JSON; `-` is standard input. */
export function readJson(file: string, what: string): unknown {
  try {
    return JSON.parse(readFileSync(file === '-' ? 0 : file, 'utf8'))
  } catch (error) {
    throw new UsageError(`${what}: ${file === '-' ? 'standard input' : file}: ${(error as Error).message}`)
  }
}
