/**
 * The events of a throttle: events on itself, and the same on Node's `diagnostics_channel` as
 * `autothrottle:TYPE`.
 *
 * An event is made only if its type has a listener. Listeners are therefore counted, also those that leave by
 * themselves (`once`, `signal`).
 */
import { builtin } from '../base/builtin.js'
import { kindOf, notOneOf } from '../base/checks.js'
import { type Target, urlTextOf } from '../scopes/names.js'
import { nearestName } from '../wasm/functions.js'
import type { SharedStats, WarningCode } from '../wasm/types.js'

/** A request as its events see it. */
export interface RequestLike {
  readonly id: number
  readonly target: Target
  readonly scopes: readonly string[]
}

/** The end of a request, as far as it is known. */
export interface Ending {
  readonly status?: number | undefined
  readonly error?: unknown
  readonly latencyMs?: number | undefined
}

/** The phases of a request. */
export type RequestPhase = 'queued' | 'send' | 'settle' | 'cancel'

/** Hears of it as a plain function: an event costs more. It never throws. */
export type RequestObserver = (phase: RequestPhase, request: RequestLike, at: number, ending: Ending) => void

/**
 * Something happened to a request. `target` is what was asked for, as spoken of everywhere else; the throttle
 * that told of it is `currentTarget`.
 */
export interface RequestEvent extends Omit<Event, 'target'> {
  /** The same number in all events of one request, its retries among them: 1 for the first, 2, 3, … */
  readonly id: number
  /** The target of the request: the URL, the `Request`, or `{ scopes }`. */
  readonly target: Target
  /** The URL of the target, if it has one. */
  readonly url: string | undefined
  /** Its scopes. */
  readonly scopes: readonly string[]
  /** When, in milliseconds of the throttle's clock. */
  readonly at: number
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

/** A scope has answered only badly for `stallAfter`. Once, until it answers well again. */
export interface StallEvent extends Event {
  /** The scope. */
  readonly scope: string
  /** For how long, in milliseconds. */
  readonly forMs: number
  /** Rejects everything that waits for the scope, with a `StalledError` unless you give another. */
  fail(error?: unknown): void
}

// written by `cargo xtask write`: classes of events

/** A scope's pace changed: its delay, backoff step or hold. */
export interface ScopeEvent extends Event {
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
}

/** The throttle does something else than you typed, or than it promises. Each comes once. */
export interface WarningEvent extends Event {
  /** Which warning it is. `docs/events.md` says what each means and what to do. */
  readonly code: WarningCode
  /** A sentence about the event, and the advice. */
  readonly message: string
  /** The scope in which it was noticed, if it is about one. */
  readonly scope: string | undefined
}

/** Another process decides for the group, others are in it, or the way to them broke or is open again. */
export interface SharedEvent extends Event {
  /** The group, as this process sees it from now on. */
  readonly shared: SharedStats
}

// end of what is written

/** Events of a throttle by name. */
export interface ThrottleEvents {
  // written by `cargo xtask write`: events
  /** A request was taken in: it waits, or leaves at once. */
  queued: QueuedEvent
  /** A request may leave now. */
  send: SendEvent
  /** A request ended. */
  settle: SettleEvent
  /**
   * A request stopped waiting, and was never sent: a signal, its `maxWait`, `close`, a scope that is
   * down.
   */
  cancel: CancelEvent
  /** A bad answer made a scope take a step up. */
  backoff: ScopeEvent
  /** A scope took a step back; noticed at the next answer after it. */
  recover: ScopeEvent
  /** A scope's delay changed: by AutoThrottle, rampup, backoff or a server's pace. */
  delay: ScopeEvent
  /** A server asked for a longer wait than before. */
  hold: ScopeEvent
  /** A scope has answered only badly for `stallAfter`; without a listener it is a `warning`. */
  stall: StallEvent
  /** A warning, once per code and scope. */
  warning: WarningEvent
  /** Of a shared throttle: another writer, other members, or the connection broke or is back. */
  shared: SharedEvent
  // end of what is written
}

/** An event, with what it tells. */
export function eventOf<T extends keyof ThrottleEvents>(
  type: T,
  fields: Omit<ThrottleEvents[T], keyof Event>,
): ThrottleEvents[T] {
  return Object.assign(new Event(type), fields) as unknown as ThrottleEvents[T]
}

/** The event of a request; `status`, `error` and `latencyMs` are there where it ended. */
export function requestEvent(
  phase: RequestPhase,
  { id, target, scopes }: RequestLike,
  at: number,
  { status, error, latencyMs }: Ending,
): ThrottleEvents[RequestPhase] {
  const fields = { id, scopes, at, status, error, latencyMs, url: urlTextOf(target) }
  // The platform's own target is a getter.
  return Object.defineProperty(eventOf(phase, fields as never), 'target', { value: target, enumerable: true })
}

type Callback = ((event: never) => void) | { handleEvent(event: never): void }
type Channel = { readonly hasSubscribers: boolean; publish(message: unknown): void }
type Diagnostics = { channel(name: string): Channel }
type Options = boolean | AddEventListenerOptions | undefined

interface Listener {
  readonly callback: Callback
  readonly capture: boolean
  readonly once: boolean | undefined
  /** Stops listening to the signal. */
  readonly leave: () => void
}

/** The listeners and subscribers of one type of event. */
export class Topic {
  readonly type: keyof ThrottleEvents
  readonly #channel: Channel | undefined
  readonly #listeners: Listener[] = []

