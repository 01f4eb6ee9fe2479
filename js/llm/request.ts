/**
 * Reads the request of a call: whose it is, which model, how much goes in, and how much may come out. Its
 * body is read in Rust (`crates/llm`), for every host alike; how vendors count stands here.
 */
import { loadLlm } from '../wasm/load/llm.js'

/** The vendor whose rules hold. */
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

/** The rules of a request that asks no model. */
export const OTHER: Rules = { kinds: ['other'], isActual: false }

/** A call, as far as its budgets are concerned. */
export interface Asked {
  readonly vendor: Vendor
  readonly host: string
  /** `undefined`: it asks no model. */
  readonly model: string | undefined
  /** The size of the input: characters, UTF-8 bytes, and tokens that are known as they are. */
  readonly characters: number
  readonly bytes: number
  readonly tokens: number
  /**
   * The most tokens that may come out; `undefined` where the call does not say, 0 where no token comes out.
   */
  readonly bound: number | undefined
  /** It holds files or sound, which only its vendor can count. */
  readonly isUncounted: boolean
}

/** Reads a request. `body`: as text, as a form, or what else `fetch` takes. */
export function askedOf(
  url: URL,
  method: string,
  body: unknown,
  wanted: Vendor | undefined,
  countTokens: ((text: string, model: string) => number) | undefined,
): Asked {
  const { host, pathname } = url
  const { WasmAsked } = loadLlm()
  const form = body instanceof FormData ? body.get('model') : undefined
  const named = typeof form === 'string' ? form : undefined
  const text = typeof body === 'string' ? body : ''
  const counts = countTokens !== undefined
  const read = new WasmAsked(host, pathname, method, text, named, wanted ?? '', counts)
  try {
    const [model, bound] = [read.model(), read.bound()]
    let tokens = read.tokens()
    for (let text = read.take_text(); text !== undefined; text = read.take_text())
      tokens += countTokens!(text, model!)
    return {
      vendor: read.vendor() as Vendor,
      host,
      model,
      characters: read.characters(),
      bytes: read.bytes(),
      tokens,
      bound: Number.isNaN(bound) ? undefined : bound,
      isUncounted: read.is_uncounted(),
    }
  } finally {
    read.free()
  }
}
