/**
 * The platform's types as our declarations name them: those that the user's compiler knows, from the DOM,
 * Node or Cloudflare; else the part of them that matters here.
 *
 * The trap is a declaration that names `Request`: a program for Node without Node's types, or for the ES
 * library alone, does not compile with it. The sources name the globals as usual; the build makes the
 * declarations import them from here.
 */

/** The instance of the global class of this name. */
type Made<Name extends string, Otherwise> =
  typeof globalThis extends Record<Name, { prototype: infer Instance }> ? Instance : Otherwise

type Fetch = typeof globalThis extends { fetch: infer Global } ? Global : PlainFetch
type PlainFetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

export type URL = Made<'URL', { readonly href: string; readonly host: string; readonly pathname: string }>
export type Headers = Made<'Headers', PlainHeaders>
export type Request = Made<'Request', PlainRequest>
export type Response = Made<'Response', PlainResponse>
export type AbortSignal = Made<'AbortSignal', PlainSignal>
export type EventTarget = Made<'EventTarget', PlainEventTarget>
export type Event = Made<'Event', PlainEvent>
export type ReadableStream = Made<'ReadableStream', AsyncIterable<Uint8Array>>
export type RequestInfo = string | Request
export type RequestInit = typeof globalThis extends {
  fetch: (input: never, init?: infer Init) => unknown
}
  ? NonNullable<Init>
  : PlainRequestInit
export type EventListenerOptions = { capture?: boolean }
export type AddEventListenerOptions = EventListenerOptions & {
  once?: boolean
  passive?: boolean
  signal?: AbortSignal
}

export declare const fetch: Fetch
export declare const Event: typeof globalThis extends { Event: infer Class }
  ? Class
  : new (
      type: string,
    ) => PlainEvent

interface PlainHeaders extends Iterable<[string, string]> {
  get(name: string): string | null
  has(name: string): boolean
  set(name: string, value: string): void
  append(name: string, value: string): void
  delete(name: string): void
  forEach(visit: (value: string, name: string) => void): void
}

interface PlainBody {
  readonly headers: PlainHeaders
  readonly url: string
  readonly bodyUsed: boolean
  text(): Promise<string>
  // As everywhere else: what a server sends is of any type.
  // biome-ignore lint/suspicious/noExplicitAny: the platform's own declaration says so.
  json(): Promise<any>
  arrayBuffer(): Promise<ArrayBuffer>
}

interface PlainRequest extends PlainBody {
  readonly method: string
  readonly signal: PlainSignal
  clone(): PlainRequest
}

interface PlainResponse extends PlainBody {
  readonly ok: boolean
  readonly status: number
  readonly statusText: string
  readonly redirected: boolean
  readonly type: string
  readonly body: (AsyncIterable<Uint8Array> & { cancel(reason?: unknown): Promise<void> }) | null
  clone(): PlainResponse
}

interface PlainRequestInit {
  method?: string
  headers?: PlainHeaders | Record<string, string> | [string, string][]
  body?: unknown
  redirect?: 'follow' | 'error' | 'manual'
  signal?: PlainSignal | null
}

interface PlainSignal extends PlainEventTarget {
  readonly aborted: boolean
  // biome-ignore lint/suspicious/noExplicitAny: the platform's own declaration says so.
  readonly reason: any
  throwIfAborted(): void
}

interface PlainEventTarget {
  addEventListener(type: string, listener: (event: never) => void, options?: unknown): void
  removeEventListener(type: string, listener: (event: never) => void, options?: unknown): void
  dispatchEvent(event: PlainEvent): boolean
}

interface PlainEvent {
  readonly type: string
  readonly timeStamp: number
  readonly defaultPrevented: boolean
  preventDefault(): void
}
