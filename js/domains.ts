/**
 * `autothrottle/domains`: scopes by registrable domain, known by the package tldts (install it beside this
 * one).
 *
 * ```ts
 * import { byRegistrableDomain } from 'autothrottle/domains'
 * createThrottle({ getScopes: byRegistrableDomain })
 * ```
 */
import { getDomain } from 'tldts'
import { byDomainHierarchy as byHierarchy, byHost } from './scopes/hooks.js'

/**
 * `books.example.co.uk` and `example.co.uk` are one scope; what has no registrable domain (an address,
 * `localhost`) is its host.
 */
export const byRegistrableDomain = (request: { readonly url: string }): string =>
  getDomain(request.url) ?? byHost(request)

/** One scope for the registrable domain and one for each host name below it. */
export const byDomainHierarchy = byHierarchy((hostname) => getDomain(hostname))
