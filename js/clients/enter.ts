/**
 * Shared code of the entries for clients: a request as the throttle's hooks see it, and its permit.
 *
 * No client is imported, not even for its types: a program compiles beside any version of it, and beside
 * none. The engine is not imported either: the throttle is the caller's, so an entry costs a kilobyte.
 */
import type { Permit, PermitOutcome } from '../core/permit.js'
import type { FetchOptions } from '../core/requests.js'
import type { Target } from '../scopes/names.js'
import type { Throttle } from '../throttle/throttle.js'

/**
 * The options of a single request, in the place that its client has for options: priority, cost, scopes,
 * `maxWait`. How long an answer may take is for the client's own timeout to say.
 */
export type ClientRequestOptions = Omit<FetchOptions, 'requestTimeout'>

/** A request of any client. */
export interface ClientRequest {
  readonly url: string
  readonly method?: string | undefined
  readonly headers?: object | undefined
}

/** Waits for the permit of a request. */
export function enter(
  throttle: Throttle,
  { url, method = 'GET', headers }: ClientRequest,
  own: ClientRequestOptions | undefined,
  signal?: AbortSignal | null,
): Promise<Permit> {
  const { scopes, adjustDelay, ...wait } = own ?? {}
  const fields = fieldsOf(headers)
  const target = scopes === undefined ? { url, method: method.toUpperCase(), headers: fields } : { scopes }
  return throttle.acquire(target as unknown as Target, { ...wait, signal: signal ?? null })
}

/** An outcome with what the request itself said of it. */
export function outcomeWith(
  outcome: PermitOutcome | undefined,
  own: ClientRequestOptions | undefined,
): PermitOutcome | undefined {
  return outcome && own?.adjustDelay !== undefined ? { ...outcome, adjustDelay: own.adjustDelay } : outcome
}

/**
 * The outcome in the text of a failed navigation: browsers have their own, and crawlers put theirs around
 * them. A navigation that was given up, or failed at a proxy, is no fault of the server.
 */
export function outcomeOfText(text: string): PermitOutcome | undefined {
  if (text === '' || /abort|cancel|blocked|proxy|tunnel/i.test(text)) return undefined
  const error = new Error(text)
  if (/time(?:d[ _]?)?[ _-]?out/i.test(text)) error.name = 'TimeoutError'
  return { error }
}

/** Header fields of any client: an object, or what gives names and values. */
function fieldsOf(headers: object = {}): Headers {
  const fields = new Headers()
  const all = Symbol.iterator in headers ? (headers as Iterable<[string, unknown]>) : Object.entries(headers)
  for (const [name, value] of all)
    for (const each of Array.isArray(value) ? value : [value])
      if (each !== undefined && each !== null && !name.startsWith(':')) fields.append(name, String(each))
  return fields
}
