/**
 * Finds the links of a page: links of HTML, addresses of sitemaps. Read while the page arrives, so that a
 * page of any length costs the memory of a short one.
 *
 * Tags are looked at as they come: a tree of the whole page is ten times as large as its text, for the few
 * tags that have a link. This file therefore counts the elements that hide links. htmlparser2's parser would
 * do that, but it looks through all open tags at each tag: for a page of one megabyte that opens 300,000, it
 * takes over a minute.
 */
import { gunzipSync } from 'node:zlib'
import { Tokenizer } from 'htmlparser2'
import { toUrl } from '../scopes/names.js'

/** A sitemap's root, without its prefix. */
const SITEMAPS = new Set(['urlset', 'sitemapindex'])
/** An address of more characters is none. */
const LONGEST_PLACE = 8192
/** The longest sitemap that the protocol allows, unpacked; what is longer is no sitemap. */
const MOST_BYTES = 52_428_800
/** Within these a `<style/>` may be closed by itself. */
const FOREIGN = new Set(['svg', 'math'])

/** The links in a document; whether it is a sitemap, whose addresses are as near as it. */
export interface Found {
  readonly urls: Iterable<URL>
  readonly isSitemap: boolean
}

/** Reads a document piece by piece. */
export interface Reading {
  write(part: Uint8Array): void
  end(): Found
}

/** How a document of this type at this place is read; `undefined` if it leads nowhere. */
export function readingOf(type: string, url: URL): Reading | undefined {
  if (/^(?:text\/html|application\/xhtml\+xml)\b/i.test(type) && !isSitemapsName(url))
    return new Links(type, url)
  return /[/+]xml\b/.test(type) || isSitemapsName(url) ? new Sitemap(type, url) : undefined
}

const isSitemapsName = ({ pathname }: URL) => /\.xml(?:\.gz)?$|sitemap[^/]*\.gz$/i.test(pathname)

/** All of a text at once: a sitemap's first tag says whether it is one. */
class Sitemap implements Reading {
  readonly #type: string
  readonly #url: URL
  #parts: Uint8Array[] = []
  #bytes = 0

  constructor(type: string, url: URL) {
    this.#type = type
    this.#url = url
  }

