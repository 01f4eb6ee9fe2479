/**
 * `autothrottle/robots`: Allow and Disallow, read by the package robots-parser (install it beside this one).
 *
 * ```ts
 * import { rules } from 'autothrottle/robots'
 * const throttle = createThrottle({ robots: { userAgent: 'foobot', rules } })
 * ```
 */
import robotsParser from 'robots-parser'
import type { RobotsRules } from './fetch/robots.js'

type Parser = (
  url: string,
  text: string,
) => { isAllowed(url: string, userAgent: string): boolean | undefined }

// Node and bundlers disagree about what the default export of a CommonJS module is, and so do its types.
const exported = robotsParser as unknown as Parser | { default: Parser }
const parse = typeof exported === 'function' ? exported : exported.default

/** Our group's name inside the library, which knows tokens only. */
const OURS = 'ours'
/** A line that belongs to a group. Some write no colon, or a blank in the name. */
const LINE =
  /^\s*(user[-_ \t]*agent|crawl[-_ \t]*delay|request[-_ \t]*rate|allow|disallow)(?:\s*:|\s)([^#]*)/i
/** Encoded characters, characters to encode, and letters that need no code (RFC 9309 §2.2.2). */
const ENCODED = /%[\da-f]{2}|%|[^\w\-.~/?#@:!&()+,;=*$%]+/gi
const NEEDS_NONE = /^[\w\-.~]$/

/** Percent-encodes in one way, as `crates/reading/src/robots/rules.rs` does. */
function plain(text: string): string {
  return text.replace(ENCODED, (each) => {
    if (each[0] !== '%' || each === '%')
      return encodeURIComponent(each.replace(/\p{Surrogate}/gu, '\uFFFD')).replaceAll("'", '%27')
    const letter = String.fromCharCode(Number.parseInt(each.slice(1), 16))
    return NEEDS_NONE.test(letter) ? letter : each.toUpperCase()
  })
}

/** A URL, in which stars and dollars have no meaning; in a pattern a dollar has one at its end. */
const plainUrl = (url: string) => plain(url).replaceAll('*', '%2A').replaceAll('$', '%24')
const plainPattern = (text: string) => {
  const pattern = plain(text)
  return pattern.slice(0, -1).replaceAll('$', '%24') + pattern.slice(-1)
}

/**
 * The product tokens of a User-Agent, as the engine reads them for `Crawl-delay`
 * (`crates/reading/src/robots.rs`).
 */
function productsOf(userAgent: string): Set<string> {
  const words = userAgent.toLowerCase().match(/[^ ;(),]+/g) ?? []
  const products = words.flatMap((word) => {
    const [, name, version] = /^([a-z0-9_-]+)(\/\d.*)?$/.exec(word) ?? []
    return name !== undefined && (version !== undefined || words.length === 1) ? [name] : []
  })
  return new Set(products.length > 1 ? products.filter((name) => name !== 'mozilla') : products)
}

/** A name of a group without its version or its `*`, in time that grows as the name does. */
function token(name: string): string {
  let end = name.indexOf('/') < 0 ? name.length : name.indexOf('/')
  while (end > 0 && name[end - 1] === '*') end--
  return name.slice(0, end).trimEnd()
}

/**
 * Which URLs a robots.txt allows: what the file does not mention is allowed. `userAgent` is a product
 * token or a whole User-Agent.
 *
 * Rewrites rules that the library reads otherwise than RFC 9309: groups that name one of our products
 * (`foobot/2.1` and `foobot*`, too) get one name; a group without rules is one all the same (§5.1).
 */
export const rules: RobotsRules = (robotsUrl, text, userAgent) => {
  if (typeof userAgent !== 'string')
    throw new TypeError('rules: type it without (): robots: { userAgent: "name", rules }')
  const products = productsOf(userAgent)
  let isNamed = false
  const lines = text
    .replace(/^\uFEFF/, '')
    .split(/[\r\n]+/)
    .flatMap((line) => {
      const [, key, value] = LINE.exec(line) ?? []
      // A line of another kind is no part of a group and ends none (§2.2.4).
      if (key === undefined || value === undefined) return []
      const text = value.trim()
      if (!/^u/i.test(key)) return /^[ad]/i.test(key) ? [`${key}: ${plainPattern(text)}`] : ['Crawl-delay: 0']
      const isOurs = products.has(token(text.toLowerCase()))
      isNamed ||= isOurs
      return [`User-agent: ${isOurs ? OURS : text === '*' ? text : 'other'}`]
    })
  if (isNamed) lines.push(`User-agent: ${OURS}`, 'Disallow:')
  const robots = parse(robotsUrl, lines.join('\n'))
  const isFree = (url: string) => /^[^?#]*\/\/[^/?#]*\/robots\.txt(?:[?#]|$)/.test(url)
  return (url) => isFree(url) || (robots.isAllowed(plainUrl(url), OURS) ?? true)
}
