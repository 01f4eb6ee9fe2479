/**
 * A shared host: it answers what an engine answers, and asks the group.
 *
 * What needs an answer at once is answered here, by an engine that has the same options and sends nothing:
 * whether a setting makes sense, what an outcome means, when a request could be sent as far as is known. The
 * trap is to believe it beyond that: what it says of others is as old as the last beat.
 */
import { CostExceedsQuotaError, QueueFullError, ScopeDownError } from '../base/errors.js'
import type { Host, HostContext, HostListener } from '../core/host.js'
import type { ScopeOptions } from '../options/options.js'
import { Engine, WAIT } from '../wasm/engine.js'
import type {
  Notice,
  Outcome,
  Peek,
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
import { Group } from './group.js'
import type { GroupLink } from './group-link.js'
import type { Memory } from './member.js'
import { type Refusal, renumber, type Seen, stateIn, type Tell } from './messages.js'
import type { Offline, Transport } from './transport.js'

/** Names that are known by number at a time. */
const MOST_NAMES = 20_000
/** A process that waits stays alive: its timer is armed for so long, again and again. */
const ALIVE_MS = 1000

export class SharedHost implements Host, GroupLink {
  askedMs = Number.NaN
  /** @internal */
  readonly group: Group
  readonly #context: HostContext
  readonly #judge: Engine
  readonly #names = new Map<ScopeHandle, string>()
  readonly #handles = new Map<string, ScopeHandle>()
  #made = 0
  #listener: HostListener | undefined
  #notices: Notice[] = []
  #level: 0 | 1 | 2 = 0
  #alive: unknown

  constructor(
    transport: Transport,
    context: HostContext,
    { offline = 'divide', members, random = Math.random, id = newId(random) }: HostSettings = {},
  ) {
    this.#context = context
    this.#judge = new Engine(context.options)
    const { snapshot, clock } = context
    // Said at once if it is wrong; whoever writes first goes on from it.
    if (snapshot !== undefined) this.#judge.restore(snapshot, clock.now(), clock.wallNow())
    this.#notices = this.#judge.takeNotices()
    this.group = new Group(transport, context, this, { offline, members, random, id })
  }

  listen(listener: HostListener): void {
    this.#listener = listener
  }

  async close(): Promise<void> {
    this.#rest()
    await this.group.close()
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

  submit(_: number, scopes: readonly ScopeHandle[], options: SubmitOptions = {}): Ticket {
    const { cost = 1, priority = 0, delay = 0 } = options
    const costs = typeof cost === 'number' ? [cost] : cost
    const isRight = [...costs, delay].every((number) => Number.isFinite(number) && number >= 0)
    if (!isRight || !Number.isFinite(priority))
      throw new TypeError('cost and delay must be finite and not below 0, priority finite')
    const names = scopes.map((scope) => this.#nameOf(scope))
    if (this.group.denied) throw this.group.denied
    this.group.open()
    const ticket = this.group.member.submit(names, { cost, priority, delay })
    this.#stayAlive()
    if (this.#names.size > MOST_NAMES) queueMicrotask(() => this.#forgetNames())
    return ticket
  }

  sendAtOnce(): Ticket {
    return WAIT
  }

  sendOne(): Ticket {
    return WAIT
  }

  poll(now: number): Ticket {
    const ticket = this.group.member.poll(now)
    if (this.#alive !== undefined && this.group.member.waiting === 0) this.#rest()
    return ticket
  }

  get wakeAt(): number {
    return this.group.member.wakeAt
  }

  settle(_: number, ticket: Ticket, outcome: Outcome = {}): Settled {
    this.askedMs = Number.NaN
    const { member } = this.group
    if (!member.isFlying(ticket)) return 'unknown'
    const { settled, askedMs, told } = this.#judge.digest(outcome)
    renumber(told, (scope) => member.namesOf(ticket).indexOf(this.#names.get(scope) ?? ''))
    member.settle(ticket, told)
    this.askedMs = askedMs
    if (settled === 'again') this.#stayAlive()
    return settled
  }

  get isAwaited(): boolean {
    return this.group.member.isAwaited
  }

  left(now: number, ticket: Ticket): void {
    this.group.member.left(now, ticket)
  }

  cancel(_: number, ticket: Ticket): void {
    this.group.member.cancel(ticket)
  }

  get waiting(): number {
    return this.group.member.waiting
  }

  get inFlight(): number {
    return this.group.member.inFlight
  }

  configure(now: number, scope: ScopeHandle, partial: ScopeOptions): void {
    const name = this.#nameOf(scope)
    this.#judge.configure(now, this.#judge.scope(name), partial)
    this.#order(['configure', name, partial])
  }

  crawlDelay(now: number, scope: ScopeHandle, delayMs: number | undefined): RobotsOutcome {
    const name = this.#nameOf(scope)
    const outcome = this.#judge.crawlDelay(now, this.#judge.intern(name), delayMs)
    if (outcome === 'applied') this.#order(['crawl', name, delayMs ?? null])
    return outcome
  }

  hold(_: number, scope: ScopeHandle, ms: number): void {
    this.#order(['hold', this.#nameOf(scope), ms])
  }

  adjust(now: number, scope: ScopeHandle, sentAt: number, charged: number, cost: number): void {
    this.#order(['adjust', this.#nameOf(scope), Math.max(now - sentAt, 0), charged, cost])
  }

  pause(_: number, scope?: ScopeHandle): void {
    this.#order(['pause', scope === undefined ? null : this.#nameOf(scope)])
  }

  resume(_: number, scope?: ScopeHandle): void {
    this.#order(['resume', scope === undefined ? null : this.#nameOf(scope)])
  }

  reset(_: number, scope: ScopeHandle): void {
    this.#order(['reset', this.#nameOf(scope)])
  }

  /** As of the last beat, where another process decides. */
  peek(
    now: number,
    scopes: readonly ScopeHandle[],
    options: { cost?: number | readonly number[] } = {},
  ): Peek {
    const { engine, now: then } = this.group.writer ?? { engine: this.#remembered(now), now }
    const handles = scopes.map((scope) => engine.find(this.#names.get(scope) ?? ''))
    const { at, ...why } = engine.peek(then, handles, options)
    return { at: at - then + now, ...why }
  }

  stats(scope: undefined, now: number): Stats
  stats(scope: ScopeHandle, now?: number): ScopeStats
  stats(): Stats
  stats(scope?: ScopeHandle, now: number = this.#context.clock.now()): Stats | ScopeStats {
    const all = this.#stats(now)
    if (scope === undefined) return { ...all, shared: this.group.stats }
    const name = this.#nameOf(scope)
    return Object.hasOwn(all.scopes, name)
      ? all.scopes[name]!
      : this.#judge.stats(this.#judge.intern(name), now)
  }

  snapshot(now: number, wallNow: number): Snapshot {
    const { writer } = this.group
    if (writer) return writer.engine.snapshot(writer.now, wallNow)
    const known = this.#read('memory', ({ text, at }) => {
      return { ...stateIn(text).snapshot, wallMs: wallNow - (now - at) }
    })
    return known ?? this.#judge.snapshot(now, wallNow)
  }

  watch(level: 0 | 1 | 2): void {
    this.#level = level
    this.group.member.watch = level
    if (this.group.member.epoch > 0) this.#order(['watch', level])
  }

  get hasNotices(): boolean {
    return this.#notices.length > 0
  }

  takeNotices(): Notice[] {
    return this.#notices.splice(0)
  }

  get warnThreshold(): number {
    return this.#judge.warnThreshold
  }

  #nameOf(scope: ScopeHandle): string {
    const name = this.#names.get(scope)
    if (name === undefined) throw new TypeError('the request names no scope that is known')
    return name
  }

  #order(order: Parameters<Group['member']['order']>[0]): void {
    this.group.open()
    this.group.member.order(order)
  }

  /** What another process knew when it was last heard. */
  #remembered(now: number): Engine {
    this.#read('memory', ({ text, at }) => {
      const { snapshot, settings } = stateIn(text)
      const wallMs = 1e12
      this.#judge.restore({ ...snapshot, wallMs }, now, wallMs + now - at)
      for (const [name, partial] of settings) this.#judge.configure(now, this.#judge.scope(name), partial)
      this.#judge.takeNotices()
    })
    return this.#judge
  }

  /** What was heard of the writer, as far as it can be read: what cannot is forgotten. */
  #read<T>(what: 'memory' | 'seen', read: (heard: Memory) => T): T | undefined {
    const { group } = this
    const heard = group.member[what]
    try {
      return heard && read(heard)
    } catch (error) {
      group.member[what] = undefined
      group.told.unreadable(error)
      return undefined
    }
  }

  #stats(now: number): Stats {
    const { writer, member } = this.group
    if (writer) return shifted(writer.engine.stats(undefined, writer.now), now - writer.now, 0)
    const told =
      (member.seen?.at ?? 0) >= (member.memory?.at ?? 0) &&
      this.#read('seen', ({ text, at }) => {
        const { now: then, stats } = JSON.parse(text) as Seen
        return shifted(stats, at - then, now - at)
      })
    if (told) return told
    const stats = this.#remembered(now).stats(undefined, now)
    return { ...stats, ageMs: now - (member.memory?.at ?? Number.NEGATIVE_INFINITY) }
  }

  /** @internal */
  changed(refused: readonly Refusal[]): void {
    for (const refusal of refused) this.#listener?.fail(refusal[0], errorOf(refusal))
    this.#listener?.changed()
  }

  /** @internal */
  failed(error: Error): void {
    for (const ticket of this.group.member.everybody()) {
      this.group.member.cancel(ticket)
      this.#listener?.fail(ticket, error)
    }
  }

  /** @internal */
  warn(...[code, message]: Parameters<HostListener['warn']>): void {
    this.#listener?.warn(code, message)
  }

  /** @internal */
  moved(stats: SharedStats): void {
    this.#listener?.shared(stats)
  }

  /** @internal Of an answer only its own process hears; of what changed, whoever listens. */
  told({ now: then, notices, of, latencyMs }: Tell): void {
    const now = this.#context.clock.now()
    const isOurs = of === undefined || of === this.group.id
    for (const notice of notices) {
      if (notice.kind === 'answer' && !(this.#level === 2 && isOurs)) continue
      const isTimed = notice.kind === 'answer' && typeof latencyMs === 'number'
      this.#notices.push({ ...inTime(notice, now - then), ...(isTimed && { latencyMs }) })
    }
    if (this.#notices.length > 0) this.#listener?.changed()
  }

  /** While a request waits for another process, nothing else may keep this one alive. */
  #stayAlive(): void {
    if (this.#alive !== undefined) return
    this.#alive = this.#context.clock.setTimeout(() => {
      this.#alive = undefined
      if (this.group.member.waiting > 0) this.#stayAlive()
    }, ALIVE_MS)
  }

  #rest(): void {
    this.#context.clock.clearTimeout(this.#alive)
    this.#alive = undefined
  }

  #forgetNames(): void {
    if (this.#names.size <= MOST_NAMES) return
    this.#names.clear()
    this.#handles.clear()
  }
}