  write(part: Uint8Array): void {
    this.#bytes += part.length
    if (this.#bytes <= MOST_BYTES) this.#parts.push(part)
    else this.#parts = []
  }

  end(): Found {
    const body = Buffer.concat(this.#parts)
    const text = unpacked(body)
    const places = placesOf(text)
    if (places) return { urls: urlsOf(places, this.#url), isSitemap: true }
    // XHTML under a name like a sitemap's.
    const links = new Links(this.#type, this.#url)
    if (/html/i.test(this.#type)) links.write(body)
    return links.end()
  }
}

/** The sitemaps that a robots.txt names. */
export const sitemapsIn = (robots: string): string[] =>
  [...robots.matchAll(/^[ \t]*sitemap:[ \t]*(\S+)/gim)].map(([, place]) => place!)

function unpacked(body: Buffer): string {
  try {
    const isPacked = body[0] === 0x1f && body[1] === 0x8b
    return (isPacked ? gunzipSync(body, { maxOutputLength: MOST_BYTES }) : body).toString('utf8')
  } catch {
    return ''
  }
}

/** The text of a body in its own charset, as far as the runtime knows it. */
export function decoder(type: string): TextDecoder {
  const charset = /charset="?([\w-]+)/i.exec(type)?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(charset)
  } catch {
    return new TextDecoder()
  }
}

/** The contents of a sitemap's `loc` elements, in one pass over its characters; `undefined` if it is none. */
function placesOf(text: string): string[] | undefined {
  const places: string[] = []
  let root: string | undefined
  /** The text of the `loc` that is open. */
  let place: string | undefined
  const nameOf = (start: number, end: number) => text.slice(start, end).split(':').at(-1)
  const add = (more: string) => {
    if (place !== undefined && place.length <= LONGEST_PLACE) place += more
  }
  const nothing = () => {}
  const tags = new Tokenizer(
    { xmlMode: true },
    {
      onopentagname: (start, end) => {
        const name = nameOf(start, end)
        root ??= name
        place = name === 'loc' ? '' : undefined
      },
      ontext: (start, end) => add(text.slice(start, end)),
      ontextentity: (code) => add(String.fromCodePoint(code)),
      oncdata: (start, end, offset) => add(text.slice(start, end - offset)),
      onclosetag: (start, end) => {
        if (place !== undefined && nameOf(start, end) === 'loc' && place.length <= LONGEST_PLACE)
          places.push(place.trim())
        place = undefined
      },
      ...{ isInForeignContext: () => false, onattribdata: nothing, onattribentity: nothing },
      ...{ onattribend: nothing, onattribname: nothing, oncomment: nothing, ondeclaration: nothing },
      ...{ onend: nothing, onopentagend: nothing, onprocessinginstruction: nothing },
      onselfclosingtag: nothing,
    },
  )
  tags.write(text)
  tags.end()
  return root !== undefined && SITEMAPS.has(root) ? places : undefined
}

function* urlsOf(places: readonly string[], base: URL): Generator<URL> {
  for (const place of places) {
    const url = urlIn(place, base)
    if (url) yield url
  }
}

/** Links, read against `<base>` where there is one. */
class Links implements Reading {
  readonly #decoder: TextDecoder
  readonly #page: URL
  readonly #tags: Tokenizer
  readonly #found = new Map<string, URL>()
  #base: URL | undefined
  #foreign = 0
  #templates = 0
  /** Where scripts run, its content is text. */
  #isNoscript = false
  /** The text from the end of the last event on, and where in the page it begins: events say places. */
  #text = ''
  #textAt = 0
  #overAt = 0
  #tag = ''
  #href: string | undefined
  #isHref = false

  constructor(type: string, page: URL) {
    this.#decoder = decoder(type)
    this.#page = page
    const over = (_: number, end: number) => {
      this.#overAt = end
    }
    const nothing = () => {}
    this.#tags = new Tokenizer(
      {},
      {
        isInForeignContext: () => this.#foreign > 0 || this.#isNoscript,
        onopentagname: (start, end) => {
          this.#tag = this.#slice(start, end).toLowerCase()
          this.#href = undefined
        },
        onattribname: (start, end) => {
          this.#isHref = this.#href === undefined && this.#slice(start, end).toLowerCase() === 'href'
          if (this.#isHref) this.#href = ''
        },
        onattribdata: (start, end) => this.#onValue(this.#slice(start, end)),
        onattribentity: (code) => this.#onValue(String.fromCodePoint(code)),
        onopentagend: () => this.#onTag(false),
        onselfclosingtag: () => this.#onTag(true),
        onclosetag: (start, end) => this.#onEndTag(this.#slice(start, end).toLowerCase()),
        ...{ onattribend: over, oncdata: over, oncomment: over, ondeclaration: over, ontext: over },
        ...{ onprocessinginstruction: over, ontextentity: nothing, onend: nothing },
      },
    )
  }

  write(part: Uint8Array): void {
    this.#next(this.#decoder.decode(part, { stream: true }))
  }

  end(): Found {
    this.#next(this.#decoder.decode())
    this.#tags.end()
    return { urls: this.#found.values(), isSitemap: false }
  }

  #next(text: string): void {
    this.#text = this.#text.slice(this.#overAt - this.#textAt) + text
    this.#textAt = this.#overAt
    this.#tags.write(text)
  }

  #slice(start: number, end: number): string {
    this.#overAt = end
    return this.#text.slice(start - this.#textAt, end - this.#textAt)
  }

  #onValue(text: string): void {
    if (this.#isHref) this.#href += text
  }

  #onTag(isClosed: boolean): void {
    const tag = this.#tag
    if (this.#isNoscript) return
    if (FOREIGN.has(tag)) this.#foreign += isClosed ? 0 : 1
    if (tag === 'noscript') this.#isNoscript = this.#foreign === 0
    if (tag === 'template') this.#templates++
    if (this.#href !== undefined && this.#templates === 0) this.#onLink(tag, this.#href)
  }

  #onEndTag(tag: string): void {
    if (tag === 'noscript') this.#isNoscript = false
    if (this.#isNoscript) return
    if (FOREIGN.has(tag)) this.#foreign = Math.max(0, this.#foreign - 1)
    if (tag === 'template') this.#templates = Math.max(0, this.#templates - 1)
  }

  #onLink(tagName: string, href: string): void {
    if (tagName === 'base') this.#base ??= urlIn(href, this.#page)
    if (tagName !== 'a' && tagName !== 'area') return
    const url = urlIn(href, this.#base ?? this.#page)
    if (url) this.#found.set(url.href, url)
  }
}

/** A URL that can be fetched, without its fragment. */
export function urlIn(place: string, base: URL): URL | undefined {
  const url = toUrl(place, base)
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return undefined
  url.hash = ''
  return url
}
