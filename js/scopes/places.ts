/**
 * Texts that name a place: links, redirects, what was typed.
 *
 * `URL.canParse` is wrong in Node 20.20 and 22.23 once it was called often (it says no to
 * `https://bücher.example/`). The bytes of a `Location` in UTF-8 come from `Headers` as one letter each.
 */

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
