/**
 * What a throttle tells: events on itself, and the same on Node's `diagnostics_channel` as
 * `autothrottle:TYPE`.
 *
 * An event is made only if its type has a listener. So listeners are counted, also those that leave by
 * themselves (`once`, `signal`).
 */
import { builtin } from '../base/builtin.js'
import { kindOf } from '../base/checks.js'
import { StalledError } from '../base/errors.js'
import { type Target, urlTextOf } from '../scopes/names.js'
import type { Pace } from '../wasm/engine.js'
import { nearestName } from '../wasm/functions.js'
import type { SharedStats } from '../wasm/types.js'

/** A request as its events see it. */
export interface RequestLike {
  readonly ticket: number
  readonly target: Target
  readonly scopes: readonly string[]
}

/** What is known of the end of a request. */
export interface Ending {
  readonly status?: number | undefined
  readonly error?: unknown
  readonly latencyMs?: number | undefined
}

/** What happens to a request. */
export type News = 'queued' | 'send' | 'settle' | 'cancel'

/** Hears of it as a plain function: an event costs more. It never throws. */
export type Hear = (news: News, request: RequestLike, at: number, told: Ending) => void

/**
 * Something happened to a request. `target` is what was asked for, as spoken of everywhere else; the throttle
 * that told of it is `currentTarget`.
 */
export class RequestEvent extends (Event as new (type: string) => Omit<Event, 'target'>) {
  /** The same number in all events of one request, its retries among them. */
  readonly id: number
  /** What was asked for: the URL, the `Request`, or `{ scopes }`. */
  declare readonly target: Target
  /** Its scopes. */
  readonly scopes: readonly string[]
  /** When, in milliseconds of the throttle's clock. */
  readonly at: number
  /** @internal Of `settle`. */
  readonly status: number | undefined
  /** @internal Of `settle` and `cancel`. */
  readonly error: unknown
  /** @internal Of `settle`. */
  readonly latencyMs: number | undefined

  constructor(news: News, { ticket, target, scopes }: RequestLike, at: number, told: Ending) {
    super(news)
    this.id = ticket
    // The platform's own is a getter.
    Object.defineProperty(this, 'target', { value: target, enumerable: true })
    this.scopes = scopes
    this.at = at
    this.status = told.status
    this.error = told.error
    this.latencyMs = told.latencyMs
  }

  /** The URL of the target, if it has one. */
  get url(): string | undefined {
    return urlTextOf(this.target)
  }
}

/** A request was taken in. It waits, or leaves at once. */
export interface QueuedEvent extends RequestEvent {}

/** A request may leave now. */
export interface SendEvent extends RequestEvent {}

/** A request ended. */
export interface SettleEvent extends RequestEvent {
  /** The status of its response; `undefined` without one. */
  readonly status: number | undefined
  /** Why there was no response. */
  readonly error: unknown
  /** From send to response headers in milliseconds, if there was a response. */
  readonly latencyMs: number | undefined
}

/** A request stopped waiting: it was never sent. */
export interface CancelEvent extends RequestEvent {
  /** Why: the reason of its signal, a `TimeoutError`, a `ClosedError`, a `ScopeDownError` and so on. */
  readonly error: unknown
}

/** A scope's delay, backoff step or hold changed. */
export class ScopeEvent extends Event {
  /** The scope. */
  readonly scope: string
  /** Its delay in milliseconds: its own, or the longer one of backoff. */
  readonly delayMs: number
  /** Steps of backoff in force. */
  readonly step: number
  /** Until when it is held, in milliseconds of the throttle's clock. */
  readonly holdUntil: number | undefined
  /** Of a `hold` that was cut to `backoff.maxHold`: what the server asked for, in milliseconds. */
  readonly askedMs: number | undefined

  constructor(type: 'backoff' | 'recover' | 'delay' | 'hold', now: Pace & { askedMs?: number }) {
    super(type)
    this.scope = now.scope
    this.delayMs = now.delayMs
    this.step = now.step
    this.holdUntil = now.holdUntil
    this.askedMs = now.askedMs
  }
}

