/**
 * Which scopes a request belongs to, and which of them an answer concerns, for those who know better than the
 * host and the status: hooks and helpers for them.
 *
 * ```ts
 * createThrottle({
 *   getScopes: (request) => addScope(byHost(request), 'all'),
 *   getResponseBackoff: (response) => (response.headers.has('x-overloaded') ? 'all' : undefined),
 * })
 * ```
 *
 * The error of a hook that fails rejects its own request, as the cause.
 */

import type { SomeHints } from '../answers/headers.js'
import { isObject, shown } from '../base/checks.js'
import { ManagerError } from '../base/errors.js'
import { hostOf, hostOfName, methodOf, namedScopes, type Scopes, urlOf } from './names.js'

/** A request, as `getScopes` gets it. */
export interface ScopeRequest {
  /** The URL, absolute. */
  readonly url: string
  /** In capitals. */
  readonly method: string
  readonly headers: Headers
}

/**
 * Names the scopes of a request: one, several, or a map of scope → expected cost. Called once per request.
 */
export type GetScopes = (request: ScopeRequest) => Scopes | Promise<Scopes>

/** Finds hints that are not in headers. */
export type GetHints = (response: Response) => SomeHints | undefined | Promise<SomeHints | undefined>

/** Whether a response is a refusal, whatever its status says: it gets a clone. */
export type RetryWhen = (response: Response) => boolean | Promise<boolean>

/** The copy of the response that `when` reads. Answers of a client that has no clones go as they are. */
export function copyOf(response: unknown): Response {
  const { clone } = response as Partial<Response>
  return typeof clone === 'function' ? clone.call(response) : (response as Response)
}

/** The view of `fetch`'s arguments that a hook gets; the body stays where it is. */
export function scopeRequest(input: string | URL | Request, init: RequestInit = {}): ScopeRequest {
  const headers = new Headers(init.headers ?? (input as Partial<Request>).headers)
  return { url: urlOf(input).href, method: methodOf(input, init), headers }
}

/** The meaning of an answer for one scope. */
export interface ScopeBackoff {
  /** Whether it backs off. Default: yes, unless this only speaks of quota; then as the status says. */
  backoff?: boolean
  /** Milliseconds not to send. Default: what the headers ask for. */
  delay?: number
  /** The real cost of the request in this scope, in units. Scrapy's draft: `consumed_quota`. */
  cost?: number
  /**
   * Units left of the server's quota, and in how many milliseconds all of it is there again. Scrapy's draft:
   * `remaining_quota`.
   */
  remaining?: number
  resetMs?: number
}

/** The scopes that an answer makes back off: one, several, or a map of what it means for each. None: `{}`. */
export type Backoffs = string | readonly string[] | Readonly<Record<string, ScopeBackoff>>

/** The result of a hook that leaves the decision to the status and the headers. */
export type Nothing = undefined | null

/** Which scopes a response makes back off. The others of its request take a refusal for no news. */
export type GetResponseBackoff = (
  response: Response,
  request: ScopeRequest,
) => Backoffs | Nothing | Promise<Backoffs | Nothing>

/** Which scopes a failure makes back off. */
export type GetErrorBackoff = (
  error: unknown,
  request: ScopeRequest,
) => Backoffs | Nothing | Promise<Backoffs | Nothing>

/** How long a server asks not to be sent anything, in milliseconds, where its headers do not say it. */
export type GetResponseDelay = (response: Response) => number | Nothing | Promise<number | Nothing>

/** These backoffs with more about one scope, as a map: for hooks that ask another hook first. */
export function updateScopeBackoff(
  backoffs: Backoffs | Nothing,
  name: string,
  change: ScopeBackoff,
): Record<string, ScopeBackoff> {
  const map = backoffMap(backoffs ?? {})
  return { ...map, [name]: { ...map[name], ...change } }
}

/** In any of their forms as a map. */
export function backoffMap(backoffs: Backoffs): Record<string, ScopeBackoff> {
  if (typeof backoffs === 'string') return { [backoffs]: {} }
  if (Array.isArray(backoffs)) return Object.fromEntries(backoffs.map((name: string) => [name, {}]))
  return { ...(backoffs as Record<string, ScopeBackoff>) }
}

