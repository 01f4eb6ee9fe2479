/**
 * The one process that decides: the very engine and its driver, asked by members instead of a desk.
 *
 * The traps: a writer that slept and believes it still writes (before anything is granted it asks whether its
 * lease is still good, and what it drew is thrown away if not); a slot that is given away twice when the
 * writer changes (what flies is adopted before anybody is asked); and whoever is quick after that (all are
 * collected for a moment, and age decides).
 */

import { Driver } from '../core/driver.js'
import type { Clock, EngineOptions } from '../options/options.js'
import { Engine } from '../wasm/engine.js'
import type { ScopeHandle, Ticket } from '../wasm/types.js'
import { Cadence } from './cadence.js'
import { Held, type Member, memberOf, nameOf, refusalOf, rememberedOf } from './held.js'
import {
  type Ask,
  type Beat,
  type Flight,
  type Heard,
  type Hello,
  numbersIn,
  type Remembered,
  renumber,
  type Said,
  type Seen,
  type State,
  type ToWriter,
  type Turn,
} from './messages.js'
import { Orders } from './orders.js'
import type { Beginning, WriterLink } from './writer-link.js'

/**
 * For so long a new writer listens before it grants, in milliseconds, where it does not know to whom; those
 * that it knows may take so much longer, for a story that is lost is told again then.
 */
export const COLLECT_MS = 100
/** Snapshots count their age from here: no wall clock is believed. */
const WALL_MS = 1e12
/** Nothing that is adopted is in a memory that there is not. */
const LONG_AGO_MS = 1e10
/** Statistics of more scopes do not go along: they take longer than a lease. */
const MOST_SEEN = 5000
/** So many turns may come before their hello is heard: the others are told again. */
const MOST_AHEAD = 10_000

export class Writer {
  readonly #link: WriterLink
  readonly #engine: Engine
  readonly #driver: Driver
  readonly #clock: Clock
  readonly #members = new Map<string, Member>()
  readonly #orders: Orders
  /** Those whose grants or refusals are not said yet. */
  readonly #owed = new Set<Member>()
  #level: 0 | 1 | 2 = 1
  /** What is told while it only listens: of each the newest. */
  #stories: Map<string, Hello> | undefined
  /** Turns that came before the hello that they follow was heard. */
  readonly #ahead: Turn[] = []
  /** Whose story it waits for; `undefined` where nobody knows. */
  readonly #missing: Set<string> | undefined
  /** Who wrote before: it was silent for a lease, so it is waited for only as long as somebody unknown. */
  readonly #former: string | undefined
  #collecting: unknown
  #isStopped = false
  #beatAt: number
  /** How much of each process the memory has that this writer goes on from. */
  readonly #remembered: ReadonlyMap<string, Remembered[1]>
  /** Of memory and statistics. */
  readonly #cadence = new Cadence()

  /** @param clock is ahead by the time that a grant takes to arrive. */
  constructor(link: WriterLink, options: EngineOptions, clock: Clock, beginning: Beginning) {
    this.#link = link
    this.#clock = clock
    this.#engine = new Engine(options)
    this.#beatAt = this.now
    const { state, ageMs, former, gone, snapshot } = beginning
    this.#former = former
    this.#missing =
      state && new Set([...state.members.map(([id]) => id).filter((id) => id !== gone), link.id])
    this.#remembered = new Map(state?.members.map(([id, heard]) => [id, heard]))
    // Also without any: what is adopted left before the engine's own origin.
    const known = { ...(state?.snapshot ?? { version: 1, scopes: {} }), wallMs: WALL_MS }
    const knownAt = WALL_MS + (state ? Math.max(ageMs, 0) : LONG_AGO_MS)
    if (!state && snapshot) this.#engine.restore(snapshot, this.now, clock.wallNow())
    else this.#engine.restore(known, this.now, knownAt)
    this.#engine.watch(this.#level)
    // What the options say without effect, each process has found by itself.
    this.#engine.takeNotices()
    this.#driver = new Driver(this.#engine, clock, () => this.#flush())
    this.#orders = new Orders(this.#engine, () => this.now)
    if (state) this.#orders.restore(state)
    for (const member of state?.members ?? []) if (member[0] !== gone) this.#presume(member, ageMs)
  }

  /** Listens for a moment, so that age decides and what flies is known before anybody is asked. */
  collect(): void {
    this.#stories = new Map()
    this.#wait(COLLECT_MS + (this.#missing ? this.#link.leaseMs / 5 : 0))
  }

