/**
 * What a call asks of a model: whose it is, which model, how much goes in, and how much may come out.
 *
 * A picture of 5 MB in base64 is 1,600 tokens and not 1,250,000. `GET /models` spends no tokens. With Azure
 * the model stands in the path. One call may ask for `n` answers.
 */
import { isObject as isAny } from '../base/checks.js'

/** Whose rules hold. */
export type Vendor = 'openai' | 'anthropic' | 'azure' | 'mistral' | 'groq' | 'openrouter' | 'gemini'

/** How a vendor counts. */
export interface Rules {
  /** Budgets that a call may spend from. */
  readonly kinds: readonly Kind[]
  /** How `tokens` is charged: the larger of input and output, or both; and whether by true usage. */
  readonly isLarger?: boolean
  readonly isActual: boolean
  /** Reserve what may come out at most, not what usually does. */
  readonly isMax?: boolean
  readonly isSliding?: boolean
  readonly isCachedFree?: boolean
  /** A day's requests come back evenly, not at midnight. */
  readonly isEvenDay?: boolean
  /** Its requests are of a day, where the headers leave that open. */
  readonly isDaily?: boolean
  /** Requests of a minute may be counted by the second. */
  readonly isSpread?: boolean
  /** Whether it estimates input from characters, as OpenAI does, and not from tokens. */
  readonly isByCharacters?: boolean
  /** How far what the headers say may be off: Anthropic rounds tokens to thousands. */
  readonly rounding?: number
}

/** A budget of a model. */
export type Kind = 'other' | 'requests' | 'day' | 'tokens' | 'project' | 'input' | 'output'

const TOKENS = ['requests', 'day', 'tokens'] as const
export const VENDORS: Readonly<Record<Vendor, Rules>> = {
  openai: {
    kinds: [...TOKENS, 'project'],
    isLarger: true,
    isActual: false,
    isMax: true,
    isByCharacters: true,
    isEvenDay: true,
  },
  azure: { kinds: TOKENS, isActual: false, isMax: true, isSliding: true, isByCharacters: true },
  anthropic: {
    kinds: ['requests', 'input', 'output'],
    isActual: true,
    isCachedFree: true,
    isSpread: true,
    rounding: 500,
  },
  mistral: { kinds: TOKENS, isActual: true },
  groq: { kinds: TOKENS, isActual: true, isEvenDay: true, isDaily: true },
  openrouter: { kinds: TOKENS, isActual: true },
  gemini: { kinds: ['requests', 'day', 'input', 'tokens'], isActual: true },
}

/** What asks no model. */
export const OTHER: Rules = { kinds: ['other'], isActual: false }

/** A vendor's host; Gemini's is Google's. */
const HOST = /(azure|anthropic|mistral|groq|openrouter|googleapis)\.(?:com|ai)$/

/** A call, as far as its budgets are concerned. */
export interface Asked {
  readonly vendor: Vendor
  readonly host: string
  /** `undefined`: it asks no model. */
  readonly model: string | undefined
  /** What is to be counted: characters, UTF-8 bytes, and tokens that are known as they are. */
  readonly characters: number
  readonly bytes: number
  readonly tokens: number
  /** What may come out at most; `undefined` where the call does not say, 0 where no token comes out. */
  readonly bound: number | undefined
  /** It holds files or sound, which only its vendor can count. */
  readonly isUncounted: boolean
}

type Json = Record<string, unknown>
const isObject = isAny as (value: unknown) => value is Json
const isNumber = (value: unknown): value is number => typeof value === 'number' && value >= 0

/** Paths that spend a model's requests and tokens. */
const CALL =
  /\/(?:completions|responses|embeddings|moderations|messages|(?:images|audio)\/\w+)$|:\w*generateContent$/i
/** A picture of which only the address is known, and the most that Anthropic counts for one. */
const PICTURE = 1600
/** Of a file or a recording. */
const BINARY = /^(?:data|file_data|fileData|b64_json)$/