/** Something noteworthy that is no error. */
export class WarningEvent extends Event {
  /**
   * Which warning. `docs/events.md` says what each means and what to do.
   */
  readonly code:
    | 'many-waiting'
    | 'no-effect'
    | 'rampup-bound'
    | 'nested'
    | 'unheard'
    | 'unsettled'
    | 'hold-cut'
    | 'robots-overruled'
    | 'permit-lost'
    | 'units'
    | 'stall'
    | 'never-sent'
    | 'stream-cut'
    | 'usage-estimated'
    | 'shared-options'
    | 'shared-version'
    | 'shared-message'
    | 'shared-memory'
    | 'shared-deaf'
    | 'shared-crowded'
    | 'shared-offline'
    | 'shared-online'
  /** In words. */
  readonly message: string
  /** The scope in which it was noticed, if it is about one. */
  readonly scope: string | undefined

  constructor(code: WarningEvent['code'], message: string, scope?: string) {
    super('warning')
    this.code = code
    this.message = message
    this.scope = scope
  }
}

/** A scope has answered only badly for `stallAfter`. Once, until it answers well again. */
export class StallEvent extends Event {
  /** The scope. */
  readonly scope: string
  /** For how long, in milliseconds. */
  readonly forMs: number
  readonly #fail: (error: unknown) => void

  constructor(scope: string, forMs: number, fail: (error: unknown) => void) {
    super('stall')
    this.scope = scope
    this.forMs = forMs
    this.#fail = fail
  }

  /** Rejects everything that waits for the scope, with a `StalledError` unless you give another. */
  fail(error: unknown = new StalledError(this.scope, this.forMs)): void {
    this.#fail(error)
  }
}

/** Another process decides for the group, others are in it, or the way to them broke or is open again. */
export class SharedEvent extends Event {
  readonly shared: SharedStats

  constructor(shared: SharedStats) {
    super('shared')
    this.shared = shared
  }
}

/** Events of a throttle by name. */
export interface ThrottleEvents {
  /** A request was taken in: it waits, or leaves at once. */
  queued: QueuedEvent
  /** A request may leave now. */
  send: SendEvent
  /** A request ended. */
  settle: SettleEvent
  /** A request stopped waiting: it was never sent. */
  cancel: CancelEvent
  /** A bad answer made a scope take a step up. */
  backoff: ScopeEvent
  /** A scope took a step back; noticed at the next answer after it. */
  recover: ScopeEvent
  /** A scope's delay changed: by AutoThrottle, rampup, backoff or a server's pace. */
  delay: ScopeEvent
  /** A server asked to be left alone for longer than before. */
  hold: ScopeEvent
  /** A scope has answered only badly for `stallAfter`: the caller decides. */
  stall: StallEvent
  /** Something that is worth knowing; each once. */
  warning: WarningEvent
  /** Of a throttle that processes share: another writer, other members, or another state of the way. */
  shared: SharedEvent
}

type Callback = ((event: never) => void) | { handleEvent(event: never): void }
type Channel = { readonly hasSubscribers: boolean; publish(message: unknown): void }
type Diagnostics = { channel(name: string): Channel }

interface Listener {
  readonly callback: Callback
  readonly capture: boolean
  readonly once: boolean
  readonly signal: AbortSignal | undefined
  readonly onAbort: () => void
}

/** Who listens to one type of event. */
export class Ear {
  readonly type: string
  readonly #listeners: Listener[] = []
  readonly #channel: Channel | undefined

  constructor(type: string, channel: Channel | undefined) {
    this.type = type
    this.#channel = channel
  }

  /** Whether there is a listener. */
  get isHeard(): boolean {
    return this.#listeners.length > 0 || this.#channel?.hasSubscribers === true
  }

  /** Whether an event has to be dispatched. */
  get hasListeners(): boolean {
    return this.#listeners.length > 0
  }