  hear(message: ToWriter): void {
    if (this.#isStopped || message.epoch !== this.#link.epoch) return
    const member = this.#members.get(message.from)
    if (member) member.seenAt = this.now
    if (message.type === 'hello') {
      if (this.#stories) this.#keep(this.#stories, message)
      else this.#take([message])
    } else if (message.type === 'turn') {
      this.#turn(message)
      this.#decide()
    } else if (message.type === 'bye') this.drop(message.from)
  }

  /** A process has ended: what it had comes back. */
  drop(id: string): void {
    const member = this.#members.get(id)
    if (member === undefined) return
    this.#members.delete(id)
    this.#owed.delete(member)
    for (const held of member.requests.values()) this.#end(held)
    this.#driver.drain()
  }

  /** Says that it is there, and forgets members that no longer say so. */
  beat(): Beat {
    const now = this.now
    // It slept: nobody could be heard meanwhile, so their silence is counted anew.
    const slept = now - this.#beatAt > this.#link.leaseMs
    this.#beatAt = now
    for (const member of [...this.#members.values()]) {
      if (slept) member.seenAt = now
      if (member.id !== this.#link.id && now - member.seenAt > 2 * this.#link.leaseMs) this.drop(member.id)
    }
    const members: Record<string, Heard> = {}
    for (const { id, hello, turns, grants } of this.#members.values()) members[id] = [hello, turns, grants]
    const { id: from, epoch, hash } = this.#link
    const beat: Beat = { type: 'beat', from, epoch, members, hash }
    if (!this.#cadence.isDue(now) || this.#stories) return beat
    const state = this.state()
    let seen: string | undefined
    if (this.#engine.scopes <= MOST_SEEN)
      seen = JSON.stringify({ now, stats: this.#engine.stats(undefined, now) } satisfies Seen)
    this.#cadence.went(now, state.length + (seen?.length ?? 0))
    return { ...beat, state, seen }
  }

  /** What the next writer needs, as text. */
  state(): string {
    const snapshot = this.#engine.snapshot(this.now, WALL_MS)
    const members = [...this.#members.values()].map(rememberedOf)
    return JSON.stringify({ snapshot, ...this.#orders.state, members } satisfies State)
  }

  /** How many processes there are, once it knows. */
  get size(): number | undefined {
    return this.#stories ? undefined : this.#members.size
  }

  /** The engine, for questions about now. */
  get engine(): Engine {
    return this.#engine
  }

  /** Its instant, for what it tells. */
  get now(): number {
    return this.#clock.now()
  }

  /** Decides nothing more. */
  stop(): void {
    this.#isStopped = true
    this.#clock.clearTimeout(this.#collecting)
    for (const { requests } of this.#members.values())
      for (const held of requests.values()) if (!held.isFlying) this.#driver.forget(held)
    this.#driver.rest()
  }

  /** Asks again, now and then: a story may have been lost. */
  #wait(ms: number): void {
    this.#collecting = this.#clock.setTimeout(
      () => {
        this.#missing?.delete(this.#former ?? '')
        if (ms <= COLLECT_MS || this.#missing?.size === 0) return this.#begin()
        this.#link.soon(0)
        this.#wait(ms - COLLECT_MS)
      },
      Math.min(ms, COLLECT_MS),
    )
  }

  #keep(stories: Map<string, Hello>, hello: Hello): void {
    if (hello.hello > (stories.get(hello.from)?.hello ?? 0)) stories.set(hello.from, hello)
    this.#missing?.delete(hello.from)
    if (this.#missing?.size === 0) this.#begin()
  }

  #begin(): void {
    this.#clock.clearTimeout(this.#collecting)
    const stories = this.#stories?.values() ?? []
    this.#stories = undefined
    if (this.#link.isPrompt) for (const id of this.#missing ?? []) this.drop(id)
    this.#take(stories)
  }

  /** Members' stories: what flies, the oldest first; who waits, by age; what followed. Then all are asked. */
  #take(stories: Iterable<Hello>): void {
    const flying: [Member, Flight, boolean][] = []
    const waiting: [Member, Ask][] = []
    const given: [Member, Hello['orders'][number]][] = []
    for (const hello of stories) {
      const known = this.#members.get(hello.from)
      if (known && known.hello >= hello.hello) continue
      const isNew = !known?.hello
      const member = isNew ? this.#welcome(hello) : known
      this.#reconcile(member, hello)
      for (const flight of hello.flying) flying.push([member, flight, isNew])
      for (const ask of hello.waiting) waiting.push([member, ask])
      for (const order of hello.orders) if (order[0] > member.orders) given.push([member, order])
      member.orders = Math.max(member.orders, ...hello.orders.map(([number]) => number))
    }
    given.sort((a, b) => b[1][1] - a[1][1])
    flying.sort((a, b) => b[1].sentAgo - a[1].sentAgo)
    for (const [member, flight, isNew] of flying) this.#fly(member, flight, isNew)
    waiting.sort((a, b) => b[1].waited - a[1].waited)
    for (const [member, ask] of waiting) if (!member.requests.has(ask.id)) this.#ask(member, ask)
    for (const [, [, ago, order]] of given) this.#orders.apply(order, ago)
    for (const turn of this.#ahead.splice(0)) this.#turn(turn)
    this.#decide()
  }

  /** Tells what was noticed, and asks for everybody. */
  #decide(): void {
    this.#notice()
    this.#driver.changed()
  }

  /** Whether it is in the memory: a later story has it as well. */
  #isRemembered(id: string, [hello, turn]: Said): boolean {
    const [heard, turns] = this.#remembered.get(id) ?? [0, 0]
    return hello < heard || (hello === heard && turn <= turns)
  }

  /** A process that the memory knows keeps its slots until it tells its story, or is forgotten. */
  #presume([id, , flying]: Remembered, ageMs: number): void {
    if (ageMs > 2 * this.#link.leaseMs) return
    const member = memberOf(id, this.now - ageMs)
    this.#members.set(id, member)
    let made = 0
    for (const [count, names] of flying)
      for (let each = 0; each < count; each++) {
        // No story has its number; its cost is in the memory.
        const ask = { id: -++made, attempt: 0, names }
        this.#hold(member, ask, this.#engine.adopt(this.now, this.#handlesOf(names), ageMs + 1), true)
      }
  }

  #welcome(hello: Hello): Member {
    const member = this.#members.get(hello.from) ?? memberOf(hello.from, this.now)
    member.orders = this.#remembered.get(member.id)?.[2] ?? 0
    this.#members.set(member.id, member)
    // The next writer is to know whose story it waits for.
    this.#learned()
    if (hello.hash !== this.#link.hash) this.#link.differs(member.id)
    return member
  }

  /** A newer story: what it does not know is over, and what it says waits was not granted. */
  #reconcile(member: Member, { hello, waiting, flying, watch }: Hello): void {
    member.hello = hello
    member.turns = member.grants = 0
    member.early.clear()
    member.granted = []
    member.refused = []
    this.#watch(member, watch)
    const waits = new Set(waiting.map(nameOf))
    const flies = new Set(flying.map(nameOf))
    for (const held of member.requests.values()) {
      const name = nameOf(held)
      if (!(held.isFlying ? flies : waits).has(name)) this.#end(held, waits.has(name))
    }
  }

  /** A request that left: adopted if it is not known, and heard if it is over. */
  #fly(member: Member, flight: Flight, isNew: boolean): void {
    const { told } = flight
    if (told && isNew && flight.said && this.#isRemembered(member.id, flight.said)) return
    const known = member.requests.get(flight.id)
    if (known === undefined && (isNew || told === undefined)) {
      const { cost, priority, waited, sentAgo } = flight
      const options = { cost, priority, waited: Math.max(waited - sentAgo, 0) }
      try {
        // Later by the time of the way, as the memory may be: what is in doubt is counted.
        const ticket = this.#engine.adopt(this.now, this.#handlesOf(flight.names), sentAgo, options)
        this.#hold(member, flight, ticket, true)
      } catch {
        return // it makes no sense, and no harm
      }
    }
    if (told) this.#over(member, flight.id, flight.attempt, told)
  }

  /** One that its hello has not reached waits for it; so it does for the turns before it. */
  #turn(turn: Turn): void {
    const member = this.#members.get(turn.from)
    if (this.#stories || turn.hello !== member?.hello) {
      if (turn.hello >= (member?.hello ?? 0) && this.#ahead.length < MOST_AHEAD) this.#ahead.push(turn)
      return
    }
    if (turn.number <= member.turns) return
    member.early.set(turn.number, turn)
    for (let next = member.early.get(member.turns + 1); next; next = member.early.get(member.turns + 1)) {
      member.early.delete(next.number)
      member.turns = next.number
      for (const act of next.acts) {
        if (act[0] === 'ask') {
          const [, id, attempt, names, cost, priority, delay, waited] = act
          this.#ask(member, { id, attempt, names, cost, priority, delay, waited })
        } else if (act[0] === 'over') this.#over(member, act[1], act[2], act[3])
        else if (act[0] === 'order') {
          member.orders = act[1]
          if (act[2][0] === 'watch') this.#watch(member, act[2][1])
          else this.#orders.apply(act[2])
        } else if (act[0] === 'left') this.#left(member, act[1], act[2], act[3])
        else if (act[0] === 'cancel') {
          const held = member.requests.get(act[1])
          if (held) this.#end(held, true)
        }
      }
    }
  }

  /** It left later than it was granted: gaps count from there, though not from later than now. */
  #left(member: Member, id: number, attempt: number, late: number): void {
    const held = member.requests.get(id)
    if (held?.isFlying && held.attempt === attempt)
      this.#engine.left(Math.min(held.at + late, this.now), held.ticket)
  }

  #ask(member: Member, ask: Ask): void {
    const { names, waited, cost, priority, delay } = ask
    const options = { cost, priority, delay }
    try {
      const ticket = this.#engine.submitAgain(this.now, this.#handlesOf(names), waited, options)
      this.#driver.add(this.#hold(member, ask, ticket, false), undefined)
    } catch (error) {
      const refusal = refusalOf(ask.id, error)
      // More than this process's part of a quota: it waits for the way.
      if (this.#link.isAlone && refusal[1] === 'cost') return
      member.refused.push(refusal)
      this.#owed.add(member)
    }
  }

  /** The engine has it: so it is held here. */
  #hold(member: Member, ask: Pick<Ask, 'id' | 'attempt' | 'names'>, ticket: Ticket, isFlying: boolean): Held {
    const held = new Held(member, ask, ticket, isFlying, this.#owed)
    member.requests.set(ask.id, held)
    return held
  }

  /** The engine hears how it ended; if it says so, the request waits anew. */
  #over(member: Member, id: number, attempt: number, told: readonly number[]): void {
    const held = member.requests.get(id)
    if (!held?.isFlying || held.attempt !== attempt) return
    const numbers = numbersIn(told)
    renumber(numbers, (place) => this.#engine.intern(held.scopes[place] ?? ''))
    const settled = this.#engine.settleTold(this.now, held.ticket, numbers)
    if (this.#level === 2) this.#notice(member, told[1])
    if (settled !== 'again') {
      member.requests.delete(id)
      return
    }
    held.isFlying = false
    held.attempt++
    this.#driver.add(held, undefined)
  }

  /** It is over. What was granted has left and costs, unless its process says that it was not used. */
  #end(held: Held, isUnused = false): void {
    held.member.requests.delete(held.id)
    if (held.isFlying && !isUnused) this.#engine.settle(this.now, held.ticket)
    else {
      this.#driver.forget(held)
      this.#engine.cancel(this.now, held.ticket)
    }
  }

  #handlesOf(names: readonly string[]): ScopeHandle[] {
    return names.map((name) => this.#engine.intern(name))
  }

  /** As much is told of answers as anybody hears; and what is learned, for the next writer. */
  #watch(member: Member, level: 0 | 1 | 2): void {
    member.watch = level
    const levels = [...this.#members.values()].map(({ watch }) => watch)
    this.#level = Math.max(1, ...levels) as 1 | 2
    this.#engine.watch(this.#level)
  }

  #notice(member?: Member, latencyMs?: number): void {
    const notices = this.#engine.takeNotices()
    if (notices.length === 0) return
    const { id: from, epoch } = this.#link
    this.#link.tell({ type: 'tell', from, epoch, now: this.now, notices, of: member?.id, latencyMs })
    if (notices.some(({ kind }) => kind === 'hold' || kind === 'backoff')) this.#learned()
  }

  /** Something that the next writer should know. */
  #learned(): void {
    this.#cadence.hurry()
    this.#link.soon(20)
  }

  /** Everything that could be granted was: it is said, if it may be said. */
  #flush(): void {
    if (this.#owed.size === 0 || this.#isStopped) return
    if (!this.#link.isGood()) return
    const { id: from, epoch } = this.#link
    const offset = this.#link.offsetMs()
    const isAwaited = this.#engine.wakeAt < Number.POSITIVE_INFINITY || undefined
    const owed = [...this.#owed]
    this.#owed.clear()
    for (const member of owed) {
      const { id, hello, granted: ids, refused } = member
      member.granted = []
      member.refused = []
      const number = ++member.grants
      const at = offset !== undefined && ids.length > 0 ? member.grantedAt + offset : undefined
      this.#link.grant(id, { type: 'grant', from, epoch, hello, number, ids, refused, at, isAwaited })
    }
  }
}
