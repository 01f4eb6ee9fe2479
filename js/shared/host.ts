/**
 * A shared host: it answers what an engine answers, by the machine of a group (`shared/` in Rust).
 *
 * The machine decides everything. Here names have numbers, as the desk knows them, and refusals are errors.
 * The trap is to answer for others: what the machine says of them is as old as what it heard last.
 */
import {
  ConfigError,
  CostExceedsQuotaError,
  type EngineBrokenError,
  QueueFullError,
  ScopeDownError,
  withProblems,
} from '../base/errors.js'
import type { Host, HostContext, HostListener } from '../core/host.js'
import type { ScopeOptions } from '../options/options.js'
import { brokenOff, Engine, IDLE, WAIT } from '../wasm/engine.js'
import { loadShared, type WasmShared } from '../wasm/load/shared.js'
import { costsOf, NO_MORE, numbersOf, RECORDS_AT, STRIDE } from '../wasm/numbers.js'
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
import { Courier, type Refusal } from './courier.js'
import { type Offline, SharedError, type Transport } from './transport.js'

/** Names that are known by number at a time. */
const MOST_NAMES = 20_000
const OFFLINE: readonly Offline[] = ['divide', 'wait', 'fail']
const SETTLED: readonly Settled[] = ['unknown', 'over', 'again', 'too-long']
const ROBOTS: readonly RobotsOutcome[] = ['applied', 'overruled', 'ignored']

/** What is left of a machine after a call that was broken off: no request waits or is in flight. */
const LEFT = {
  poll: () => IDLE,
  settle: () => 0,
  asked_ms: Number.NaN,
  is_awaited: false,
  waiting: 0,
  in_flight: 0,
  cancel() {},
  left() {},
  watch() {},
  close() {},
} as const

/** What a host takes beside its transport. */
export interface HostSettings {
  offline?: Offline | undefined
  members?: number | undefined
  random?: () => number
  /** 32 hexadecimal digits, unlike those of any other process. */
  id?: string
}

export class SharedHost implements Host {
  askedMs = Number.NaN
  readonly id: string
  readonly #context: HostContext
  #machine: WasmShared
  readonly #courier: Courier
  readonly #reasons: readonly string[]
  readonly #names = new Map<ScopeHandle, string>()
  readonly #handles = new Map<string, ScopeHandle>()
  /** The scopes of requests that are not over. */
  readonly #scopes = new Map<Ticket, readonly ScopeHandle[]>()
  #made = 0
  #listener: HostListener | undefined
  readonly #notices: Notice[] = []