/** What a request asks. `body`: as text, as a form, or what else `fetch` takes. */
export function askedOf(
  url: URL,
  method: string,
  body: unknown,
  wanted: Vendor | undefined,
  countTokens: ((text: string, model: string) => number) | undefined,
): Asked {
  const { host, pathname } = url
  const known = HOST.exec(host)?.[1] ?? (pathname.endsWith('/messages') ? 'anthropic' : 'openai')
  const vendor = wanted ?? (VENDORS[known as Vendor] ? (known as Vendor) : 'gemini')
  const nothing = { vendor, host, model: undefined, characters: 0, bytes: 0, tokens: 0, bound: 0 }
  if (method !== 'POST' || !CALL.test(pathname)) return { ...nothing, isUncounted: false }
  let json: unknown
  if (typeof body === 'string')
    try {
      json = JSON.parse(body)
    } catch {
      // No JSON: a request of the vendor's, and its error to say so.
    }
  const form = body instanceof FormData ? body.get('model') : undefined
  const { model: named = form } = isObject(json) ? json : {}
  const place = /\/(?:deployments|models)\/([^/:]+)/.exec(pathname)?.[1]
  const model = place ?? (typeof named === 'string' ? named : '*')
  const sum = { characters: 0, bytes: 0, tokens: 0, isUncounted: false }
  // Pictures and sound that are made cost requests.
  if (!isObject(json) || /\/(?:images|audio)\//.test(pathname)) return { ...nothing, model, ...sum }
  count(json, sum, countTokens && ((text) => countTokens(text, model)))
  return { vendor, host, model, ...sum, bound: boundOf(json, pathname) }
}

function boundOf(json: Json, path: string): number | undefined {
  if (/(?:embeddings|moderations)$/.test(path)) return 0
  const { max_completion_tokens, max_tokens, max_output_tokens, n, generationConfig } = json
  const gemini = isObject(generationConfig) ? generationConfig.maxOutputTokens : undefined
  const bound = [max_completion_tokens, max_tokens, max_output_tokens, gemini].find(isNumber)
  return bound === undefined ? undefined : bound * (isNumber(n) && n > 1 ? n : 1)
}

interface Sum {
  characters: number
  bytes: number
  tokens: number
  isUncounted: boolean
}

/** Adds up all text; pictures by their pixels; lists of numbers are tokens already. */
function count(value: unknown, sum: Sum, counter: ((text: string) => number) | undefined, key = ''): void {
  if (typeof value === 'string') {
    if (value.startsWith('data:image/')) sum.tokens += tokensOfPicture(value.slice(value.indexOf(',') + 1))
    else if (value.startsWith('data:') || BINARY.test(key)) {
      sum.tokens += PICTURE
      sum.isUncounted = true
    } else if (counter) sum.tokens += counter(value)
    else {
      sum.characters += value.length
      sum.bytes += utf8.encode(value).length
    }
  } else if (Array.isArray(value)) {
    if (typeof value[0] === 'number') sum.tokens += value.length
    else for (const each of value) count(each, sum, counter)
  } else if (isObject(value)) {
    const { type, media_type, mimeType, detail, data } = value
    const address = value.url ?? value.file_uri ?? value.image_url
    const isImage = /image/.test(String(type)) || key === 'image_url' || (type === 'url' && key === 'source')
    if (/^image/.test(String(media_type ?? mimeType)) && typeof data === 'string')
      sum.tokens += tokensOfPicture(data)
    else if (isImage && detail === 'low') sum.tokens += 85
    else if (isImage && typeof address === 'string' && !address.startsWith('data:')) sum.tokens += PICTURE
    else for (const [name, each] of Object.entries(value)) count(each, sum, counter, name)
  }
}

const utf8 = new TextEncoder()

/** Where PNG and JPEG, and then GIF and WebP, have their two sides: these with the lower byte first. */
const SIDES =
  /^\x89PNG.{14}(..)..(..)|\xff[\xc0-\xc2]\0.[\b](..)(..)|^(?:GIF8..|.{12}VP8 .{10})(..)(..)|^.{12}VP8X.{8}(..).(..)/gs

/** Pixels ÷ 750, as Anthropic says and OpenAI's tiles come to; 1,600 where the size is hidden. */
function tokensOfPicture(base64: string): number {
  let pixels = 0
  try {
    // A JPEG may hold a small one of itself before.
    for (const [, ...sides] of atob(base64.slice(0, 64_000)).matchAll(SIDES)) {
      const first = sides.findIndex(Boolean)
      const side = (at: number) => {
        const [high, low] = [0, 1].map((byte) => sides[at]!.charCodeAt(first < 4 ? byte : 1 - byte))
        return high! * 256 + low!
      }
      pixels = Math.max(pixels, side(first) * side(first + 1))
    }
  } catch {
    // No base64: as if its size were hidden.
  }
  return Math.min(PICTURE, Math.ceil(pixels / 750) || PICTURE)
}
