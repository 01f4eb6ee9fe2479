/**
 * The requests of one process, and what its writer has to be told of them.
 *
 * The trap is another process that remembers for us: it may be gone. So everything is kept here until it is
 * over, and beyond that until the writer's memory of it has been heard in a beat; and whenever something may
 * have been lost, the whole story is told again (`hello`).
 */
import { LATE_MS } from '../core/driver.js'
import { IDLE, WAIT } from '../wasm/engine.js'
import type { Ticket } from '../wasm/types.js'
import type { Act, Ask, Beat, Flight, FromMember, Grant, Order, Refusal, ToWriter } from './messages.js'

/** Where the delay of the next attempt stands in what the engine is told. */
const RETRY_DELAY = 4
/** Where leave is later by this part of a lease, only one of those that are due is used. */
const LATE = 1 / 6
/** So late it is said also where nobody waits for the time after it, in milliseconds. */
const QUITE_LATE_MS = 20
/** No grant is made farther ahead, in milliseconds: a store's clock that was set would hold it for long. */
const FARTHEST_MS = 1000

/**
 * A request of a story takes so long to be told and heard, in milliseconds, on a machine that has much to
 * do.
 */
const TELL_MS = 0.05

/** What no memory is known to have is kept for so many leases. */
const LONGEST_LEASES = 20

interface Pending {
  readonly id: Ticket
  readonly names: readonly string[]
  readonly cost: number | readonly number[]
  readonly priority: number
  /** Since when it waits. */
  readonly since: number
  attempt: number
  /** Its own delay ends then. */
  notBefore: number
  state: 'waiting' | 'granted' | 'flying'
  /** When it is to leave, or left. */
  sentAt: number
  /** When it was to leave. */
  dueAt: number
  /** Whether somebody waits for the time after it. */
  isAwaited: boolean
}

/** What is over, or was ordered, and may not be in anybody's memory yet. */
interface Kept<T> {
  readonly what: T
  readonly at: number
  /** The hello and the turn that said so first. */
  readonly hello: number
  readonly first: number
  /** The turn of this hello that said so; 0 if the hello did. */
  turn: number
  /** Whether a beat came with a memory that has it. */
  isRemembered: boolean
}

/** What is said, without who says it, to whom, and after which story. */
type Told<T> = T extends FromMember ? Omit<T, keyof FromMember> : never

/** What was heard of the writer, and when. */
export interface Memory {
  readonly text: string
  readonly at: number
}

/** What the member needs of its process. */
export interface MemberLink {
  readonly id: string
  readonly hash: string
  now(): number
  /** Milliseconds that the group's clock is ahead. */
  offsetMs(): number | undefined
  /** When this turn of the event loop is over. */
  afterTurn(done: () => void): void
  /** To the writer; here, if this process writes. */
  send(message: ToWriter): void
  /** Somebody may leave, or was refused. */
  changed(refused: readonly Refusal[]): void
}

export class Member {
  /** What was last heard of the writer's memory, and when; for whoever writes next. */
  memory: Memory | undefined
  /** What was last heard of its statistics. */
  seen: Memory | undefined
  /** After `poll` gave {@link WAIT}: when to ask again. */
  wakeAt = Number.POSITIVE_INFINITY
  watch: 0 | 1 | 2 = 0
  /** Whether somebody waits for the time after what was granted last. */
  isAwaited = false
  inFlight = 0
  readonly #link: MemberLink
  readonly #leaseMs: number
  readonly #requests = new Map<Ticket, Pending>()
  /** Those that were granted and have not left; the earliest first. */
  readonly #granted: Pending[] = []
  #over: Kept<{ request: Pending; told: readonly number[] }>[] = []
  #orders: Kept<readonly [number: number, Order]>[] = []
  #ordered = 0
  #acts: Act[] = []
  /** Those that left late in this turn. */
  readonly #late = new Set<Pending>()
  #isFlushing = false
  #last = -1
  #epoch = 0
  #hello = 0
  #helloAt = Number.NEGATIVE_INFINITY
  #turn = 0
  /** Turns that were said, and grants that were told of, when the last beat came. */
  #turnsBefore = 0
  #grantsBefore = 0
  /** Grants heard of this hello. */
  readonly #grants = new Set<number>()

  constructor(link: MemberLink, leaseMs: number) {
    this.#link = link
    this.#leaseMs = leaseMs
  }

  /** Of the writer that is asked; 0 before there is one. */
  get epoch(): number {
    return this.#epoch
  }

  /** How many have not left. */
  get waiting(): number {
    return this.#requests.size - this.inFlight
  }

