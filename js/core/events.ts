/**
 * What a throttle tells: events on itself, and the same on Node's `diagnostics_channel` as `autothrottle:TYPE`.
 *
 * The trap is to pay for what nobody hears: an event is made only when somebody listens to its type.
 */
import { builtin } from '../wasm/node-builtin.js'
import { StalledError } from './errors.js'

/** A request may leave now. */
export class SendEvent extends Event {
  /** Its scopes. */
  readonly scopes: readonly string[]
  /** When, in milliseconds of the throttle's clock. */
  readonly at: number

  constructor(scopes: readonly string[], at: number) {
    super('send')
    this.scopes = scopes
    this.at = at
  }
}

/** A request ended. */
export class SettleEvent extends Event {
  /** Its scopes. */
  readonly scopes: readonly string[]
  /** The status of its response; `undefined` without one. */
  readonly status: number | undefined
  /** Why there was no response. */
  readonly error: unknown
  /** From send to response headers in milliseconds, if there was a response. */
  readonly latencyMs: number | undefined

  constructor(
    scopes: readonly string[],
    status: number | undefined,
    error: unknown,
    latencyMs: number | undefined,
  ) {
    super('settle')
    this.scopes = scopes
    this.status = status
    this.error = error
    this.latencyMs = latencyMs
  }
}

/** Something about one scope is another than before the last answer. */
export class ScopeEvent extends Event {
  /** The scope. */
  readonly scope: string
  /** Its delay in milliseconds: its own, or the longer one of backoff. */
  readonly delayMs: number
  /** Steps of backoff in force. */
  readonly step: number
  /** Until when it is held, in milliseconds of the throttle's clock. */
  readonly holdUntil: number | undefined

  constructor(
    type: 'backoff' | 'recover' | 'delay' | 'hold',
    scope: string,
    now: { delayMs: number; step: number; holdUntil: number | undefined },
  ) {
    super(type)
    this.scope = scope
    this.delayMs = now.delayMs
    this.step = now.step
    this.holdUntil = now.holdUntil
  }
}

/** Something noteworthy that is no error. */
export class WarningEvent extends Event {
  /**
   * Which warning: so many wait that memory may become a problem; a setting does nothing; a scope has a pace of your own
   * and its robots.txt asks for another.
   */
  readonly code: 'many-waiting' | 'no-effect' | 'robots-overruled'
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

/** Events of a throttle by name. */
export interface ThrottleEvents {
  /** A request may leave now. */
  send: SendEvent
  /** A request ended. */
  settle: SettleEvent
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
}

type Channel = { readonly hasSubscribers: boolean; publish(message: unknown): void }
type Diagnostics = { channel(name: string): Channel }

/** An `EventTarget` that knows its events by name, and whether anybody listens. */
export class ThrottleEventTarget extends (EventTarget as new () => Omit<
  EventTarget,
  'addEventListener' | 'removeEventListener'
>) {
  readonly #heard = new Set<string>()
  readonly #channels = new Map<string, Channel | undefined>()

  addEventListener<K extends keyof ThrottleEvents>(
    type: K,
    listener: ((event: ThrottleEvents[K]) => void) | null,
    options?: boolean | AddEventListenerOptions,
  ): void {
    this.#heard.add(type)
    EventTarget.prototype.addEventListener.call(this, type, listener as (event: Event) => void, options)
  }

  removeEventListener<K extends keyof ThrottleEvents>(
    type: K,
    listener: ((event: ThrottleEvents[K]) => void) | null,
    options?: boolean | EventListenerOptions,
  ): void {
    EventTarget.prototype.removeEventListener.call(this, type, listener as (event: Event) => void, options)
  }

  /** @internal Whether anybody may be listening to one of these. */
  protected isHeard(...types: (keyof ThrottleEvents)[]): boolean {
    return types.some((type) => this.#heard.has(type) || this.#channel(type)?.hasSubscribers === true)
  }

  /** @internal Tells whoever listens. */
  protected tell(event: ThrottleEvents[keyof ThrottleEvents]): void {
    const type = event.type as keyof ThrottleEvents
    if (this.#heard.has(type)) this.dispatchEvent(event)
    const channel = this.#channel(type)
    if (channel?.hasSubscribers) channel.publish(event)
  }

  #channel(type: string): Channel | undefined {
    if (!this.#channels.has(type)) {
      const diagnostics = builtin('diagnostics_channel') as Diagnostics | undefined
      this.#channels.set(type, diagnostics?.channel(`autothrottle:${type}`))
    }
    return this.#channels.get(type)
  }
}
