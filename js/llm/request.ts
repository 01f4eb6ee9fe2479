/**
 * Reads the request of a call: whose it is, which model, how much goes in, and how much may come out. Its
 * body is read in Rust (`crates/llm`), for every host alike.
 */
import { loadLlm } from '../wasm/load/llm.js'

/** The vendor whose rules hold. */
export type Vendor = 'openai' | 'anthropic' | 'azure' | 'mistral' | 'groq' | 'openrouter' | 'gemini'

/** By their numbers in Rust. */
export const VENDORS: readonly Vendor[] = 'openai anthropic azure mistral groq openrouter gemini'.split(
  ' ',
) as Vendor[]

/** The budgets of models, by their numbers in Rust. */
export const KINDS = ['other', 'requests', 'day', 'tokens', 'project', 'input', 'output'] as const
/** A budget of a model. */
export type Kind = (typeof KINDS)[number]

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

type Five = readonly [number, number, number, number, number]

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
  const read = new WasmAsked(host, pathname, method, text, named, VENDORS.indexOf(wanted!), counts)
  try {
    const model = read.model()
    const [characters, bytes, known, bound, isUncounted] = read.size() as unknown as Five
    let tokens = known
    for (let text = read.take_text(); text !== undefined; text = read.take_text())
      tokens += countTokens!(text, model!)
    return {
      vendor: VENDORS[read.vendor()]!,
      ...{ host, model, characters, bytes, tokens },
      bound: Number.isNaN(bound) ? undefined : bound,
      isUncounted: isUncounted > 0,
    }
  } finally {
    read.free()
  }
}
