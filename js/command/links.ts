/** What a page leads to: links of HTML, addresses of sitemaps. */
import { gunzipSync } from 'node:zlib'
import { toUrl } from '../scopes/places.js'
import { defaultTreeAdapter, parse } from './parsers.js'

const SITEMAP = /^\s*(?:<\?xml[^>]*>\s*)?(?:<!--[\s\S]*?-->\s*)*<(?:\w+:)?(?:urlset|sitemapindex)[\s>]/
const LOCATION = /<(?:\w+:)?loc>\s*(?:<!\[CDATA\[)?\s*([^<\]]+?)\s*(?:\]\]>)?\s*<\/(?:\w+:)?loc>/g
const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
/** The longest sitemap that the protocol allows, unpacked. */
const MOST_BYTES = 52_428_800

/** What a document says about where to go on; whether it is a sitemap, whose addresses are as near as it. */
export interface Found {
  readonly urls: Iterable<URL>
  readonly isSitemap: boolean
}

export function foundIn(body: Buffer, type: string, url: URL): Found {
  const isPacked = body[0] === 0x1f && body[1] === 0x8b
  if (isPacked || /[/+]xml\b/.test(type) || /\.xml$/.test(url.pathname)) {
    const text = unpacked(body, isPacked)
    if (SITEMAP.test(text)) return { urls: locationsOf(text, url), isSitemap: true }
  }
  if (!/^(?:text\/html|application\/xhtml\+xml)\b/i.test(type)) return { urls: [], isSitemap: false }
  return { urls: linksOf(decoded(body, type), url), isSitemap: false }
}

function unpacked(body: Buffer, isPacked: boolean): string {
  try {
    return (isPacked ? gunzipSync(body, { maxOutputLength: MOST_BYTES }) : body).toString('utf8')
  } catch {
    return ''
  }
}

/** The text of a body in its own charset, as far as the runtime knows it. */
export function decoded(body: Buffer, type: string): string {
  const charset = /charset="?([\w-]+)/i.exec(type)?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(charset).decode(body)
  } catch {
    return body.toString('utf8')
  }
}

function* locationsOf(text: string, base: URL): Generator<URL> {
  for (const [, place = ''] of text.matchAll(LOCATION)) {
    const url = urlIn(
      place.replaceAll(/&(amp|lt|gt|quot|apos);/g, (_, name) => ENTITIES[name] ?? ''),
      base,
    )
    if (url) yield url
  }
}

/** Links, read against `<base>` where there is one. */
function* linksOf(html: string, page: URL): Generator<URL> {
  let base = page
  const left = [...parse(html).childNodes]
  for (let node = left.pop(); node; node = left.pop()) {
    if (!defaultTreeAdapter.isElementNode(node)) continue
    // Backwards, so that they come in the order of the page.
    for (let index = node.childNodes.length - 1; index >= 0; index--) left.push(node.childNodes[index]!)
    const href = node.attrs.find(({ name }) => name === 'href')?.value
    if (href === undefined) continue
    if (node.tagName === 'base') base = urlIn(href, page) ?? page
    if (node.tagName !== 'a' && node.tagName !== 'area') continue
    const url = urlIn(href, base)
    if (url) yield url
  }
}

/** A URL that can be fetched, without its fragment. */
export function urlIn(place: string, base: URL): URL | undefined {
  const url = toUrl(place, base)
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return undefined
  url.hash = ''
  return url
}