/** The result of a hook, checked against the scopes of the request. */
export function checkedBackoffs(
  hook: string,
  backoffs: unknown,
  scopes: readonly string[],
): Backoffs | undefined {
  if (backoffs === undefined || backoffs === null) return undefined
  const fail = (what: string): never => {
    throw new ManagerError(hook, what)
  }
  const isText =
    typeof backoffs === 'string' ||
    (Array.isArray(backoffs) && backoffs.every((name) => typeof name === 'string'))
  if (!isText && (typeof backoffs !== 'object' || Array.isArray(backoffs)))
    return fail(`gave ${shown(backoffs)}; want a scope, scopes, or a map of what it means for each`)
  for (const [name, means] of Object.entries(backoffMap(backoffs as Backoffs))) {
    if (!scopes.includes(name))
      fail(`named ${shown(name)}, which is no scope of the request (${scopes.join(', ')})`)
    if (!isObject(means)) fail(`gave ${shown(means)} for ${name}; want an object`)
    const { backoff, ...numbers } = means
    if (backoff !== undefined && typeof backoff !== 'boolean')
      fail(`gave backoff: ${shown(backoff)} for ${name}; want true or false`)
    for (const [key, value] of Object.entries(numbers)) {
      const isRight =
        BACKOFF_KEYS.includes(key) &&
        (value === undefined || (typeof value === 'number' && value >= 0 && value <= 1e12))
      if (!isRight)
        fail(`gave ${key}: ${shown(value)} for ${name}; want one of ${BACKOFF_KEYS.join(', ')}, from 0`)
    }
  }
  return backoffs as Backoffs
}

const BACKOFF_KEYS = ['delay', 'cost', 'remaining', 'resetMs']

/** Asks the hook, and checks what it says. */
export async function askScopes(
  getScopes: GetScopes,
  input: string | URL | Request,
  init?: RequestInit,
): Promise<Scopes> {
  const request = scopeRequest(input, init)
  let scopes: unknown
  try {
    scopes = await getScopes(request)
  } catch (cause) {
    throw new ManagerError('getScopes', `failed for ${request.url}`, { cause })
  }
  if (isScopes(scopes)) return scopes
  if (typeof scopes === 'function')
    throw new ManagerError('getScopes', 'gave a function: call it where you type it, getScopes: byEndpoint()')
  throw new ManagerError(
    'getScopes',
    `gave ${shown(scopes)} for ${request.url}; want a name, names, or a map of costs`,
  )
}

function isScopes(scopes: unknown): scopes is Scopes {
  const isName = (name: unknown) => typeof name === 'string'
  if (isName(scopes)) return true
  if (Array.isArray(scopes)) return scopes.length > 0 && scopes.every(isName)
  if (!isObject(scopes)) return false
  const costs = Object.values(scopes)
  return costs.length > 0 && costs.every((cost) => typeof cost === 'number' && cost >= 0 && cost <= 1e12)
}

/**
 * The host of the URL, with its port where that is not the scheme's own: what a throttle does without
 * `getScopes`.
 */
export const byHost = (request: { readonly url: string }): string => hostOf(request.url)

/**
 * Host and path for the given hosts (for all, without any), so that each endpoint is a scope of its own; the
 * host for others.
 */
export function byEndpoint(...hosts: string[]): (request: { readonly url: string }) => string {
  const typed = hosts.map((host) => (/:\/\//.test(host) ? hostOf(host) : (hostOfName(host) ?? host)))
  return ({ url }) => {
    const { host, pathname } = urlOf(url)
    return typed.length === 0 || typed.includes(host) ? host + pathname : host
  }
}

/**
 * One scope for the registrable domain and one for each host name below it: `a.books.example.com` belongs to
 * itself, to `books.example.com` and to `example.com`.
 *
 * @param registrableDomain what is registrable of a host name. The default is a rule of thumb: its last two
 *   labels, or three where the last but one is a short label under a country's domain (`example.co.uk`).
 *   `autothrottle/domains` knows them all.
 */
export function byDomainHierarchy(
  registrableDomain: (hostname: string) => string | null = lastLabels,
): (request: { readonly url: string }) => string[] {
  return ({ url }) => {
    const { hostname, host } = urlOf(url)
    const registrable = isAddress(hostname) ? null : registrableDomain(hostname)
    if (registrable === null || !`.${hostname}`.endsWith(`.${registrable}`)) return [host]
    const above = hostname.slice(0, -registrable.length).split('.').filter(Boolean)
    return [...above.map((_, index) => [...above.slice(index), registrable].join('.')), registrable]
  }
}

function lastLabels(hostname: string): string | null {
  const labels = hostname.split('.')
  if (labels.length < 2) return null
  const [second = '', first = ''] = labels.slice(-2)
  const isShort = first.length === 2 && second.length <= 3 && labels.length > 2
  return labels.slice(isShort ? -3 : -2).join('.')
}

/** Whether a host is an IP address, which has no domain. */
export function isAddress(hostname: string): boolean {
  return hostname.startsWith('[') || /^\d+(?:\.\d+){3}$/.test(hostname)
}

/**
 * These scopes and one more. With a cost, or where there are costs already, a map.
 *
 * @throws {TypeError} for what is none: `byEndpoint(…)` makes a function, and what that gives is meant.
 */
export function addScope(scopes: Scopes, name: string, cost?: number): Scopes {
  const { names, costs } = namedScopes(scopes)
  if (costs) return { ...(scopes as Readonly<Record<string, number>>), [name]: cost ?? 1 }
  if (cost === undefined) return names.includes(name) ? names : [...names, name]
  return { ...Object.fromEntries(names.map((each) => [each, 1])), [name]: cost }
}