  publish(event: unknown): void {
    if (this.#channel?.hasSubscribers) this.#channel.publish(event)
  }

  /** The same listener is kept once, as `EventTarget` does. */
  add(callback: Callback | null, options: boolean | AddEventListenerOptions | undefined): void {
    const { capture = false, once = false, signal } = typeof options === 'object' ? options : {}
    const isCapture = options === true || capture
    if (callback === null || signal?.aborted || this.#indexOf(callback, isCapture) >= 0) return
    const onAbort = () => this.remove(callback, isCapture)
    this.#listeners.push({ callback, capture: isCapture, once, signal, onAbort })
    signal?.addEventListener('abort', onAbort, { once: true })
  }

  remove(callback: Callback | null, options: boolean | EventListenerOptions | undefined): void {
    const capture = typeof options === 'object' ? (options.capture ?? false) : (options ?? false)
    const index = callback === null ? -1 : this.#indexOf(callback, capture)
    if (index < 0) return
    const [{ signal, onAbort }] = this.#listeners.splice(index, 1) as [Listener]
    signal?.removeEventListener('abort', onAbort)
  }

  /** The listeners that hear one event only. */
  get fleeting(): readonly Listener[] {
    return this.#listeners.filter(({ once }) => once)
  }

  #indexOf(callback: Callback, capture: boolean): number {
    return this.#listeners.findIndex((each) => each.callback === callback && each.capture === capture)
  }
}

const TYPES = 'queued send settle cancel backoff recover delay hold stall warning shared'.split(' ')

/** An ear for each type: fields, since they are asked at each request. */
export class Ears {
  declare readonly queued: Ear
  declare readonly send: Ear
  declare readonly settle: Ear
  declare readonly cancel: Ear
  declare readonly backoff: Ear
  declare readonly recover: Ear
  declare readonly delay: Ear
  declare readonly hold: Ear
  declare readonly stall: Ear
  declare readonly warning: Ear
  declare readonly shared: Ear

  constructor() {
    const diagnostics = builtin('diagnostics_channel') as Diagnostics | undefined
    const ears: Record<string, Ear> = this as never
    for (const type of TYPES) ears[type] = new Ear(type, diagnostics?.channel(`autothrottle:${type}`))
  }

  /** Whether changes of scopes have a listener. */
  get areScopesHeard(): boolean {
    return this.backoff.isHeard || this.recover.isHeard || this.delay.isHeard || this.hold.isHeard
  }

  of(type: string): Ear | undefined {
    return Object.hasOwn(this, type) ? this[type as keyof ThrottleEvents] : undefined
  }

  /** @throws {TypeError} for a type that no event has: its listener would never be called. */
  check(method: string, type: string): Ear {
    const ear = this.of(type)
    if (ear) return ear
    const nearest = nearestName(String(type), TYPES)
    const meant = nearest === undefined ? '' : ` (did you mean ${nearest}?)`
    throw new TypeError(`${method}: want one of ${TYPES.join(', ')}; got ${kindOf(type)}${meant}`)
  }
}

/** An `EventTarget` that knows its events by name, and whether there is a listener. */
export class ThrottleEventTarget extends (EventTarget as new () => Omit<
  EventTarget,
  'addEventListener' | 'removeEventListener' | 'dispatchEvent'
>) {
  readonly #ears = new Ears()

  /** @throws {TypeError} for a type that no event of a throttle has. */
  addEventListener<K extends keyof ThrottleEvents>(
    type: K,
    listener: ((event: ThrottleEvents[K]) => void) | null,
    options?: boolean | AddEventListenerOptions,
  ): void {
    this.#ears.check('addEventListener', type).add(listener, options)
    EventTarget.prototype.addEventListener.call(this, type, listener as (event: Event) => void, options)
  }

  removeEventListener<K extends keyof ThrottleEvents>(
    type: K,
    listener: ((event: ThrottleEvents[K]) => void) | null,
    options?: boolean | EventListenerOptions,
  ): void {
    this.#ears.check('removeEventListener', type).remove(listener, options)
    EventTarget.prototype.removeEventListener.call(this, type, listener as (event: Event) => void, options)
  }

  dispatchEvent(event: Event | ThrottleEvents[keyof ThrottleEvents]): boolean {
    const ear = this.#ears.of(event.type)
    const fleeting = ear?.fleeting ?? []
    const result = EventTarget.prototype.dispatchEvent.call(this, event as Event)
    for (const { callback, capture } of fleeting) ear?.remove(callback, capture)
    return result
  }

  /** @internal Who listens to what. */
  protected get ears(): Ears {
    return this.#ears
  }

  /** @internal Tells the listeners. */
  protected tell(event: ThrottleEvents[keyof ThrottleEvents]): void {
    const ear = this.#ears.of(event.type)
    if (ear?.hasListeners) this.dispatchEvent(event)
    ear?.publish(event)
  }
}
