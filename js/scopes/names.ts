/**
 * Which scopes a request belongs to: by default one, the host of its URL.
 *
 * `URL` does the work: lower case, IDN as ASCII, the port only when it is not the scheme's own. It costs a
 * microsecond, so it is asked once for each beginning that is plainly written.
 */
import { isObject, kindOf, notA } from '../base/checks.js'

/** The target of a request. */
export type Target = string | URL | Request | { readonly scopes: Scopes }

/** One scope, several, or a map of scope → expected cost. */
export type Scopes = string | readonly string[] | Readonly<Record<string, number>>

/** Whether `fetch` was given a `Request`, of this realm or another. */
export function isRequest(input: string | URL | Request): input is Request {
  return isObject(input) && 'url' in input
}

/** The method of a request, in capitals. */
export function methodOf(input: string | URL | Request, init: RequestInit = {}): string {
  const method = init.method ?? (input as Partial<Request>).method
  return method === undefined ? 'GET' : method.toUpperCase()
}

/**
 * The URL that `fetch` would ask. Relative ones are read against the page they are on, if there is one.
 *
 * @throws {TypeError} for what is none: a scope's bare name is the usual mistake.
 */
export function urlOf(input: string | URL | Request): URL {
  if (input instanceof URL) return input
  const url = typeof input === 'string' ? input : input?.url
  const base = (globalThis as { location?: { href?: string } }).location?.href
  try {
    return base === undefined || base === 'about:blank' ? new URL(url) : new URL(url, base)
  } catch (cause) {
    throw noTarget(input, '', { cause })
  }
}

const WANTED = "want a URL, a Request or { scopes: 'name' }"

function noTarget(input: unknown, why = '', options?: ErrorOptions): TypeError {
  const isScope = isObject(input) && 'scope' in input
  const seen = isScope ? '{ scope } (did you mean scopes?)' : kindOf(input)
  const how = typeof input === 'function' ? ': the URL comes first' : ''
  return new TypeError(`${WANTED}; got ${seen}${how}${why}`, options)
}

/**
 * An item or an argument that is a target by itself.
 *
 * @throws {TypeError} which says `how` to name another.
 */
export function itself(value: unknown, how: string): Target {
  if (typeof value === 'string' || isObject(value)) return value as Target
  throw noTarget(value, ` (${how})`)
}

/** An error about an item that is no target by itself also says `how` to name another. */
export function withHint(error: unknown, how: string): unknown {
  if (!(error instanceof TypeError && error.message.startsWith(WANTED)) || error.message.includes(how))
    return error
  return new TypeError(`${error.message} (${how})`, { cause: error.cause })
}

/** The URL of a target as text, if it has one. */
export function urlTextOf(target: Target): string | undefined {
  if (typeof target === 'string') return target
  if (target instanceof URL) return target.href
  return 'url' in target ? target.url : undefined
}

/** The part before a path, where the URL names the host by itself. */
const IS_SIMPLE = /^https?:\/\/[a-z0-9.:-]+$/

/**
 * The hosts of these beginnings, each as it was seen first: a name that is the very same string is found in a
 * tenth of the time that one of the same letters takes. Bounded, for a crawl sees many.
 */
const known = new Map<string, string>()
const MOST_KNOWN = 1000
/** The last of them with what stands around it: requests to one host often follow each other. */
let last = { url: '\0', begins: '\0', host: '' }

/** The text after the name of a host where a scheme is missing: `localhost:3000/x`. */
const IS_PORT = /^\d+(?:\/|$)/

/**
 * Whether a URL has no host (`data:`, `blob:`, a file): no server is asked, and no request waits.
 */
export function isHostless(input: string | URL | Request): boolean {
  const text = typeof input === 'string' ? input : (input as Partial<Request & URL> | null)?.url
  if (begins(text ?? '', 'http')) return false
  const { host, pathname } = urlOf(input)
  return host === '' && !IS_PORT.test(pathname)
}

/**
 * The scope of a URL: its host.
 *
 * @throws {TypeError} without a host, as in `localhost:3000`: that would be one scope of them all.
 */
