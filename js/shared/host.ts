/**
 * A shared host: it answers what an engine answers, by the machine of a group (`shared/` in Rust).
 *
 * The machine decides everything, also when to give a question up. Here refusals are errors, frames go to the
 * transport and its answers come back, and one timer wakes the machine. The messages of one turn of the event
 * loop leave at its end. The machine's knowledge of other processes is as old as the last message from them.
 */
import {
  ConfigError,
  CostExceedsQuotaError,
  type EngineBrokenError,
  QueueFullError,
  ScopeDownError,
  withProblems,
} from '../base/errors.js'
import type { WarningEvent } from '../core/events.js'
import type { Host, HostContext, HostListener } from '../core/host.js'
import type { ScopeOptions } from '../options/options.js'
import { brokenOff, Engine, IDLE, WAIT } from '../wasm/engine.js'
import { ROBOTS, SETTLED } from '../wasm/generated.js'
import { loadShared, type WasmShared } from '../wasm/load/shared.js'
import { costsOf, numbers, numbersOf, plainNumbers } from '../wasm/numbers.js'
import type {
  Notice,
  Outcome,
  Peek,
  Reason,
  RobotsOutcome,
  ScopeHandle,
  ScopeStats,
  Settled,
  SharedStats,
  Snapshot,
  Stats,
  SubmitOptions,
  Ticket,
} from '../wasm/types.js'
import { type Lease, type Offline, SharedError, type Transport } from './transport.js'

const OFFLINE: readonly Offline[] = ['divide', 'wait', 'fail']
/** The parts of a group that may be unknown. */
const NOTHING_KNOWN = {
  writer: undefined,
  members: undefined,
  roundTripMs: undefined,
  lastHeardAt: undefined,
  offlineSince: undefined,
}
/** The numbers of orders. */
const [HOLD, PAUSE, RESUME, RESET, ADJUST] = [0, 1, 2, 3, 4]
const ALL = -1

/** The methods of a machine after a call that was broken off: no request waits or is in flight. */
const AFTER_BREAKDOWN = {
  ...{ poll: () => IDLE, settle: () => 0, asked_ms: Number.NaN, is_awaited: false },
  ...{ waiting: 0, in_flight: 0, cancel() {}, sent_at() {}, watch() {}, close() {} },
  ...{ wants_route: () => false, route() {} },
}

/** Why a request is refused, and what there is to say of it. */
type Refusal = readonly [
  what: 'full' | 'cost' | 'down' | 'wrong' | 'offline' | 'denied',
  first?: string,
  second?: string | number,
]

/** The machine's effects, as the module writes them. */
type Effect =
  | readonly [what: 0, op: number, above: number]
  | readonly [what: 1 | 2, op: number, epoch: number, store: Uint8Array | undefined]
  | readonly [what: 3, frame: Uint8Array]
  | readonly [what: 4, epoch: number, id: string, frame: Uint8Array]
  | readonly [what: 5, epoch: number, frame: Uint8Array]
  | readonly [what: 6, speaks: boolean]
  | readonly [what: 7, ticket: Ticket, refusal: Refusal]
  | readonly [what: 8, notice: Notice]
  | readonly [what: 9, code: WarningEvent['code'], message: string]
  | readonly [what: 10]

/** The settings of a host, beside its transport. */
export interface HostSettings {
  offline?: Offline | undefined
  members?: number | undefined
  random?: () => number
  /** 32 hexadecimal digits, unlike those of any other process. */
  id?: string
}

export class SharedHost implements Host {
  askedMs = Number.NaN
  /** When to ask again this host knows by itself. */
  readonly wakeAt = Number.POSITIVE_INFINITY
  readonly id: string
  readonly #context: HostContext
  readonly #transport: Transport
  #machine: WasmShared
  #listener: HostListener | undefined
  readonly #notices: Notice[] = []
  /** Questions to the transport that have no answer yet. */
  readonly #asked = new Set<Promise<void>>()
  #isOpen = false
  #isClosed = false
  #isTurning = false
  /** Clears the timer. */
  #rest: (() => void) | undefined
  /** Why the way to the others can never work, and why it was broken last. */
  #denied: ConfigError | undefined
  #broken: unknown