  submit(names: readonly string[], ask: Pick<Pending, 'cost' | 'priority'> & { delay: number }): Ticket {
    const now = this.#link.now()
    const { cost, priority, delay } = ask
    const id = ++this.#last
    // Written out: an object that is put together of others took ten microseconds here.
    this.#requests.set(id, {
      id,
      names,
      cost,
      priority,
      since: now,
      attempt: 0,
      notBefore: now + delay,
      state: 'waiting',
      sentAt: Number.NaN,
      dueAt: Number.NaN,
      isAwaited: false,
    })
    this.#say(['ask', id, 0, names, cost, priority, delay, 0])
    return id
  }

  /** A ticket that may leave now, {@link WAIT} or {@link IDLE}. */
  poll(now: number): Ticket {
    const first = this.#granted[0]
    this.wakeAt = first?.sentAt ?? Number.POSITIVE_INFINITY
    if (first === undefined) return IDLE
    if (first.sentAt > now) return WAIT
    const late = now - first.sentAt
    if (late > this.#leaseMs) {
      this.#wakeUp()
      return IDLE
    }
    this.#granted.shift()
    first.state = 'flying'
    this.inFlight++
    this.#leave(first, now)
    // All at once would be a burst; none at all would be for ever where a machine has too much to do.
    if (late > LATE * this.#leaseMs && this.#granted.length > 0) this.#wakeUp()
    return first.id
  }

  /** A request leaves only now: what the writer grants next counts from here. */
  left(now: number, id: Ticket): void {
    const request = this.#requests.get(id)
    if (request?.state === 'flying') this.#leave(request, now)
  }

  #leave(request: Pending, now: number): void {
    request.sentAt = now
    const late = now - request.dueAt
    // Where nobody waits for the time after it, quotas still have to know of one that is noticeably late.
    if (late >= (request.isAwaited ? LATE_MS : QUITE_LATE_MS)) {
      this.#late.add(request)
      this.#soon()
    }
  }

  /** It ended. Whether it waits anew is in what the engine is told. False if it was not in flight. */
  settle(id: Ticket, told: readonly number[]): boolean {
    const request = this.#requests.get(id)
    if (request?.state !== 'flying') return false
    this.#say(['over', id, request.attempt, told])
    this.inFlight--
    const delay = told[RETRY_DELAY] ?? Number.NaN
    const isOver = Number.isNaN(delay)
    const over = isOver ? told : told.with(RETRY_DELAY, Number.NaN)
    this.#over.push(this.#kept({ request: { ...request }, told: over }))
    if (isOver) this.#requests.delete(id)
    else {
      request.attempt++
      request.state = 'waiting'
      request.notBefore = this.#link.now() + delay
    }
    return true
  }

  cancel(id: Ticket): void {
    const request = this.#requests.get(id)
    if (request === undefined) return
    this.#forget(request)
    this.#say(['cancel', id])
  }

  order(order: Order): void {
    const number = ++this.#ordered
    this.#orders.push(this.#kept([number, order]))
    this.#say(['order', number, order])
  }

  isFlying(id: Ticket): boolean {
    return this.#requests.get(id)?.state === 'flying'
  }

  namesOf(id: Ticket): readonly string[] {
    return this.#requests.get(id)?.names ?? []
  }

  /** A ticket of everybody who waits. */
  everybody(): Ticket[] {
    return [...this.#requests.values()].filter(({ state }) => state === 'waiting').map(({ id }) => id)
  }

  /** Another writer. Everything is said again; what was granted and has not left keeps its leave. */
  enter(epoch: number): void {
    if (epoch <= this.#epoch) return
    this.#epoch = epoch
    this.sayHello()
  }

  /** Back from alone: the writer before it may be there still, and is told when it beats. */
  retreat(): void {
    this.#epoch = Math.floor(this.#epoch)
    this.#hello++
  }

  /** The whole story. Grants that answer an older one are not heard. */
  sayHello(): void {
    const now = this.#link.now()
    this.#hello++
    this.#helloAt = now
    this.#acts = []
    this.#late.clear()
    this.#turn = this.#turnsBefore = this.#grantsBefore = 0
    this.#grants.clear()
    for (const kept of [...this.#over, ...this.#orders]) kept.turn = 0
    const waiting: Ask[] = []
    const flying: Flight[] = this.#over.map(({ what: { request, told }, hello, first }) => ({
      ...this.#flight(request, now),
      told,
      said: [hello, first],
    }))
    for (const request of this.#requests.values())
      if (request.state === 'waiting') waiting.push(this.#ask(request, now))
      else flying.push(this.#flight(request, now))
    const orders = this.#orders.map(({ what, at }) => [what[0], now - at, what[1]] as const)
    this.#tell({ type: 'hello', waiting, flying, orders, hash: this.#link.hash, watch: this.watch })
  }

  /** It is there. */
  ping(type: 'ping' | 'bye' = 'ping'): void {
    this.#tell({ type })
  }

  onGrant({ epoch, hello, number, ids, refused, at, isAwaited }: Grant): void {
    if (epoch !== this.#epoch || hello !== this.#hello || this.#grants.has(number)) return
    const now = this.#link.now()
    const offset = this.#link.offsetMs()
    const then = at === undefined || offset === undefined ? now : at - offset
    if (now - then > this.#leaseMs) {
      // As if it were lost.
      this.#tellAgain(now)
      return
    }
    this.#grants.add(number)
    const sentAt = Math.min(then, now + FARTHEST_MS)
    this.isAwaited = isAwaited === true
    for (let each = 0; each < ids.length; each += 2) {
      const request = this.#requests.get(ids[each]!)
      if (request?.state !== 'waiting' || request.attempt !== ids[each + 1]) continue
      request.state = 'granted'
      request.sentAt = sentAt
      request.dueAt = then
      request.isAwaited = this.isAwaited
      const place = this.#granted.findLastIndex((other) => other.sentAt <= sentAt)
      this.#granted.splice(place + 1, 0, request)
    }
    const wanted = refused.filter(([id]) => this.#requests.get(id)?.state === 'waiting')
    for (const [id] of wanted) this.#forget(this.#requests.get(id)!)
    this.#link.changed(wanted)
  }

  /** The writer is there. Tells it everything again where one of both has missed something. */
  onBeat({ members, state, seen }: Beat): void {
    const now = this.#link.now()
    if (state !== undefined) this.memory = { text: state, at: now }
    if (seen !== undefined) this.seen = { text: seen, at: now }
    const [hello, turns, grants] = members[this.#link.id] ?? [0, 0, 0]
    if (hello !== this.#hello) {
      this.#tellAgain(now)
      return
    }
    // Whoever writes next may have missed this beat: so it is kept for two more.
    const [soon, late] = [now - 2 * this.#leaseMs, now - LONGEST_LEASES * this.#leaseMs]
    const isNeeded = <T>(kept: Kept<T>) => {
      if (state !== undefined && kept.turn <= turns) kept.isRemembered = true
      return kept.at > (kept.isRemembered ? soon : late)
    }
    this.#over = this.#over.filter(isNeeded)
    this.#orders = this.#orders.filter(isNeeded)
    const isMissing = turns < this.#turnsBefore || this.#grants.size < this.#grantsBefore
    this.#turnsBefore = this.#turn
    this.#grantsBefore = grants
    if (isMissing) this.sayHello()
  }

  /** Not again and again while the answer is on its way, which takes longer where there is much to tell. */
  #tellAgain(now: number): void {
    if (now - this.#helloAt >= this.#leaseMs / 20 + TELL_MS * this.#requests.size) this.sayHello()
  }

  /** It slept for so long that others have gone on, or its grants were taken back: they wait again. */
  #wakeUp(): void {
    for (const request of this.#granted.splice(0)) request.state = 'waiting'
    this.wakeAt = Number.POSITIVE_INFINITY
    this.sayHello()
  }

  #forget(request: Pending): void {
    this.#requests.delete(request.id)
    if (request.state === 'flying') this.inFlight--
    if (request.state === 'granted') this.#granted.splice(this.#granted.indexOf(request), 1)
  }

  #kept<T>(what: T): Kept<T> {
    const turn = this.#turn + 1
    return { what, at: this.#link.now(), hello: this.#hello, first: turn, turn, isRemembered: false }
  }

  /** Whatever happens in one turn of the event loop is one message. */
  #say(act: Act): void {
    this.#acts.push(act)
    this.#soon()
  }

  #soon(): void {
    if (this.#isFlushing) return
    this.#isFlushing = true
    this.#link.afterTurn(() => {
      this.#isFlushing = false
      this.flush()
    })
  }

  /** Says what has not been said yet. */
  flush(): void {
    for (const { id, attempt, sentAt, dueAt } of this.#late)
      this.#acts.unshift(['left', id, attempt, sentAt - dueAt])
    this.#late.clear()
    const acts = this.#acts
    if (acts.length === 0) return
    this.#acts = []
    this.#tell({ type: 'turn', number: ++this.#turn, acts })
  }

  /** Before there is a writer nobody is told: the first hello will say it. */
  #tell(said: Told<ToWriter>): void {
    const head = { from: this.#link.id, epoch: this.#epoch, hello: this.#hello }
    if (this.#epoch > 0) this.#link.send({ ...head, ...said } as ToWriter)
  }

  #ask({ id, attempt, names, cost, priority, since, notBefore }: Pending, now: number): Ask {
    const delay = Math.max(notBefore - now, 0)
    return { id, attempt, names, cost, priority, delay, waited: now - since }
  }

  #flight(request: Pending, now: number): Flight {
    const sentAgo = request.state === 'granted' ? 0 : Math.max(now - request.sentAt, 0)
    return { ...this.#ask(request, now), delay: 0, sentAgo }
  }
}