/** What a host takes beside its transport. */
export interface HostSettings {
  offline?: Offline | undefined
  members?: number | undefined
  random?: () => number
  id?: string
}

/** A name unlike that of any other process. */
function newId(random: () => number): string {
  return Array.from({ length: 3 }, () => random().toString(36).slice(2, 8)).join('')
}

function errorOf(refusal: Refusal): Error {
  if (refusal[1] === 'full') return new QueueFullError()
  if (refusal[1] === 'cost')
    return new CostExceedsQuotaError(refusal[2] ?? undefined, refusal[3] ?? undefined)
  return refusal[1] === 'down' ? new ScopeDownError(refusal[2], refusal[3]) : new TypeError(refusal[2])
}

/** Statistics by a clock that is ahead by so many milliseconds. */
export function shifted(stats: Stats, ms: number, ageMs: number): Stats {
  const scopes = Object.entries(stats.scopes).map(([name, scope]) => [name, inTime(scope, ms)])
  return { ...stats, scopes: Object.fromEntries(scopes), ageMs }
}

/** The same with its instant by another clock. */
function inTime<T extends object>(told: T & { holdUntil?: number | undefined }, ms: number): T {
  return told.holdUntil === undefined ? told : { ...told, holdUntil: told.holdUntil + ms }
}