  constructor(
    transport: Transport,
    context: HostContext,
    { offline, members = Number.NaN, random = Math.random, id = newId(random) }: HostSettings = {},
  ) {
    const { options, snapshot, clock } = context
    this.id = id
    this.#context = context
    this.#transport = transport
    // Said at once if it is wrong, as what it is.
    if (snapshot !== undefined) new Engine(options).restore(snapshot, clock.now(), clock.wallNow())
    const Machine = loadShared()
    const away = OFFLINE.indexOf(offline!)
    const seed = Math.floor(random() * 2 ** 53)
    const { leaseMs, isPrompt = false, keepMs = 0 } = transport
    const wallMs = clock.wallNow()
    this.#machine = withProblems(
      ConfigError,
      () => new Machine(id, options, leaseMs, away, members, isPrompt, keepMs, snapshot, wallMs, seed),
    )
    this.#carry()
  }

  listen(listener: HostListener): void {
    this.#listener = listener
  }

  /** Leads, or asks who does, though no request is to be sent. */
  open(): void {
    this.#machine.open(this.#now)
    this.#soon()
  }

  /** Says what there is to say last, and lets go of the way. */
  async close(): Promise<void> {
    this.#machine.close(this.#now)
    if (this.#isClosed) return
    this.#carry()
    this.#end()
    const { idleClock } = this.#context
    let timer: unknown
    const late = new Promise<void>((resolve) => {
      timer = idleClock.setTimeout(resolve, this.#transport.leaseMs)
    })
    await Promise.race([Promise.all(this.#asked), late])
    idleClock.clearTimeout(timer)
    if (this.#isOpen) await this.#transport.close()
  }

  /** Leaves the group without a word: the others notice it as they notice a process that was killed. */
  abandon(error: EngineBrokenError): void {
    this.#machine = brokenOff(AFTER_BREAKDOWN, error)
    if (this.#isClosed) return
    this.#end()
    if (this.#isOpen) Promise.resolve(this.#transport.close()).catch(() => {})
  }

  #end(): void {
    this.#isClosed = true
    this.#rest?.()
  }

  get scopes(): number {
    return this.#machine.scopes()
  }

  find(name: string): ScopeHandle {
    return this.#machine.find(name)
  }

  intern(name: string): ScopeHandle {
    return this.#machine.intern(name)
  }

  release(scope: ScopeHandle): void {
    this.#machine.release(scope)
  }

  keepAlive(scope: ScopeHandle): boolean {
    return this.#machine.keep_alive(scope)
  }

  submit(now: number, scopes: readonly ScopeHandle[], options: SubmitOptions = {}): Ticket {
    const { cost = 1, priority = 0, delay = 0 } = options
    const ticket = this.#machine.submit(now, numbers('scopes', scopes), costsOf(cost), priority, delay)
    if (ticket < 0) throw this.#errorOf(this.#machine.take_refusal() as Refusal)
    this.#soon()
    return ticket
  }

  sendAtOnce(): Ticket {
    return WAIT
  }

  sendOne(): Ticket {
    return WAIT
  }

  poll(now: number): Ticket {
    return this.#machine.poll(now)
  }

  // written by `cargo xtask write`: verbs of a group
  wantsRoute(ticket: Ticket, hasFields: boolean): boolean {
    return this.#machine.wants_route(ticket, hasFields)
  }

  route(nowMs: number, ticket: Ticket, method: string, url: string): void {
    this.#machine.route(nowMs, ticket, method, url)
    this.#soon()
  }

  sentAt(nowMs: number, ticket: Ticket): void {
    this.#machine.sent_at(nowMs, ticket)
    this.#soon()
  }

  cancel(nowMs: number, ticket: Ticket): void {
    this.#machine.cancel(nowMs, ticket)
    this.#soon()
  }

  get waiting(): number {
    return this.#machine.waiting
  }

  get inFlight(): number {
    return this.#machine.in_flight
  }

  get warnThreshold(): number {
    return this.#machine.warn_threshold
  }

  retries(method: string): number {
    return this.#machine.retries(method)
  }
  // end of what is written

  settle(now: number, ticket: Ticket, outcome: Outcome = {}, naming?: () => void): Settled {
    this.askedMs = Number.NaN
    const { answer, latencyMs, cost, flags, lines, wall, encoded } = numbersOf(now, ticket, outcome)
    if (lines !== '') naming?.()
    return this.#settle(now, ticket, encoded ?? plainNumbers(answer, latencyMs, cost, flags), lines, wall)
  }

  #settle(now: number, ticket: Ticket, encoded: Float64Array, lines: string, wall: number): Settled {
    const settled = this.#machine.settle(now, ticket, encoded, lines, wall)
    this.askedMs = this.#machine.asked_ms
    this.#soon()
    return SETTLED[settled]!
  }

  settleQuietly(
    now: number,
    ticket: Ticket,
    status: number,
    latencyMs: number,
    lines: string,
    wallMs: number,
    naming?: () => void,
  ): boolean {
    if (lines !== '') naming?.()
    this.#settle(now, ticket, plainNumbers(status, latencyMs), lines, wallMs)
    return this.hasNotices
  }

  get isAwaited(): boolean {
    return this.#machine.is_awaited
  }

  configure(now: number, scope: ScopeHandle, partial: ScopeOptions): void {
    withProblems(ConfigError, () => this.#machine.configure(now, scope, partial))
    this.#soon()
  }

  crawlDelay(now: number, scope: ScopeHandle, delayMs: number | undefined): RobotsOutcome {
    this.#soon()
    return ROBOTS[this.#machine.crawl_delay(now, scope, delayMs ?? Number.NaN)]!
  }

  hold(now: number, scope: ScopeHandle, ms: number): void {
    this.#order(now, HOLD, scope, ms)
  }

  adjust(now: number, scope: ScopeHandle, sentAt: number, charged: number, cost: number): void {
    this.#order(now, ADJUST, scope, sentAt, charged, cost)
  }

  pause(now: number, scope: ScopeHandle = ALL): void {
    this.#order(now, PAUSE, scope)
  }

  resume(now: number, scope: ScopeHandle = ALL): void {
    this.#order(now, RESUME, scope)
  }

  reset(now: number, scope: ScopeHandle): void {
    this.#order(now, RESET, scope)
  }

  #order(now: number, what: number, scope: ScopeHandle, ...of: number[]): void {
    this.#machine.order(now, what, scope, Float64Array.from(of))
    this.#soon()
  }

  /** As of the last message, where another process decides. */
  peek(
    now: number,
    scopes: readonly ScopeHandle[],
    options: { cost?: number | readonly number[] } = {},
  ): Peek {
    const at = this.#machine.peek(now, numbers('scopes', scopes), costsOf(options.cost ?? 1))
    const reason = this.#machine.reason as Reason | undefined
    return { at, reason, scope: this.#machine.reason_scope }
  }

  stats(scope: undefined, now: number): Stats
  stats(scope: ScopeHandle, now?: number): ScopeStats
  stats(): Stats
  stats(scope?: ScopeHandle, now: number = this.#now): Stats | ScopeStats {
    if (scope !== undefined) return this.#machine.scope_stats(now, scope) as ScopeStats
    return { ...(this.#machine.stats(now) as Stats), shared: this.shared }
  }

  /** The group as it is known here. */
  get shared(): SharedStats {
    return { ...NOTHING_KNOWN, ...(this.#machine.status(this.#now) as SharedStats) }
  }

  snapshot(now: number, wallNow: number): Snapshot {
    return this.#machine.snapshot(now, wallNow) as Snapshot
  }

  watch(level: 0 | 1 | 2): void {
    this.#machine.watch(this.#now, level)
    this.#soon()
  }

  get hasNotices(): boolean {
    return this.#notices.length > 0
  }

  takeNotices(): Notice[] {
    return this.#notices.splice(0)
  }

  get #now(): number {
    return this.#context.clock.now()
  }

  #errorOf([what, first, second]: Refusal): Error {
    if (what === 'full') return new QueueFullError()
    if (what === 'cost') return new CostExceedsQuotaError(first as string, second as string)
    if (what === 'down') return new ScopeDownError(first as string, second as number)
    if (what === 'offline') return new SharedError(this.#broken ?? new Error(first as string))
    const never = { path: 'shared', want: 'a connection that this process may use', got: first as string }
    if (what === 'denied') return this.#denied ?? new ConfigError([never])
    return new TypeError(first as string)
  }

  /** Carries at the end of this turn. */
  #soon(): void {
    if (this.#isTurning || this.#isClosed) return
    this.#isTurning = true
    const carry = () => {
      this.#isTurning = false
      if (!this.#isClosed) this.#carry()
    }
    if (this.#transport.afterTurn) this.#transport.afterTurn(carry)
    else queueMicrotask(carry)
  }

  /** Carries out the machine's pending effects. */
  #carry(): void {
    this.#guard((now) => {
      let effect = this.#machine.poll_effect(now) as Effect | undefined
      for (; effect; effect = this.#machine.poll_effect(now) as Effect | undefined) this.#do(effect)
      // A grant of this process to itself is in no frame.
      this.#listener?.changed()
      this.#sleep()
    })
  }

  #do(effect: Effect): void {
    const listener = this.#listener
    if (effect[0] < 7) this.#say(effect, this.#way())
    if (effect[0] === 7) listener?.fail(effect[1], this.#errorOf(effect[2]))
    if (effect[0] === 8) this.#notices.push(effect[1])
    if (effect[0] === 9) listener?.warn(effect[1], effect[2])
    if (effect[0] === 10) listener?.shared(this.shared)
  }

  #say(effect: Effect, transport: Transport): void {
    if (effect[0] === 0) this.#ask(effect[1], transport.compete(effect[2]))
    if (effect[0] === 1) this.#ask(effect[1], transport.renew(effect[2], effect[3]))
    if (effect[0] === 2) this.#ask(effect[1], transport.release(effect[2], effect[3]))
    if (effect[0] === 3) transport.toLeader(effect[1])
    if (effect[0] === 4) transport.toMember(effect[1], effect[2], effect[3])
    if (effect[0] === 5) transport.toAll(effect[1], effect[2])
    if (effect[0] === 6) transport.reconnect(effect[1])
  }

  /** The transport, open. */
  #way(): Transport {
    const transport = this.#transport
    if (this.#isOpen) return transport
    this.#isOpen = true
    transport.open({
      id: this.id,
      clock: this.#context.idleClock,
      opened: () => this.#receive((now) => this.#machine.opened(now)),
      received: (frame) => this.#receive((now) => this.#machine.received(now, frame)),
      gone: (id) => this.#receive((now) => this.#machine.gone(now, id)),
      unheard: (id, epoch) => this.#receive((now) => this.#machine.unheard(now, id, epoch)),
      vacant: (hasEnded) => this.#receive((now) => this.#machine.vacant(now, hasEnded)),
      fenced: (epoch) => this.#receive((now) => this.#machine.fenced(now, epoch)),
    })
    return transport
  }

  /** Something happened outside: who may leave now leaves. */
  #receive(input: (now: number) => void): void {
    if (this.#isClosed) return
    this.#guard((now) => {
      input(now)
      this.#listener?.changed()
    })
    this.#soon()
  }

  #guard(call: (now: number) => void): void {
    try {
      call(this.#now)
    } catch (error) {
      if (this.#listener?.broke?.(error) !== true) throw error
    }
  }

  /** Takes the answer: a lease, or whether the lease is ours. */
  #ask(op: number, asked: Promise<Lease | boolean | undefined> | Promise<void>): void {
    const answered = (answer: Lease | boolean | undefined) => {
      this.#denied = undefined
      this.#receive((now) => {
        if (typeof answer !== 'object') return this.#machine.answered(now, op, answer === true)
        const { epoch, stored, ageMs = 0, isFirst = false } = answer
        this.#machine.elected(now, op, epoch, stored, ageMs, isFirst)
      })
    }
    const failed = (error: unknown) => {
      this.#broken = error
      const isDenied = error instanceof ConfigError
      if (isDenied) this.#denied = error
      const why = (error as Error | undefined)?.message ?? String(error)
      this.#receive((now) => this.#machine.failed(now, op, why, isDenied))
    }
    const done = (asked as Promise<Lease | undefined>)
      .then(answered, failed)
      .finally(() => this.#asked.delete(done))
    this.#asked.add(done)
  }

  /** One timer. While a request waits for another process, this may be all that keeps this one alive. */
  #sleep(): void {
    this.#rest?.()
    const { wake_at: at, has_unsaid: hasUnsaid } = this.#machine
    if (at === Number.POSITIVE_INFINITY) return
    const { clock, idleClock } = this.#context
    const its = this.waiting > 0 || hasUnsaid ? clock : idleClock
    const ring = () => this.#receive((now) => this.#machine.timeout(now))
    // Whole milliseconds: a Worker cuts what is less, and its clock may stand still between two timers.
    const timer = its.setTimeout(ring, Math.max(Math.ceil(at - this.#now), 0))
    this.#rest = () => its.clearTimeout(timer)
  }
}

/** 32 hexadecimal digits, unlike those of any other process. */
function newId(random: () => number): string {
  const byte = () => Math.floor(random() * 256).toString(16)
  return Array.from({ length: 16 }, () => byte().padStart(2, '0')).join('')
}