  constructor(
    transport: Transport,
    context: HostContext,
    { offline, members = Number.NaN, random = Math.random, id = newId(random) }: HostSettings = {},
  ) {
    const { options, snapshot, clock } = context
    this.id = id
    this.#context = context
    // Said at once if it is wrong, as what it is.
    if (snapshot !== undefined) new Engine(options).restore(snapshot, clock.now(), clock.wallNow())
    const Machine = loadShared()
    this.#reasons = Machine.reasons()
    const away = offline === undefined ? -1 : OFFLINE.indexOf(offline)
    const seed = Math.floor(random() * 2 ** 53)
    const { leaseMs, isPrompt = false, keepMs = 0 } = transport
    const wallMs = clock.wallNow()
    this.#machine = withProblems(
      ConfigError,
      () => new Machine(id, options, leaseMs, away, members, isPrompt, keepMs, snapshot, wallMs, seed),
    )
    this.#courier = new Courier(this.#machine, transport, context, id, {
      changed: () => this.#listener?.changed(),
      failed: (ticket, refusal) => {
        this.#scopes.delete(ticket)
        this.#listener?.fail(ticket, this.#errorOf(refusal))
      },
      noticed: (notice) => this.#notices.push(notice),
      warned: (code, message) => this.#listener?.warn(code, message),
      moved: () => this.#listener?.shared(this.shared),
      broke: (error) => this.#listener?.broke?.(error) === true,
    })
    this.#courier.carry()
  }

  listen(listener: HostListener): void {
    this.#listener = listener
  }

  /** Leads, or asks who does, though no request is to be sent. */
  open(): void {
    this.#machine.open(this.#now)
    this.#courier.soon()
  }

  async close(): Promise<void> {
    this.#machine.close(this.#now)
    await this.#courier.close()
  }

  /** Leaves the group without a word: the others notice it as they notice a process that was killed. */
  abandon(error: EngineBrokenError): void {
    this.#machine = brokenOff(LEFT, error)
    this.#courier.abandon()
  }

  get scopes(): number {
    return this.#names.size
  }

  find(name: string): ScopeHandle {
    return this.#handles.get(name) ?? -1
  }

  intern(name: string): ScopeHandle {
    const known = this.#handles.get(name)
    if (known !== undefined) return known
    const made = this.#made++
    this.#handles.set(name, made)
    this.#names.set(made, name)
    return made
  }

  release(scope: ScopeHandle): void {
    this.#handles.delete(this.#names.get(scope) ?? '')
    this.#names.delete(scope)
  }

  keepAlive(scope: ScopeHandle): boolean {
    return this.#names.has(scope)
  }

  submit(now: number, scopes: readonly ScopeHandle[], options: SubmitOptions = {}): Ticket {
    const { cost = 1, priority = 0, delay = 0 } = options
    const names = scopes.map((scope) => this.#nameOf(scope))
    const ticket = this.#machine.submit(now, names, costsOf(cost), priority, delay)
    if (ticket < 0) throw this.#errorOf(this.#machine.take_refusal() as Refusal)
    this.#scopes.set(ticket, scopes)
    this.#courier.soon()
    if (this.#names.size > MOST_NAMES) queueMicrotask(() => this.#forgetNames())
    return ticket
  }

  sendAtOnce(): Ticket {
    return WAIT
  }

  sendOne(): Ticket {
    return WAIT
  }

  /** When to ask again this host knows by itself. */
  poll(now: number): Ticket {
    const ticket = this.#machine.poll(now)
    return ticket < 0 ? IDLE : ticket
  }

  readonly wakeAt = Number.POSITIVE_INFINITY

  settle(now: number, ticket: Ticket, outcome: Outcome = {}): Settled {
    this.askedMs = Number.NaN
    const numbers = numbersOf(now, ticket, outcome)
    const { answer, latencyMs, cost, flags, lines, more = NO_MORE } = numbers
    const scopes = this.#scopes.get(ticket) ?? []
    for (let at = RECORDS_AT; at < more.length; at += STRIDE) more[at] = scopes.indexOf(more[at]!)
    const settled = SETTLED[this.#machine.settle(now, ticket, answer, latencyMs, cost, flags, lines, more)]!
    this.askedMs = this.#machine.asked_ms
    if (settled !== 'again') this.#scopes.delete(ticket)
    this.#courier.soon()
    return settled
  }

  get isAwaited(): boolean {
    return this.#machine.is_awaited
  }

  left(now: number, ticket: Ticket): void {
    this.#machine.left(now, ticket)
    this.#courier.soon()
  }

  cancel(now: number, ticket: Ticket): void {
    this.#scopes.delete(ticket)
    this.#machine.cancel(now, ticket)
    this.#courier.soon()
  }

  get waiting(): number {
    return this.#machine.waiting
  }

  get inFlight(): number {
    return this.#machine.in_flight
  }

  configure(now: number, scope: ScopeHandle, partial: ScopeOptions): void {
    withProblems(ConfigError, () => this.#machine.configure(now, this.#nameOf(scope), partial))
    this.#courier.soon()
  }

  crawlDelay(now: number, scope: ScopeHandle, delayMs: number | undefined): RobotsOutcome {
    this.#courier.soon()
    return ROBOTS[this.#machine.crawl_delay(now, this.#nameOf(scope), delayMs ?? Number.NaN)]!
  }

  hold(now: number, scope: ScopeHandle, ms: number): void {
    this.#machine.hold(now, this.#nameOf(scope), ms)
    this.#courier.soon()
  }

  adjust(now: number, scope: ScopeHandle, sentAt: number, charged: number, cost: number): void {
    this.#machine.adjust(now, this.#nameOf(scope), sentAt, charged, cost)
    this.#courier.soon()
  }

  pause(now: number, scope?: ScopeHandle): void {
    this.#machine.pause(now, scope === undefined ? undefined : this.#nameOf(scope))
    this.#courier.soon()
  }

  resume(now: number, scope?: ScopeHandle): void {
    this.#machine.resume(now, scope === undefined ? undefined : this.#nameOf(scope))
    this.#courier.soon()
  }

  reset(now: number, scope: ScopeHandle): void {
    this.#machine.reset(now, this.#nameOf(scope))
    this.#courier.soon()
  }

  /** As of the last message, where another process decides. */
  peek(
    now: number,
    scopes: readonly ScopeHandle[],
    options: { cost?: number | readonly number[] } = {},
  ): Peek {
    const names = scopes.map((scope) => this.#names.get(scope) ?? '')
    const at = this.#machine.peek(now, names, costsOf(options.cost ?? 1))
    const reason = this.#reasons[this.#machine.reason] as Reason | undefined
    return { at, reason, scope: this.#machine.reason_scope }
  }

  stats(scope: undefined, now: number): Stats
  stats(scope: ScopeHandle, now?: number): ScopeStats
  stats(): Stats
  stats(scope?: ScopeHandle, now: number = this.#now): Stats | ScopeStats {
    if (scope !== undefined) return this.#machine.scope_stats(now, this.#nameOf(scope)) as ScopeStats
    return { ...(this.#machine.stats(now) as Stats), shared: this.shared }
  }

  /** The group as it is known here. */
  get shared(): SharedStats {
    const nothing = { writer: undefined, members: undefined, roundTripMs: undefined }
    const never = { lastHeardAt: undefined, offlineSince: undefined }
    return { ...nothing, ...never, ...(this.#machine.status(this.#now) as SharedStats) }
  }

  snapshot(now: number, wallNow: number): Snapshot {
    return this.#machine.snapshot(now, wallNow) as Snapshot
  }

  watch(level: 0 | 1 | 2): void {
    this.#machine.watch(this.#now, level)
    this.#courier.soon()
  }

  get hasNotices(): boolean {
    return this.#notices.length > 0
  }

  takeNotices(): Notice[] {
    return this.#notices.splice(0)
  }

  get warnThreshold(): number {
    return this.#machine.warn_threshold
  }

  get #now(): number {
    return this.#context.clock.now()
  }

  #nameOf(scope: ScopeHandle): string {
    const name = this.#names.get(scope)
    if (name === undefined) throw new TypeError('the request names no scope that is known')
    return name
  }

  #forgetNames(): void {
    if (this.#names.size <= MOST_NAMES) return
    this.#names.clear()
    this.#handles.clear()
  }

  #errorOf([what, first, second]: Refusal): Error {
    const { denied, broken } = this.#courier
    if (what === 'full') return new QueueFullError()
    if (what === 'cost') return new CostExceedsQuotaError(first as string, second as string)
    if (what === 'down') return new ScopeDownError(first as string, second as number)
    if (what === 'offline') return new SharedError(broken ?? new Error(first as string))
    const never = { path: 'shared', want: 'a way to the others that can work', got: first as string }
    if (what === 'denied') return denied ?? new ConfigError([never])
    return new TypeError(first as string)
  }
}

/** 32 hexadecimal digits, unlike those of any other process. */
function newId(random: () => number): string {
  const byte = () => Math.floor(random() * 256).toString(16)
  return Array.from({ length: 16 }, () => byte().padStart(2, '0')).join('')
}
