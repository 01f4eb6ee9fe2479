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

/** Which URLs a robots.txt allows: what the file does not mention is allowed. */
export const rules: RobotsRules = (robotsUrl, text, userAgent) => {
  const robots = parse(robotsUrl, text)
  return (url) => robots.isAllowed(url, userAgent) ?? true
}