  constructor(type: keyof ThrottleEvents, channel: Channel | undefined) {
    this.type = type
    this.#channel = channel
  }

  /** Whether there is a listener, or a subscriber of the diagnostics channel. */
  get hasObservers(): boolean {
    return this.hasListeners || this.#channel?.hasSubscribers === true
  }

  /** Whether an event has to be dispatched. */
  get hasListeners(): boolean {
    return this.#listeners.length > 0
  }

  publish(event: unknown): void {
    if (this.#channel?.hasSubscribers) this.#channel.publish(event)
  }

  /** The same listener is kept once, as `EventTarget` does. */
  add(callback: Callback | null, options: Options): void {
    const { once, signal } = Object(options) as AddEventListenerOptions
    if (callback === null || signal?.aborted || this.#placeOf(callback, options) >= 0) return
    const gone = () => this.remove(callback, options)
    const leave = () => signal?.removeEventListener('abort', gone)
    this.#listeners.push({ callback, capture: isCapture(options), once, leave })
    signal?.addEventListener('abort', gone, { once: true })
  }

  remove(callback: Callback | null, options: Options): void {
    const place = this.#placeOf(callback, options)
    if (place >= 0) this.#listeners.splice(place, 1)[0]!.leave()
  }

  /** The listeners of one event only. */
  get fleeting(): readonly Listener[] {
    return this.#listeners.filter(({ once }) => once)
  }

  #placeOf(callback: Callback | null, options: Options): number {
    const wanted = isCapture(options)
    return this.#listeners.findIndex((each) => each.callback === callback && each.capture === wanted)
  }
}

/** The options may be the flag itself. */
const isCapture = (options: Options) => Boolean(typeof options === 'object' ? options.capture : options)

// written by `cargo xtask write`: types of events
const TYPES = 'queued send settle cancel backoff recover delay hold stall warning shared'
// end of what is written

const ALL = TYPES.split(' ') as (keyof ThrottleEvents)[]

/** A topic for each type: fields, since they are asked at each request. */
export class Topics {
  // written by `cargo xtask write`: topics
  declare readonly queued: Topic
  declare readonly send: Topic
  declare readonly settle: Topic
  declare readonly cancel: Topic
  declare readonly backoff: Topic
  declare readonly recover: Topic
  declare readonly delay: Topic
  declare readonly hold: Topic
  declare readonly stall: Topic
  declare readonly warning: Topic
  declare readonly shared: Topic
  // end of what is written

  constructor() {
    const diagnostics = builtin('diagnostics_channel') as Diagnostics | undefined
    const topics: Record<string, Topic> = this as never
    for (const type of ALL) topics[type] = new Topic(type, diagnostics?.channel(`autothrottle:${type}`))
  }

  /** Whether changes of scopes have a listener. */
  get areScopesObserved(): boolean {
    // written by `cargo xtask write`: topics of a pace
    return (
      this.backoff.hasObservers ||
      this.recover.hasObservers ||
      this.delay.hasObservers ||
      this.hold.hasObservers
    )
    // end of what is written
  }

  of(type: string): Topic | undefined {
    return Object.hasOwn(this, type) ? this[type as keyof ThrottleEvents] : undefined
  }

  /** @throws {TypeError} for a type that no event has: its listener would never be called. */
  check(method: string, type: string): Topic {
    const topic = this.of(type)
    if (topic) return topic
    throw notOneOf(method, ALL, kindOf(type), nearestName(String(type), ALL))
  }
}

/** An `EventTarget` that knows its events by name, and whether there is a listener. */
export class ThrottleEventTarget extends (EventTarget as new () => Omit<
  EventTarget,
  'addEventListener' | 'removeEventListener' | 'dispatchEvent'
>) {
  readonly #topics = new Topics()

  /** @throws {TypeError} for a type that no event of a throttle has. */
  addEventListener<K extends keyof ThrottleEvents>(
    type: K,
    listener: ((event: ThrottleEvents[K]) => void) | null,
    options?: boolean | AddEventListenerOptions,
  ): void {
    this.#topics.check('addEventListener', type).add(listener, options)
    EventTarget.prototype.addEventListener.call(this, type, listener as (event: Event) => void, options)
  }

  removeEventListener<K extends keyof ThrottleEvents>(
    type: K,
    listener: ((event: ThrottleEvents[K]) => void) | null,
    options?: boolean | EventListenerOptions,
  ): void {
    this.#topics.check('removeEventListener', type).remove(listener, options)
    EventTarget.prototype.removeEventListener.call(this, type, listener as (event: Event) => void, options)
  }

  dispatchEvent(event: Event | ThrottleEvents[keyof ThrottleEvents]): boolean {
    const topic = this.#topics.of(event.type)
    const fleeting = topic?.fleeting ?? []
    const result = EventTarget.prototype.dispatchEvent.call(this, event as Event)
    for (const { callback, capture } of fleeting) topic?.remove(callback, capture)
    return result
  }

  /** @internal The listeners by type. */
  protected get topics(): Topics {
    return this.#topics
  }

  /** @internal Tells the listeners. */
  protected emit(event: ThrottleEvents[keyof ThrottleEvents]): void {
    const topic = this.#topics.of(event.type)
    if (topic?.hasListeners) this.dispatchEvent(event)
    topic?.publish(event)
  }
}
