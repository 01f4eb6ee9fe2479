/**
 * Where requests come in and where they go when they are over. One request's way:
 *
 * 1. `request`: scopes → names → handles → the engine. If no request waits and no limit keeps it, a permit
 *    comes back at once; else a promise, and a `Waiting` that the driver holds.
 * 2. The permit goes out; its request is sent.
 * 3. `settle` or `retry`: the outcome is converted first, then the engine gets it. Managers and listeners
 *    learn what that changed, and last the engine is asked again for those who wait.
 *
 * If an outcome makes no sense, the slot comes back, then the error is thrown. A manager learns of an outcome
 * before others leave at the old pace.
 */
import { statusIn } from '../answers/answer.js'
import { type ClosedError, ConfigError, EngineBrokenError, TimeoutError } from '../base/errors.js'
import type { Clock } from '../options/options.js'
import { Handles, type Known } from '../scopes/handles.js'
import { methodOf, namedScopes, type Scopes, type Target, urlTextOf } from '../scopes/names.js'
import { type ScopeHandle, type Settled, type SubmitOptions, type Ticket, WAIT } from '../wasm/engine.js'
import { NO_OUTCOME, UNKNOWN, UNTOLD } from '../wasm/numbers.js'
import type { Abortable } from './aborts.js'
import { Charges } from './charges.js'
import { Converter, type HeaderMaps } from './convert.js'
import { Draining } from './draining.js'
import { Driver } from './driver.js'
import {
  type Ending,
  eventOf,
  type RequestLike,
  type RequestObserver,
  type RequestPhase,
  requestEvent,
  type Topic,
  type Topics,
} from './events.js'
import type { Host } from './host.js'
import { HOW_TO_SETTLE, Nesting } from './nesting.js'
import { type EventSink, Notices } from './notices.js'
import { type Inside, NOTHING, Permit, type PermitOutcome, type Verdict, type Wait } from './permit.js'
import { type Alarm, Waiting } from './waiting.js'
import type { Warnings } from './warnings.js'

/** The cost of a request: in all of its scopes, or in each. */
type Cost = number | readonly number[]

/** After this many requests a warning names hosts that none met: a server is never closed or idle. */
const SENT = 100
/** Priority bonus of calls made inside a running function, so that started work ends first. */
const BEFORE_OTHERS = 1e6

export class Scheduler {
  readonly driver: Driver
  readonly nesting: Nesting
  readonly clock: Clock
  readonly handles: Handles
  /** Why no more requests are taken in. */
  closed: ClosedError | EngineBrokenError | undefined
  readonly draining: Draining
  readonly #engine: Host
  readonly #topics: Topics
  readonly emit: EventSink['emit']
  readonly warnings: Warnings
  /** Sends the request of a permit: `fetch` of the throttle. */
  declare send: (permit: Permit, input: RequestInfo | URL, init?: RequestInit) => Promise<Response>
  readonly #isManaged: boolean
  readonly #notices: Notices
  readonly #converter: Converter
  readonly #charges: Charges
  readonly #warnThreshold: number
  readonly #idle: (() => void)[] = []
  /** Tells of hosts that were typed, and that no request met. */
  declare warnUnusedNames: () => void
  /** Whether the answers of a scope named several budgets. */
  #hasBudgets = false
  /** Observers that are called directly: an event costs more than a call. They must not throw. */
  readonly observers: RequestObserver[] = []
  /** Hosts whose robots.txt names a pace: a request there is in the host's scope, whatever scopes it has. */
  readonly robotsHosts = new Set<string>()
  /** Requests that left. */
  sent = 0
  /** Requests that were taken in: the last one's `id`. */
  #taken = 0
  /** Iterators of `map` that were created and not iterated yet. */
  unread = 0
  /** Requests that wait for a hook or for robots.txt. */
  readonly entering = new Set<Abortable>()
  #following = 0
  /**
   * The wait that the server asked for in the request that was settled last, in milliseconds; NaN without a
   * wait.
   */
  askedMs = Number.NaN

