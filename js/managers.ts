/**
 * Which scopes a request belongs to, for those who want others than its host: `getScopes` and helpers for it.
 *
 * ```ts
 * createThrottle({ getScopes: (request) => addScope(byHost(request), 'all') })
 * ```
 *
 * The trap is a hook that fails and takes the throttle with it: its error rejects its own request, as the cause.
 */
import { shown } from './checks.js'
import { ManagerError } from './errors.js'
import { hostOf, type Scopes, urlOf } from './scopes.js'

/** What `getScopes` is told of a request. */
export interface ScopeRequest {
  /** The URL, absolute. */
  readonly url: string
  /** In capitals. */
  readonly method: string
  readonly headers: Headers
}

/** Names the scopes of a request: one, several, or a map of scope → expected cost. Called once per request. */
export type GetScopes = (request: ScopeRequest) => Scopes | Promise<Scopes>

/** What a hook sees of the arguments of `fetch`; the body stays where it is. */
export function scopeRequest(input: string | URL | Request, init: RequestInit = {}): ScopeRequest {
  const request = typeof input === 'object' && 'url' in input ? input : undefined
  return {
    url: urlOf(input).href,
    method: (init.method ?? request?.method ?? 'GET').toUpperCase(),
    headers: new Headers(init.headers ?? request?.headers),
  }
}

/** Asks the hook, and checks what it says. */
export async function askScopes(getScopes: GetScopes, request: ScopeRequest): Promise<Scopes> {
  let scopes: unknown
  try {
    scopes = await getScopes(request)
  } catch (cause) {
    throw new ManagerError('getScopes', `failed for ${request.url}`, { cause })
  }
  if (isScopes(scopes)) return scopes
  throw new ManagerError(
    'getScopes',
    `gave ${shown(scopes)} for ${request.url}; want a name, names, or a map of costs`,
  )
}

function isScopes(scopes: unknown): scopes is Scopes {
  const isName = (name: unknown) => typeof name === 'string'
  if (isName(scopes)) return true
  if (Array.isArray(scopes)) return scopes.length > 0 && scopes.every(isName)
  if (typeof scopes !== 'object' || scopes === null) return false
  const costs = Object.values(scopes)
  return costs.length > 0 && costs.every((cost) => typeof cost === 'number' && cost >= 0 && cost <= 1e12)
}

/** The host of the URL, with its port where that is not the scheme's own: what a throttle does without `getScopes`. */
export const byHost = (request: { readonly url: string }): string => hostOf(request.url)

/**
 * Host and path for the given hosts (for all, without any), so that each endpoint is a scope of its own; the host for
 * others.
 */
export function byEndpoint(...hosts: string[]): (request: { readonly url: string }) => string {
  return ({ url }) => {
    const { host, pathname } = urlOf(url)
    return hosts.length === 0 || hosts.includes(host) ? host + pathname : host
  }
}

/**
 * One scope for the registrable domain and one for each host name below it: `a.books.example.com` belongs to itself, to
 * `books.example.com` and to `example.com`.
 *
 * @param registrableDomain what is registrable of a host name. Default: its last two labels, or three where the last but
 *   one is a short label under a country's domain (`example.co.uk`), which is a rule of thumb; `autothrottle/domains` knows them all.
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

/** These scopes and one more. With a cost, or where there are costs already, a map. */
export function addScope(scopes: Scopes, name: string, cost?: number): Scopes {
  if (typeof scopes !== 'string' && !Array.isArray(scopes)) return { ...scopes, [name]: cost ?? 1 }
  const names: readonly string[] = typeof scopes === 'string' ? [scopes] : (scopes as readonly string[])
  if (cost === undefined) return names.includes(name) ? names : [...names, name]
  return { ...Object.fromEntries(names.map((each) => [each, 1])), [name]: cost }
}
