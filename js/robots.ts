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

/** What our group is called on its way into the library, which knows tokens only. */
const OURS = 'ours'
const AGENT = /^\s*user-agent\s*:([^#]*)/i
/** A letter that needs no percent-encoding is the same with and without it (RFC 9309 §2.2.2). */
const ENCODED = /%(?:2[de]|3\d|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])/gi

const plain = (text: string) => text.replace(ENCODED, (each) => decodeURIComponent(each))

/**
 * The product tokens of a User-Agent, as the engine reads them for `Crawl-delay` (`reading/src/robots.rs`).
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
 * token or
 * a whole User-Agent.
 *
 * What the library reads otherwise than RFC 9309 is made plain before: groups that name one of our products
 * (`foobot/2.1` and `foobot*`, too) get one name; a group without rules is one all the same (§5.1).
 */
export const rules: RobotsRules = (robotsUrl, text, userAgent) => {
  if (typeof userAgent !== 'string')
    throw new TypeError('rules: type it without (): robots: { userAgent: "name", rules }')
  const products = productsOf(userAgent)
  let isNamed = false
  const lines = text.split(/\r\n|\r|\n/).map((line) => {
    const name = AGENT.exec(line)?.[1]?.trim().toLowerCase()
    if (name === undefined) return plain(line)
    const isOurs = products.has(token(name))
    isNamed ||= isOurs
    return `User-agent: ${isOurs ? OURS : name === '*' ? name : 'other'}`
  })
  if (isNamed) lines.push(`User-agent: ${OURS}`, 'Disallow:')
  const robots = parse(robotsUrl, lines.join('\n'))
  return (url) => robots.isAllowed(plain(url), OURS) ?? true
}