export function hostOf(url: string | URL | Request): string {
  if (typeof url !== 'string') return hostIn(url)
  if (url === last.url) return last.host
  // V8 is a third quicker with it than with `lastIndexOf`, though it looks on where it finds none.
  if (url.indexOf(last.begins) === 0) {
    last.url = url
    return last.host
  }
  const end = url.indexOf('/', 8)
  const begin = end < 0 ? url : url.slice(0, end)
  let host = known.get(begin)
  if (host === undefined) {
    host = hostIn(url)
    if (!IS_SIMPLE.test(begin)) return host
    if (known.size >= MOST_KNOWN) known.clear()
    known.set(begin, host)
  }
  if (end > 0) last = { url, begins: `${begin}/`, host }
  return host
}

function hostIn(url: string | URL | Request): string {
  const { host } = urlOf(url)
  if (host === '') throw noTarget(url, ', which has no host')
  return undotted(host)
}

/** `api.example.` is the same host: the dot says that the name is whole (RFC 1034 §3.1). */
function undotted(host: string): string {
  return host.includes('.:') || host.endsWith('.') ? host.replace(/\.(?=:|$)/, '') : host
}

/** `startsWith` in a third of its time (Node 20): V8 has no fast way for that one. */
function begins(url: string, start: string): boolean {
  return url.lastIndexOf(start, 0) === 0
}

/** Names beside costs; no costs where none were given. */
export interface NamedScopes {
  readonly names: readonly string[]
  readonly costs: readonly number[] | undefined
}

/**
 * Scopes in any of their forms as names and costs.
 *
 * @throws {TypeError} for names that are no strings: `['5', 5]` would be one scope or two.
 */
export function namedScopes(scopes: Scopes): NamedScopes {
  if (typeof scopes === 'string') return { names: [scopes], costs: undefined }
  if (!isObject(scopes)) return refuse(scopes)
  const names = isList(scopes) ? scopes : Object.keys(scopes)
  if (names.length === 0) throw new TypeError('scopes: want at least one name; got none')
  if (!isList(scopes)) return { names, costs: Object.values(scopes) }
  for (const name of scopes) if (typeof name !== 'string') refuse(name)
  return { names, costs: undefined }
}

/** The name of a scope, checked. */
export function checkedName(name: string): string {
  return typeof name === 'string' ? name : refuse(name)
}

/** The host of a name that is a URL, for which no request would ever wait. */
export function hostInName(name: string): string | undefined {
  return /:\/\/(?:[^/?#]*@)?([^/?#]*)/.exec(name)?.[1]
}

/** Labels with a dot between them, and perhaps a port: a host, however it is written. */
const LIKE_HOST = /^[\w\u0080-\uffff-]+(?:\.[\w\u0080-\uffff-]+)+(?::\d+)?$/

/** The scope that a URL with this host has, where that is another: `API.example`, `bücher.example`, `::1`. */
export function hostOfName(name: string): string | undefined {
  const text = String(name).trim().replace(/\/$/, '')
  const isAddress = /^[\da-f]*(?::[\da-f]*){2,7}$/i.test(text)
  if (!isAddress && !(LIKE_HOST.test(text) && /[a-z\u0080-\uffff]/i.test(text))) return undefined
  const hosts = ['https', 'http'].map((scheme) => hostOr(`${scheme}://${isAddress ? `[${text}]` : text}/`))
  return hosts.includes(name) ? undefined : hosts[0]
}

function hostOr(url: string): string | undefined {
  try {
    return undotted(new URL(url).host)
  } catch {
    return undefined
  }
}

function refuse(name: unknown): never {
  throw notA('scopes', 'names as text', name)
}

function isList(scopes: readonly string[] | Readonly<Record<string, number>>): scopes is readonly string[] {
  return Array.isArray(scopes)
}

// Texts that name a place: links, redirects, what was typed.
//
// `URL.canParse` is wrong in Node 20.20 and 22.23 once it was called often (it says no to
// `https://bücher.example/`). The bytes of a `Location` in UTF-8 come from `Headers` as one letter each.

/** The URL that a text names, as seen from `base`; `undefined` if it names none. */
export function toUrl(place: string, base?: string | URL): URL | undefined {
  try {
    return new URL(place, base)
  } catch {
    return undefined
  }
}

/** A letter that is a byte of UTF-8, where no other letter is more than a byte. */
const MAY_BE_UTF8 = /^[\0-\xff]*[\x80-\xff][\0-\xff]*$/

/** A header field whose bytes are UTF-8, as the text that they are (undici and browsers do so, too). */
export function asUtf8(field: string): string {
  if (!MAY_BE_UTF8.test(field)) return field
  const bytes = Uint8Array.from(field, (letter) => letter.charCodeAt(0))
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return field
  }
}