  /** `idleClock`: the same time, with timers that keep no process alive. */
  constructor(
    engine: Host,
    clock: Clock,
    idleClock: Clock,
    sink: EventSink,
    hints: HeaderMaps | undefined,
    isPaced = true,
  ) {
    const { topics, emit, managed, warnings } = sink
    this.#engine = engine
    this.clock = clock
    this.#topics = topics
    this.emit = emit
    this.warnings = warnings
    this.#isManaged = managed !== undefined
    this.nesting = new Nesting(warnings, idleClock)
    this.draining = new Draining(this.nesting, () => this.#rest())
    this.driver = new Driver(
      engine,
      clock,
      () => this.#rest(),
      (error) => this.#broke(error),
      this.nesting,
      isPaced,
    )
    const failAll = (error: unknown, scope: string) => this.driver.failAll(error, scope)
    const split = (scope: string) => this.#split(scope)
    this.#notices = new Notices(engine, clock, () => this.handles, sink, failAll, split)
    this.handles = new Handles(
      engine,
      managed && ((name, handle) => this.#notices.manage(managed, name, handle)),
    )
    this.#converter = new Converter(clock, this.handles, hints)
    this.#charges = new Charges(engine, clock, this.handles)
    this.#warnThreshold = engine.warnThreshold
    engine.listen?.({
      changed: () => this.driver.changed(),
      fail: (ticket, error) => this.driver.refuse(ticket, error),
      warn: (code, message) => warnings.once(code, message),
      broke: (error) => this.#broke(error),
      shared: (stats) => {
        if (topics.shared.hasObservers) emit(eventOf('shared', { shared: stats }))
      },
    })
  }

  /**
   * A permit for one request: at once where no limit stands in the way. Code that hands a permit on through
   * a promise tells the driver (`granted`), and says when it is used (`started`). One that was waited for is
   * `granted` already.
   */
  request(scopes: Scopes, target: Target, wait: Wait): Permit | Promise<Permit> {
    try {
      return this.#request(scopes, target, wait)
    } catch (error) {
      this.#broke(error)
      throw error
    }
  }

  #request(scopes: Scopes, target: Target, wait: Wait): Permit | Promise<Permit> {
    wait.signal?.throwIfAborted()
    const inside = wait.inside ?? this.nesting.inside
    // The first call of a function is for the request that the function was called for.
    const { cost = 1, delay = 0 } = wait
    const own = inside && this.nesting.unused(inside, scopes, cost, delay)?.pass(target)
    if (own) return own
    if (this.closed) throw this.closed
    this.draining.check(wait, inside)
    const priority = (wait.priority ?? 0) + (inside ? BEFORE_OTHERS : 0)
    const now = this.driver.now()
    // Where another waits, none leaves at once: there is no need to ask.
    const isAtOnce = delay === 0 && this.driver.waiting === 0
    if (isAtOnce && typeof scopes === 'string' && typeof cost === 'number') {
      const known = this.handles.last(scopes)
      const ticket = this.#sendOne(now, known, cost, priority)
      if (ticket !== WAIT) return this.#sendAtOnce(ticket, known.names, cost, target, now, wait, inside)
    }
    // If the engine has forgotten the scope, `#stay` makes it anew; a look at it must not find it gone.
    const known =
      typeof scopes === 'string' && wait.maxWait === undefined ? this.handles.last(scopes) : undefined
    const { names, costs } = known ? { names: known.names, costs: undefined } : namedScopes(scopes)
    const handles = known?.handles ?? this.handles.all(names)
    const options = { priority, cost: costs ?? cost, delay }
    if (isAtOnce && typeof scopes !== 'string') {
      const ticket = this.#engine.sendAtOnce(now, handles, options)
      if (ticket !== WAIT) return this.#sendAtOnce(ticket, names, options.cost, target, now, wait, inside)
    }
    if (inside !== undefined || !this.nesting.isTraced())
      return this.#stay(names, handles, options, target, wait, inside, now)
    options.priority += BEFORE_OTHERS
    const traced = this.nesting.unused(true, scopes, cost, delay)?.pass(target)
    return traced ?? this.#stay(names, handles, options, target, wait, true, now)
  }

  /** The permit of a ticket that the engine let go. */
  permit(
    ticket: Ticket,
    id: number,
    names: readonly string[],
    cost: Cost,
    target: Target,
    now: number,
    method?: string,
  ): Permit {
    if (this.#isManaged) this.#notifyManagers(ticket, names, now)
    const permit = new Permit(this, ticket, id, names, cost, target, now)
    if (++this.sent === SENT) this.warnUnusedNames()
    if (method !== undefined) permit.method = method
    this.#report(this.#topics.send, permit, now)
    return permit
  }

  /** Tells who listens to requests. */
  #report(topic: Topic, request: RequestLike, at?: number, ending: Ending = NO_OUTCOME): void {
    const { hasObservers } = topic
    if (!hasObservers && this.observers.length === 0) return
    const now = at ?? Number(this.clock.now())
    const phase = topic.type as RequestPhase
    for (const observe of this.observers) observe(phase, request, now, ending)
    if (hasObservers) this.emit(requestEvent(phase, request, now, ending))
  }

  /** A request waits no longer. */
  cancelled(request: Waiting, error: unknown): void {
    this.#report(this.#topics.cancel, request, undefined, { error })
  }

  /** The request is over. Whatever this throws, the slots come back. */
  settle(permit: Permit, outcome: PermitOutcome): void {
    // While its function runs, another attempt would hold slots that the function waits for.
    const verdict = this.#end(permit, outcome, permit.again, permit.place < 0)
    if (permit.again) permit.verdict = { verdict, askedMs: this.askedMs }
  }

  /**
   * The request ended, and may be sent again: if the engine says so it waits anew, and keeps its age. Settled
   * when this returns, whatever it throws.
   */
  retry(permit: Permit, outcome: PermitOutcome, wait: Wait, replayable: boolean): Verdict {
    permit.take()
    return this.#end(permit, outcome, wait, replayable)
  }

  /** How often a request of this method is sent again at most. */
  retries(method: string): number {
    return this.#engine.retries(method)
  }

  /** Corrects the cost of a request. It may have been settled. */
  adjust(permit: Permit, cost: PermitOutcome['cost']): void {
    this.#charges.adjust(permit, cost)
    this.driver.changed()
  }

  /** A permit that no code can settle any more: its slots come back, with a warning. */
  lost(ticket: Ticket, scopes: readonly string[]): void {
    let why = ''
    try {
      // No code here catches what a custom clock throws, and the process would end.
      this.#engine.settle(Number(this.clock.now()), ticket, NO_OUTCOME)
      this.driver.changed()
    } catch (error) {
      if (this.#broke(error)) return
      why = ` (its clock throws: ${String((error as Error | null)?.message ?? error)})`
      this.#engine.settle(Number.NaN, ticket, NO_OUTCOME)
    }
    const message = `a permit for ${scopes.join(', ')} was collected as garbage before it was settled${why}`
    this.warnings.once('permit-lost', `${message}: ${HOW_TO_SETTLE}`, scopes[0])
  }

  /**
   * The same where a hook or robots.txt says the scopes: the throttle is not idle until the request is handed
   * in. Its signal, its `maxWait` and `close` end this wait as they end the one for permission.
   */
  later(scopes: Promise<Scopes>, target: Target, wait: Wait): Promise<Permit> {
    const { signal, maxWait } = wait
    const since = wait.since ?? (maxWait === undefined ? 0 : this.clock.now())
    const known = { ...wait, since, inside: wait.inside ?? this.nesting.where(), isTaken: true }
    return new Promise((resolve, reject) => {
      let alarm: Alarm | undefined
      const over = (end: () => void) => {
        if (!this.entering.delete(entering)) return
        alarm?.cancel()
        this.driver.aborts.remove(signal, entering)
        end()
        this.#rest()
      }
      const entering = { abort: (reason: unknown) => over(() => reject(reason)) }
      const enter = (scopes: Scopes) => {
        try {
          const permit = this.request(scopes, target, known)
          if (!(permit instanceof Promise)) this.driver.granted(permit)
          resolve(permit)
        } catch (error) {
          reject(error)
        }
      }
      scopes.then((scopes) => over(() => enter(scopes)), entering.abort)
      signal?.throwIfAborted()
      if (this.closed) throw this.closed
      this.draining.check(wait, known.inside)
      this.entering.add(entering)
      this.driver.aborts.add(signal, entering)
      if (maxWait !== undefined)
        alarm = this.driver.alarm(this.#left(known)!, () => entering.abort(new TimeoutError(maxWait)))
    })
  }

  /** How much of its `maxWait` is left. */
  #left({ maxWait, since }: Wait): number | undefined {
    if (maxWait === undefined || since === undefined) return maxWait
    return Math.max(0, maxWait - (this.clock.now() - since))
  }

  /** A request that follows redirects is not over between two hops: the throttle is not idle. */
  async follow<T>(promise: PromiseLike<T>): Promise<T> {
    this.#following++
    try {
      return await promise
    } finally {
      this.#following--
      if (this.#following === 0) queueMicrotask(() => this.#rest())
    }
  }

  /** Rejects what waits, and takes in no more. */
  close(closed: ClosedError | EngineBrokenError): void {
    this.closed = closed
    this.driver.failAll(closed)
    for (const entering of [...this.entering]) entering.abort(closed)
  }

  /**
   * Whether a call into the engine was broken off: then the throttle is closed, and each call says why. The
   * damage of a stack overflow shows only in another call, with room on the stack.
   */
  #broke(error: unknown): boolean {
    if (error instanceof RangeError) queueMicrotask(() => this.driver.drain())
    const isTrap = typeof WebAssembly === 'object' && error instanceof WebAssembly.RuntimeError
    const broken = isTrap ? new EngineBrokenError({ cause: error }) : error
    if (!(broken instanceof EngineBrokenError)) return false
    this.#engine.abandon?.(broken)
    this.close(broken)
    return true
  }

  /** Resolves when no request waits or is in flight. */
  idle(): Promise<void> {
    return this.isIdle ? Promise.resolve() : new Promise((resolve) => void this.#idle.push(resolve))
  }

  /** The same as `#asked` for most calls, without a closure. */
  #sendOne(now: number, known: Known, cost: number, priority: number): Ticket {
    try {
      return this.#engine.sendOne(now, known.handle, cost, priority)
    } catch (error) {
      const { handle } = this.handles.of(known.names[0])
      if (handle === known.handle) throw error
      return this.#engine.sendOne(now, handle, cost, priority)
    }
  }

  /** Asks the engine, which knows scopes by handles: one that it has forgotten is refused, and made anew. */
  #asked(
    names: readonly string[],
    handles: readonly ScopeHandle[],
    ask: (handles: readonly ScopeHandle[]) => Ticket,
  ): Ticket {
    try {
      return ask(handles)
    } catch (error) {
      const made = this.handles.all(names)
      if (made.every((handle, index) => handle === handles[index])) throw error
      return ask(made)
    }
  }

  /** It may leave at once. */
  #sendAtOnce(
    ticket: Ticket,
    scopes: readonly string[],
    cost: Cost,
    target: Target,
    now: number,
    wait: Wait,
    inside: Inside,
  ): Permit {
    const id = ++this.#taken
    if (this.#topics.queued.hasObservers) this.#report(this.#topics.queued, { id, scopes, target }, now)
    const permit = this.permit(ticket, id, scopes, cost, target, now, wait.method)
    if (typeof inside === 'object') permit.nest(inside)
    return permit
  }

  /** The answers of a scope name several budgets: what waits goes to that of its route. */
  #split(scope: string): void {
    this.#hasBudgets = true
    for (const waiting of this.driver.waitingFor(scope)) this.#route(waiting)
  }

