/**
 * Which scopes a request belongs to: by default one, the host of its URL.
 *
 * `URL` does the work: lower case, IDN as ASCII, the port only when it is not the scheme's own.
 */

/** What a request is for. */
export type Target = string | URL | Request | { readonly scopes: Scopes }

/** One scope, several, or a map of scope → expected cost. */
export type Scopes = string | readonly string[] | Readonly<Record<string, number>>

/** Whether `fetch` was given a `Request`, of this realm or another. */
export function isRequest(input: string | URL | Request): input is Request {
  return typeof input === 'object' && 'url' in input
}

/** What `fetch` takes as a URL. Relative ones are read against the page they are on, if there is one. */
export function urlOf(input: string | URL | Request): URL {
  if (input instanceof URL) return input
  const url = typeof input === 'string' ? input : input.url
  const base = (globalThis as { location?: { href?: string } }).location?.href
  return base === undefined || base === 'about:blank' ? new URL(url) : new URL(url, base)
}

/** The scope of a URL: its host. */
export function hostOf(url: string | URL | Request): string {
  return urlOf(url).host
}

/** Names beside costs; no costs where nobody said any. */
export interface NamedScopes {
  readonly names: readonly string[]
  readonly costs: readonly number[] | undefined
}

/** Scopes in any of their forms as names and costs. */
export function namedScopes(scopes: Scopes): NamedScopes {
  if (typeof scopes === 'string') return { names: [scopes], costs: undefined }
  if (isList(scopes)) return { names: scopes, costs: undefined }
  return { names: Object.keys(scopes), costs: Object.values(scopes) }
}

function isList(scopes: readonly string[] | Readonly<Record<string, number>>): scopes is readonly string[] {
  return Array.isArray(scopes)
}
