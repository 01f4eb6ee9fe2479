/**
 * Passes the engine's notices on: to a scope's manager, to listeners, to the console. If a manager throws,
 * all others hear first. The engine tells only what has a listener.
 */

import { ManagerError, ScopeDownError, StalledError } from '../base/errors.js'
import type { Clock, ScopeOptions } from '../options/options.js'
import type { Handles } from '../scopes/handles.js'
import type { ManagedScopes } from '../scopes/strategy.js'
import type { Notice, Outcome, ScopeHandle } from '../wasm/engine.js'
import { FINDINGS } from '../wasm/generated.js'
import { eventOf, type ThrottleEvents, type Topics } from './events.js'
import type { Host } from './host.js'
import type { Warnings } from './warnings.js'

const HOW_TO_SEND = 'send with the fetch of the permit, ({ fetch }) => …'

/** Where notices go: listeners, managers, the console. */
export interface EventSink {
  readonly topics: Topics
  readonly emit: (event: ThrottleEvents[keyof ThrottleEvents]) => void
  readonly managed: ManagedScopes | undefined
  readonly isDebug: boolean
  readonly warnings: Warnings
  /** Whether robots.txt is to be asked before a URL is, which `fetch` alone does. */
  readonly hasRobots: boolean
}

export class Notices {
  readonly #engine: Host
  readonly #clock: Clock
  readonly #handles: () => Handles
  readonly #sink: EventSink
  readonly #failAll: (error: unknown, scope: string) => void
  readonly #split: (scope: string) => void
  #level: 0 | 1 | 2 = 0

  constructor(
    engine: Host,
    clock: Clock,
    handles: () => Handles,
    sink: EventSink,
    failAll: (error: unknown, scope: string) => void,
    split: (scope: string) => void,
  ) {
    this.#engine = engine
    this.#clock = clock
    this.#handles = handles
    this.#sink = sink
    this.#failAll = failAll
    this.#split = split
  }

  /** Asks the engine to tell as much as has listeners. */
  watch(): void {
    const level = this.#sink.isDebug ? 2 : this.#sink.topics.areScopesObserved ? 1 : 0
    if (level !== this.#level) this.#engine.watch(level)
    this.#level = level
  }

  /** Whether a listener or a manager wants any of it, now or from the next answer on. */
  get areWanted(): boolean {
    return this.areUrgent || this.#sink.isDebug || this.#sink.topics.areScopesObserved
  }

  /** Whether an answer may bring something that has to be heard before others leave. */
  get areUrgent(): boolean {
    return this.#level > 0 || this.#sink.managed !== undefined
  }

  /** Tells what the engine tells. The first manager that throws is thrown when all have heard. */
  pass(outcome: Outcome): void {
    let failure: { error: unknown } | undefined
    for (const notice of this.#engine.takeNotices()) {
      const { kind, scope } = notice
      if (kind === 'answer') {
        const { latencyMs = outcome.latencyMs } = notice
        if (this.#sink.isDebug && latencyMs !== undefined) console.debug(debugLine(notice, latencyMs))
        try {
          this.#pace(scope, this.#sink.managed?.onAnswer(scope, this.#clock.now(), notice.isBad, outcome))
        } catch (error) {
          failure ??= { error }
        }
      } else if (kind === 'stall') {
        const { topics, warnings, emit } = this.#sink
        const { forMs } = notice
        const stalled = new StalledError(scope, forMs)
        const fail = (error: unknown = stalled) => this.#failAll(error, scope)
        if (topics.stall.hasObservers) emit(eventOf(kind, { scope, forMs, fail }))
        else warnings.emit(kind, stalled.message, scope)
      } else if (kind === 'budgets') {
        this.#split(scope)
      } else if (kind === 'no-status') {
        const what = `the last requests of ${scope} ended without a status, so a 429 has no effect`
        const how = `${HOW_TO_SEND}, return the response, or settle({ status })`
        this.#sink.warnings.once(kind, `${what}: ${how}`, scope)
      } else if (kind === 'down') {
        this.#failAll(new ScopeDownError(scope, notice.forMs), scope)
      } else if (isFinding(notice)) {
        const [does, doesToAll] = FINDINGS[notice.kind]
        const effect = scope ? `${does} ${scope}` : doesToAll
        const message = `${notice.path} ${effect}: ${notice.why}`
        this.#sink.warnings.emit(notice.kind, message, scope || undefined)
      } else {
        const { kind: type, ...fields } = notice
        this.#sink.emit(eventOf(type, fields as never))
      }
    }
    if (failure) throw failure.error
  }

  /** A client of the caller's sent to a URL. */
  sentElsewhere(): void {
    if (!this.#sink.hasRobots) return
    const message = `robots has no effect on what other clients send: ${HOW_TO_SEND}`
    this.#sink.warnings.once('no-effect', message, undefined, 'robots')
  }

  /** A scope that is made asks its manager how fast it goes. */
  manage(managed: ManagedScopes, name: string, handle: ScopeHandle): void {
    if (managed.size > 1000 + 2 * this.#engine.scopes) managed.forget()
    this.#pace(name, managed.begin(name), handle)
  }

  /** The pace that a scope's manager asks for. */
  #pace(
    name: string,
    pace: ScopeOptions | undefined,
    handle = pace && this.#handles().of(name).handle,
  ): void {
    if (pace === undefined || handle === undefined || Object.keys(pace).length === 0) return
    try {
      this.#engine.configure(this.#clock.now(), handle, pace)
    } catch (cause) {
      throw new ManagerError('manager', `of ${name}: ${(cause as Error).message}`, { cause })
    }
  }

  /** Tells the managers that a request leaves. */
  onSend(names: readonly string[], now: number): void {
    for (const name of names) this.#pace(name, this.#sink.managed?.onSend(name, now))
  }
}

/** Whether it is about a setting, and what that does to a scope. */
function isFinding(notice: Notice): notice is Extract<Notice, { why: string }> {
  return 'why' in notice
}

/** Scrapy's line of AUTOTHROTTLE_DEBUG; the size is not known when headers arrive. */
function debugLine(
  { scope, delayMs, delayBeforeMs, inFlight }: Extract<Notice, { kind: 'answer' }>,
  latencyMs: number,
): string {
  const whole = (ms: number, width: number) => ms.toFixed(0).padStart(width)
  const change = delayMs - delayBeforeMs
  const difference = `${change < 0 ? '-' : '+'}${Math.abs(change).toFixed(0)}`
  const pace = `delay:${whole(delayMs, 5)} ms (${difference})`
  return `slot: ${scope} | conc:${String(inFlight).padStart(2)} | ${pace} | latency:${whole(latencyMs, 5)} ms`
}
