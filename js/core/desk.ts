/**
 * Where requests come in and where they go when they are over. One request's way:
 *
 * 1. `request`: scopes → names → handles → the engine. Where nobody waits and nothing keeps it, a permit comes back at
 *    once; else a promise, and a `Waiting` that the driver holds.
 * 2. The permit goes out; somebody sends.
 * 3. `settle` or `retry`: the outcome is converted first, then the engine hears it, then managers and listeners hear
 *    what that changed, and last those who wait are asked again.
 *
 * The traps: an outcome that makes no sense and leaves the slot behind (the slot comes back, then the error is
 * thrown); a manager that is told after others have left at the old pace; work for listeners who are not there.
 */

import { answerInError, checkedHeaders, isStatus } from '../fetch/outcome.js'
import { shown } from '../options/checks.js'
import type { Clock, ScopeOptions } from '../options/options.js'
import { Handles } from '../scopes/handles.js'
import { type Backoffs, backoffMap, checkedBackoffs } from '../scopes/hooks.js'
import { namedScopes, type Scopes, type Target } from '../scopes/names.js'
import type { ManagedScopes } from '../scopes/strategy.js'
import type { Engine, Outcome, ScopeHandle, ScopeOutcome, ScopeStats, Ticket } from '../wasm/engine.js'
import type { HeaderMap } from '../wasm/headers.js'
import { Driver } from './driver.js'
import { type ClosedError, ManagerError } from './errors.js'
import {
  type Ears,
  QueuedEvent,
  ScopeEvent,
  SendEvent,
  SettleEvent,
  StallEvent,
  type ThrottleEvents,
  WarningEvent,
} from './events.js'
import { NOTHING, Permit, type PermitOutcome } from './permit.js'
import { Waiting } from './waiting.js'

/** How a request waits. */
export interface Wait {
  readonly signal?: AbortSignal | null
  readonly priority?: number
  readonly cost?: number
  readonly delay?: number
  readonly timeout?: number | undefined
}

/** What a desk needs of its throttle. */
export interface DeskOptions {
  readonly engine: Engine
  readonly clock: Clock
  readonly ears: Ears
  readonly tell: (event: ThrottleEvents[keyof ThrottleEvents]) => void
  readonly managed: ManagedScopes | undefined
  readonly hints: Readonly<Record<string, HeaderMap>> | undefined
  readonly isDebug: boolean
}

const NO_OUTCOME: Outcome = {}

export class Desk {
  readonly driver: Driver
  readonly clock: Clock
  readonly handles: Handles
  /** Why nothing more is taken in. */
  closed: ClosedError | undefined
  readonly #engine: Engine
  readonly #ears: Ears
  readonly #tell: DeskOptions['tell']
  readonly #managed: ManagedScopes | undefined
  readonly #hints: DeskOptions['hints']
  readonly #isDebug: boolean
  readonly #warnThreshold: number
  readonly #told = new Map<string, ScopeStats>()
  readonly #idle: (() => void)[] = []
  readonly #warned = new Set<WarningEvent['code']>()
  #entering = 0

