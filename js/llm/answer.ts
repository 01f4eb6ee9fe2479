/**
 * Reads an answer: limits in its headers, usage in its body, and whether a refusal will ever end. They are
 * read in Rust (`crates/llm`), for every host alike.
 */
import { parseHints } from '../wasm/functions.js'
import { loadLlm, type WasmBody } from '../wasm/load/llm.js'
import { KINDS, type Kind, VENDORS, type Vendor } from './request.js'

/** A budget as the headers tell it: what is left of it, and its length in milliseconds. */
export interface ReportedLimit {
  readonly kind: Kind
  readonly limit: number
  readonly left: number | undefined
  readonly per: number
}

/** The budgets that the headers tell. */
export function limitsOf(headers: Headers, vendor: Vendor): ReportedLimit[] {
  const limits: ReportedLimit[] = []
  // Azure says −1 for what it does not tell.
  for (const quota of parseHints([...headers].filter(([, value]) => value !== '-1')).quotas) {
    const { policy = '', limit: most = 0, remaining = Number.NaN, resetMs = 0 } = quota
    const [kind, limit, left, per] = loadLlm().reported(
      VENDORS.indexOf(vendor),
      policy,
      most,
      remaining,
      resetMs,
    )
    if (kind !== undefined) limits.push({ kind: KINDS[kind]!, limit: limit!, left: known(left!), per: per! })
  }
  return limits
}

/** The tokens of a call, in the vendor's own count; `undefined` where it does not say. */
export interface Usage {
  /** The charged tokens of the input, and the free ones, which came from the vendor's cache. */
  readonly input: number | undefined
  readonly free: number
  readonly output: number | undefined
}

/** A number that is known. */
const known = (value: number) => (Number.isNaN(value) ? undefined : value)

/** Hears a body in passing. */
export class Body {
  usage: Usage = { input: undefined, free: 0, output: undefined }
  /** Tokens that were seen to be written: characters of a stream ÷ 4, or what the vendor counts so far. */
  written = 0
  /** The stream carried an error. */
  isBroken = false
  /** A stream was read to the event that ends it. */
  isWhole = false
  #reader: WasmBody | undefined

  constructor(isStream: boolean, isCachedFree: boolean) {
    this.#reader = new (loadLlm().WasmBody)(isStream, isCachedFree)
  }

  hear(bytes: Uint8Array): void {
    this.#reader?.hear(bytes)
    this.#look()
  }

  /** The body is over. */
  end(): void {
    this.#reader?.end()
    this.#look()
    this.#reader?.free()
    this.#reader = undefined
  }

  #look(): void {
    const reader = this.#reader
    if (!reader) return
    const [input, free, output, written, isBroken, isWhole] = reader.look()
    this.usage = { input: known(input!), free: free!, output: known(output!) }
    this.written = written!
    this.isBroken = isBroken! > 0
    this.isWhole = isWhole! > 0
  }
}

/** A refusal, as read. */
export interface Refusal {
  /** Milliseconds to wait; `undefined` where it does not say. */
  readonly wait: number | undefined
  /** No wait helps. */
  readonly isFinal: boolean
  /** Which budget has no room, in the words of the refusal. */
  readonly kind: Kind | undefined
}

/** Reads a refusal: headers first, then what its body says. */
export function refusalOf({ status, headers }: Response, text: string, isAnthropic: boolean): Refusal {
  const { delayMs, source } = parseHints(headers)
  const wait = (source?.includes('after') && delayMs) || 0
  const isFinal = headers.get('x-should-retry') === 'false'
  const hasAfter = headers.has('retry-after')
  const read = loadLlm().refusal(status, wait, hasAfter, isFinal, isAnthropic, text)
  return { wait: known(read[0]!), isFinal: read[1] === 1, kind: KINDS[read[2]!] }
}