  /**
   * Tells the engine the route of a request, by which it knows the budget, where it wants that. `hasFields`:
   * an answer with header fields follows, which may be the first to name a budget. Whether it did.
   */
  #route({ ticket, target, method }: Pick<Waiting, 'ticket' | 'target' | 'method'>, hasFields = false) {
    const url = this.#engine.wantsRoute(ticket, hasFields) ? urlTextOf(target) : undefined
    if (url !== undefined)
      this.#engine.route(this.clock.now(), ticket, method ?? methodOf(target as Request), url)
    return url !== undefined
  }

  /** It waits. */
  #stay(
    names: readonly string[],
    handles: readonly ScopeHandle[],
    options: Required<SubmitOptions>,
    target: Target,
    wait: Wait,
    inside: Inside,
    now: number,
  ): Promise<Permit> {
    const left = this.#left(wait)
    if (left !== undefined) {
      const { at, reason } = this.#engine.peek(now, handles, options)
      // With a hold that is longer it is known to be in vain.
      if (reason === 'hold' && at - now > left) throw new TimeoutError(wait.maxWait!, false, at - now)
    }
    const ticket = this.#asked(names, handles, (known) => this.#engine.submit(now, known, options))
    const hasRoute = this.#route({ ticket, target, method: wait.method })
    const { cost, priority, delay } = options
    const rank = names.length > 1 || delay > 0 || hasRoute ? undefined : priority
    const within = this.nesting.block(inside)
    const waiting = this.#waiting(ticket, ++this.#taken, names, cost, target, wait, within, rank)
    this.#begin(waiting, now)
    return waiting.permit
  }

  /** The driver knows it from here on; the engine does already. */
  #waiting(
    ticket: Ticket,
    id: number,
    scopes: readonly string[],
    cost: Cost,
    target: Target,
    wait: Wait,
    inside?: Permit,
    rank?: number,
    before?: Permit,
  ): Waiting {
    const made = new Waiting(this, ticket, id, scopes, cost, target, wait, rank, before, inside)
    this.driver.add(made, this.#left(wait), wait.maxWait)
    return made
  }

  #begin(waiting: Waiting, now: number): void {
    this.#report(this.#topics.queued, waiting, now)
    this.driver.begin(waiting)
    const many = this.driver.waiting
    if (many >= this.#warnThreshold)
      this.warnings.once('many-waiting', `${many} requests wait: pull work with throttle.map`)
  }

  /**
   * Where every request ends. Converts first, so that what makes no sense is known before anything has
   * changed; then the engine hears it, then managers and listeners, and last those who wait are asked.
   */
  #end(permit: Permit, outcome: PermitOutcome, wait?: Wait, replayable = true): Verdict {
    if (outcome === NOTHING && wait === undefined && this.#isQuiet) return this.#endQuietly(permit)
    const { ticket } = permit
    const now = this.clock.now()
    const isWanted = wait !== undefined && this.closed === undefined && wait.signal?.aborted !== true
    const retry = isWanted && permit.left! > 0
    this.#notices.watch()
    // This request left before its budget could be known.
    if (this.#hasBudgets) this.#route(permit)
    let converted = NO_OUTCOME
    let settled: Settled
    let failure: { error: unknown } | undefined
    try {
      if (outcome !== NOTHING) {
        converted = this.#converter.outcome(permit, outcome, now, { retry, replayable })
        converted = this.#charges.costs(permit, converted)
      }
      const naming = converted.headers === undefined ? undefined : () => this.#route(permit, true)
      const isSilent = this.#isSilent(permit) && (converted.status ?? converted.error) === undefined
      const reported = isSilent ? { ...converted, status: UNTOLD } : converted
      settled = this.#engine.settle(now, ticket, reported, naming)
    } catch (error) {
      failure = { error }
      this.#broke(error)
      // The status counts, even if other fields of the outcome are invalid.
      converted = error instanceof TypeError || error instanceof ConfigError ? statusIn(outcome) : NO_OUTCOME
      settled = this.#engine.settle(now, ticket, converted)
    }
    const isRefusal = converted.error !== undefined || converted.status! >= 400
    permit.isGood = converted.status !== undefined && !isRefusal && converted.backoff !== true
    // A server that refuses, or says what is left, has a pace.
    const isNews = isRefusal || converted.headers !== undefined
    if (isNews) this.driver.isPaced = true
    // A redirect's wait is for its hop, a retry's for its error.
    const isAsked =
      wait !== undefined ||
      (converted.status !== undefined && converted.status >= 300 && converted.status < 400)
    if (isAsked) this.askedMs = this.#engine.askedMs
    let again: Waiting | undefined
    if (settled === 'again') {
      const { id, scopes, cost, target } = permit
      const within = this.nesting.block(permit.around)
      again = this.#waiting(ticket, id, scopes, cost, target, wait!, within, undefined, permit)
    }
    this.#report(this.#topics.settle, permit, now, converted)
    if (isNews || this.#notices.areUrgent)
      try {
        if (this.#engine.hasNotices) this.#notices.pass(converted)
      } catch (error) {
        failure ??= { error }
      }
    if (again && failure) this.driver.abandon(again)
    else if (again) this.#begin(again, now)
    else this.driver.changed(converted === NO_OUTCOME ? now : undefined)
    if (failure) throw failure.error
    return settled === 'again' ? again!.permit : settled
  }

  /** Whether a client of the caller's asked a server, and wants the answer still. */
  #isSilent({ outer, target }: Permit): boolean {
    if (outer === undefined || urlTextOf(target) === undefined) return false
    this.#notices.sentElsewhere()
    return !outer?.aborted
  }

  /** Whether requests have no observers, and scopes neither managers nor budgets. */
  get #isQuiet(): boolean {
    const hasObservers = this.observers.length > 0 || this.#topics.settle.hasObservers
    return !hasObservers && !this.#notices.areWanted && !this.#hasBudgets
  }

  /** The same for an outcome without a word, which is what most functions of `run` give. */
  #endQuietly(permit: Permit): Verdict {
    const now = this.clock.now()
    this.#settleQuietly(now, permit, this.#isSilent(permit) ? UNTOLD : UNKNOWN, '', UNKNOWN)
    return 'over'
  }

  /** The same for a good answer and its fields. False for another one, or where a listener wants to hear. */
  settleGood(permit: Permit, response: Response): boolean {
    const isPlain = this.#isQuiet && permit.again === undefined
    const lines = isPlain ? this.#converter.goodLines(response) : undefined
    if (lines === undefined) return false
    const wallMs = lines === '' ? UNKNOWN : this.clock.wallNow() // A clock of yours may throw.
    const now = this.clock.now()
    if (!permit.take()) return false
    permit.isGood = true
    if (lines !== '') this.driver.isPaced = true
    this.#settleQuietly(now, permit, response.status, lines, wallMs)
    return true
  }

  #settleQuietly(now: number, permit: Permit, status: number, lines: string, wallMs: number): void {
    const latencyMs = status >= 100 ? now - permit.sentAt : UNKNOWN
    let hasNotices: boolean
    try {
      const naming = lines === '' ? undefined : () => this.#route(permit, true)
      hasNotices = this.#engine.settleQuietly(now, permit.ticket, status, latencyMs, lines, wallMs, naming)
    } catch (error) {
      this.#broke(error)
      throw error
    }
    if (hasNotices) this.emitNotices()
    if (this.driver.waiting > 0) this.driver.ended(now)
    else if (this.#idle.length > 0 || this.draining.isOn) this.driver.changed(now)
  }

  #notifyManagers(ticket: Ticket, names: readonly string[], now: number): void {
    try {
      this.#notices.onSend(names, now)
    } catch (error) {
      this.#engine.settle(now, ticket, NO_OUTCOME)
      this.driver.changed()
      throw error
    }
  }

  get isIdle(): boolean {
    const isEntering = this.entering.size > 0 || this.#following > 0
    return !isEntering && this.#engine.waiting === 0 && this.#engine.inFlight === 0
  }

  /** Tells what the engine noticed since the last time. */
  emitNotices(): void {
    try {
      if (this.#engine.hasNotices) this.#notices.pass(NO_OUTCOME)
    } catch (error) {
      if (!this.#broke(error)) throw error
    }
  }

  #rest(): void {
    this.emitNotices()
    if (this.#idle.length > 0 && this.isIdle) for (const resolve of this.#idle.splice(0)) resolve()
    if (this.isIdle) this.draining.idle()
  }
}