  constructor({ engine, clock, ears, tell, managed, hints, isDebug }: DeskOptions) {
    this.#engine = engine
    this.clock = clock
    this.#ears = ears
    this.#tell = tell
    this.#managed = managed
    this.#hints = hints
    this.#isDebug = isDebug
    this.driver = new Driver(engine, clock, () => this.#rest())
    this.handles = new Handles(engine, managed && ((name, handle) => this.#manage(managed, name, handle)))
    this.#warnThreshold = engine.warnThreshold
  }

  /** Leave to send one request: at once where nothing stands in the way. */
  request(scopes: Scopes, target: Target, wait: Wait): Permit | Promise<Permit> {
    wait.signal?.throwIfAborted()
    if (this.closed) throw this.closed
    const { priority = 0, cost = 1, delay = 0 } = wait
    let names: readonly string[]
    let handles: readonly ScopeHandle[]
    let costs: readonly number[] | undefined
    if (typeof scopes === 'string') {
      const known = this.handles.of(scopes)
      names = known.names
      handles = [known.handle]
    } else {
      ;({ names, costs } = namedScopes(scopes))
      handles = names.map((name) => this.handles.of(name).handle)
    }
    const now = this.clock.now()
    const ticket = this.#engine.submit(now, handles, { priority, cost: costs ?? cost, delay })
    if (this.driver.isFree && this.#engine.poll(now) === ticket) {
      if (this.#ears.queued.isHeard) this.#tell(new QueuedEvent({ ticket, scopes: names, target }, now))
      return this.permit(ticket, names, target, now)
    }
    return this.#wait(ticket, names, target, wait, (waiting) => this.#begin(waiting, now))
  }

  /** The permit of a ticket that the engine let go. */
  permit(ticket: Ticket, names: readonly string[], target: Target, now: number): Permit {
    if (this.#managed) this.#tellManagersOfSend(this.#managed, ticket, names, now)
    const permit = new Permit(this, ticket, names, target, now)
    if (this.#ears.send.isHeard) this.#tell(new SendEvent(permit, now))
    return permit
  }

  /** The request is over. Whatever this throws, the slots come back. */
  settle(permit: Permit, outcome: PermitOutcome): void {
    this.#end(permit, outcome)
  }

  /**
   * The request ended, and is sent again: it waits anew and keeps its age. Whatever this throws, the slots come back.
   */
  retry(permit: Permit, outcome: PermitOutcome, delay: number, wait: Wait): Promise<Permit> {
    permit.take()
    const isWanted = this.closed === undefined && wait.signal?.aborted !== true
    const next = this.#end(permit, outcome, isWanted ? { delay, wait } : undefined)
    wait.signal?.throwIfAborted()
    return next ?? Promise.reject(this.closed)
  }

  /** A permit that nobody can settle any more: its slots come back, and somebody should know. */
  lost(ticket: Ticket, scopes: readonly string[]): void {
    this.#engine.settle(this.clock.now(), ticket, NO_OUTCOME)
    this.driver.changed()
    const message = `a permit for ${scopes.join(', ')} was collected as garbage before it was settled`
    this.warn('permit-lost', `${message}: use \`run\`, or \`using permit = …\``, scopes[0])
  }

  /** A request that waits for a hook or for robots.txt is on its way in: the throttle is not idle. */
  async enter<T>(promise: PromiseLike<T>): Promise<T> {
    this.#entering++
    try {
      return await promise
    } finally {
      this.#entering--
      if (this.#entering === 0) queueMicrotask(() => this.#rest())
    }
  }

  /** Resolves when nothing waits and nothing is in flight. */
  idle(): Promise<void> {
    if (this.#isIdle) return Promise.resolve()
    return new Promise((resolve) => this.#idle.push(resolve))
  }

  /** Tells a warning, each once. */
  warn(code: WarningEvent['code'], message: string, scope?: string): void {
    if (this.#warned.has(code)) return
    this.#warned.add(code)
    this.#tell(new WarningEvent(code, message, scope))
  }

  /** How the headers of these scopes are read. */
  headerMapOf(names: readonly string[]): HeaderMap | undefined {
    const hints = this.#hints
    const name = hints && names.find((name) => Object.hasOwn(hints, name))
    return name === undefined ? undefined : hints?.[name]
  }

  #wait(
    ticket: Ticket,
    names: readonly string[],
    target: Target,
    { signal = null, timeout }: Wait,
    begin: (waiting: Waiting) => void,
  ): Promise<Permit> {
    return new Promise((resolve, reject) => {
      const waiting = new Waiting(this, ticket, names, target, signal, resolve, reject)
      this.driver.add(waiting, timeout)
      begin(waiting)
    })
  }

  /** The engine keeps it in line, and so does the driver. */
  #begin(waiting: Waiting, now: number): void {
    if (this.#ears.queued.isHeard) this.#tell(new QueuedEvent(waiting, now))
    this.driver.begin(waiting)
    const many = this.#engine.waiting
    if (many >= this.#warnThreshold)
      this.warn('many-waiting', `${many} requests wait, each with its promise in memory`)
  }

  /** Gives the permit's slots back; with `again`, gives what the next attempt waits for. */
  #end(
    permit: Permit,
    outcome: PermitOutcome,
    again?: { delay: number; wait: Wait },
  ): Promise<Permit> | undefined {
    const { ticket, scopes, target } = permit
    const now = this.clock.now()
    const seen = this.#look(scopes)
    let told = NO_OUTCOME
    let failure: { error: unknown } | undefined
    const attempt = (call: () => void) => {
      if (failure) return
      try {
        call()
      } catch (error) {
        failure = { error }
        told = NO_OUTCOME
      }
    }
    if (outcome !== NOTHING) attempt(() => (told = this.#converted(permit, outcome, again?.delay)))
    if (this.#managed) attempt(() => this.#tellManagers(this.#managed!, scopes, told))
    attempt(() => this.#engine.settle(now, ticket, told))
    if (failure) this.#engine.settle(now, ticket, NO_OUTCOME)
    const tell = () => {
      if (this.#ears.settle.isHeard)
        this.#tell(new SettleEvent(permit, told.status, told.error, told.latencyMs))
      if (seen) this.#tellChanges(scopes, seen, told.latencyMs)
    }
    if (failure || again === undefined) {
      tell()
      this.driver.changed()
      if (failure) throw failure.error
      return undefined
    }
    return this.#wait(ticket, scopes, target, again.wait, (waiting) => {
      tell()
      this.#begin(waiting, now)
    })
  }

  /** What the engine is told of a permit's outcome. */
  #converted(permit: Permit, outcome: PermitOutcome, retryDelay: number | undefined): Outcome {
    const { hints, backoff, cost, adjustDelay } = outcome
    let { status = outcome.statusCode, headers, error } = outcome
    if (status === undefined && error !== undefined) {
      const answer = answerInError(error)
      if (answer) [status, headers, error] = [answer.status, headers ?? answer.headers, undefined]
    }
    if (status !== undefined && !isStatus(status))
      throw new TypeError(`status: want a status of HTTP; got ${shown(status)}`)
    const backoffs = checkedBackoffs('settle', outcome.scopes, permit.scopes)
    const told: { [Key in keyof Outcome]: Outcome[Key] | undefined } = {
      status,
      error,
      headers: headers === undefined ? undefined : checkedHeaders(headers),
      headerMap: this.headerMapOf(permit.scopes),
      hints,
      wallNowMs: headers === undefined ? undefined : this.clock.wallNow(),
      backoff,
      scopes: backoffs === undefined ? undefined : this.#own(permit.scopes, backoffs, status, error),
      retryDelay,
      latencyMs: outcome.latency ?? (status === undefined ? undefined : this.clock.now() - permit.sentAt),
      cost,
      adjustDelay,
    }
    return told as Outcome
  }

  /** What an outcome means for each scope, if it names those that back off: the others ignore a refusal. */
  #own(
    names: readonly string[],
    backoffs: Backoffs,
    status: number | undefined,
    error: unknown,
  ): readonly ScopeOutcome[] {
    const map = backoffMap(backoffs)
    const isRefusal = error !== undefined || (status ?? 0) >= 400
    const own: ScopeOutcome[] = []
    for (const name of names) {
      const scope = this.handles.of(name).handle
      const means = Object.hasOwn(map, name) ? map[name] : undefined
      if (means) {
        const isOfQuota = means.cost !== undefined || means.remaining !== undefined
        own.push({ ...(isOfQuota ? {} : { backoff: true }), ...means, scope })
      } else if (isRefusal) {
        own.push({ scope, ignored: true })
      }
    }
    return own
  }

  /** A scope that is made asks its manager how fast it goes. */
  #manage(managed: ManagedScopes, name: string, handle: ScopeHandle): void {
    if (managed.size > 1000 + 2 * this.#engine.scopes) managed.forget()
    this.#pace(name, managed.begin(name), handle)
  }

  /** What a scope's manager says. */
  #pace(name: string, pace: ScopeOptions | undefined, handle = pace && this.handles.of(name).handle): void {
    if (pace === undefined || handle === undefined || Object.keys(pace).length === 0) return
    try {
      this.#engine.configure(this.clock.now(), handle, pace)
    } catch (cause) {
      throw new ManagerError('manager', `of ${name}: ${(cause as Error).message}`, { cause })
    }
  }

  #tellManagersOfSend(managed: ManagedScopes, ticket: Ticket, names: readonly string[], now: number): void {
    try {
      for (const name of names) this.#pace(name, managed.onSend(name, now))
    } catch (error) {
      this.#engine.settle(now, ticket, NO_OUTCOME)
      this.driver.changed()
      throw error
    }
  }

  /** Tells the managers how it ended, each as it concerns its scope, before anybody else can leave at the old pace. */
  #tellManagers(managed: ManagedScopes, names: readonly string[], outcome: Outcome): void {
    for (const name of names) {
      const own = outcome.scopes?.find(({ scope }) => scope === this.handles.of(name).handle)
      if (own?.ignored) continue
      const bad = own?.backoff ?? outcome.backoff
      this.#pace(name, managed.onEnd(name, this.clock.now(), outcome, bad))
    }
  }

  #look(names: readonly string[]): readonly ScopeStats[] | undefined {
    if (!this.#isDebug && !this.#ears.areScopesHeard) return undefined
    return names.map((name) => this.#told.get(name) ?? this.#stats(name))
  }

  #stats(name: string): ScopeStats {
    return this.#engine.stats(this.handles.of(name).handle, this.clock.now())
  }

  #tellChanges(names: readonly string[], seen: readonly ScopeStats[], latencyMs: number | undefined): void {
    for (const [index, name] of names.entries()) {
      const [was, is] = [seen[index]!, this.#stats(name)]
      if (this.#told.size > 1000 + 2 * this.#engine.scopes) this.#told.clear()
      this.#told.set(name, is)
      const now = { delayMs: is.delayMs, step: is.backoffStep, holdUntil: is.holdUntil }
      const tell = (type: 'backoff' | 'recover' | 'delay' | 'hold', isSo: boolean) =>
        isSo && this.#tell(new ScopeEvent(type, name, now))
      tell('backoff', is.backoffStep > was.backoffStep)
      tell('recover', is.backoffStep < was.backoffStep)
      tell('delay', is.delayMs !== was.delayMs)
      tell('hold', (is.holdUntil ?? 0) > (was.holdUntil ?? 0))
      if (this.#isDebug && latencyMs !== undefined) console.debug(debugLine(name, was, is, latencyMs))
    }
  }

  get #isIdle(): boolean {
    return this.#entering === 0 && this.#engine.waiting === 0 && this.#engine.inFlight === 0
  }

  #rest(): void {
    this.tellNotices()
    if (this.#idle.length > 0 && this.#isIdle) for (const resolve of this.#idle.splice(0)) resolve()
  }

  /** Tells what the engine noticed since the last time. */
  tellNotices(): void {
    for (const notice of this.#engine.takeNotices()) {
      const { scope } = notice
      if (notice.kind === 'stall') {
        const fail = (error: unknown) => this.driver.failAll(error, scope)
        this.#tell(new StallEvent(scope, notice.forMs, fail))
      } else if (notice.kind === 'no-effect') {
        const where = scope === '' ? '' : ` in ${scope}`
        const message = `${notice.path} has no effect${where}: ${notice.why}`
        this.#tell(new WarningEvent('no-effect', message, scope === '' ? undefined : scope))
      }
    }
  }
}

/** Scrapy's line of AUTOTHROTTLE_DEBUG; the size is not known when headers arrive. */
function debugLine(name: string, was: ScopeStats, is: ScopeStats, latencyMs: number): string {
  const whole = (ms: number, width: number) => ms.toFixed(0).padStart(width)
  const change = is.delayMs - was.delayMs
  const difference = `${change < 0 ? '-' : '+'}${Math.abs(change).toFixed(0)}`
  const flying = String(is.inFlight).padStart(2)
  const pace = `delay:${whole(is.delayMs, 5)} ms (${difference})`
  return `slot: ${name} | conc:${flying} | ${pace} | latency:${whole(latencyMs, 5)} ms`
}
