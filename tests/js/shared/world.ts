/**
 * Processes that share a limit, in virtual time: their clocks, the network between them, and the store that
 * elects. What the machine does under faults `shared/tests/` plays; here it is the host around it.
 */
import type { Clock, EngineOptions } from 'autothrottle'
import type { HostListener, Shared } from '../../../js/core/host.js'
import { SharedHost } from '../../../js/shared/host.js'
import type { Lease, Offline, Peer, Transport } from '../../../js/shared/transport.js'
import { Dice } from '../dice.js'

export const LEASE_MS = 1500

interface Event {
  readonly at: number
  readonly order: number
  readonly owner: Process | undefined
  readonly run: () => void
  isCancelled: boolean
}

/** What the network and the store do to what passes. */
export interface Faults {
  /** Milliseconds of one way: the least, and how much more at most. */
  way: readonly [number, number]
  loss: number
  doubled: number
}

/** A lease that went to another process than the one before, or to the same one again. */
export interface Takeover {
  readonly at: number
  readonly from: string
  readonly to: string
}

export class World {
  now = 1000
  readonly faults: Faults = { way: [1, 0], loss: 0, doubled: 0 }
  readonly processes: Process[] = []
  readonly store = {
    ...{ epoch: 0, holder: '', until: 0, storedAt: 0 },
    stored: undefined as Uint8Array | undefined,
  }
  /** The store has forgotten all, and only the process that wrote may have the lease yet. */
  isReserved = false
  readonly takeovers: Takeover[] = []
  readonly dice: Dice
  readonly #heap: Event[] = []
  #order = 0

  constructor(seed: number) {
    this.dice = new Dice(seed)
  }

  /** Calls `run` after so long, in its process's time: not while that is stopped, never when it is dead. */
  after(ms: number, owner: Process | undefined, run: () => void): Event {
    const event = { at: this.now + Math.max(ms, 0), order: this.#order++, owner, run, isCancelled: false }
    this.#push(event)
    return event
  }

  /** Something travels: it may be late, lost, or come twice. */
  travel(run: () => void, owner?: Process): void {
    const [least, more] = this.faults.way
    const { next } = this.dice
    if (this.faults.loss > 0 && next() < this.faults.loss) return
    const times = this.faults.doubled > 0 && next() < this.faults.doubled ? 2 : 1
    for (let time = 0; time < times; time++) this.after(least + more * next(), owner, run)
  }

  /** As a store that restarts with an empty memory. Messages pass. */
  forget(): void {
    Object.assign(this.store, { epoch: 0, until: 0, stored: undefined })
    this.isReserved = false
  }

  async run(ms: number): Promise<void> {
    const until = this.now + ms
    await turns()
    for (let event = this.#heap[0]; event && event.at <= until; event = this.#heap[0]) {
      this.#pop()
      if (event.isCancelled || event.owner?.isDead) continue
      const asleep = event.owner?.stoppedUntil ?? 0
      if (asleep > event.at) {
        this.#push({ ...event, at: asleep, order: this.#order++ })
        continue
      }
      this.now = event.at
      event.run()
      // Whatever promises that resolves goes on before the next event.
      await turns()
    }
    this.now = until
  }

  #push(event: Event): void {
    const heap = this.#heap
    let at = heap.push(event) - 1
    while (at > 0) {
      const above = (at - 1) >> 1
      if (isBefore(heap[above]!, event)) break
      heap[at] = heap[above]!
      at = above
    }
    heap[at] = event
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()!
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= heap.length) break
      if (below + 1 < heap.length && isBefore(heap[below + 1]!, heap[below]!)) below++
      if (isBefore(last, heap[below]!)) break
      heap[at] = heap[below]!
      at = below
    }
    heap[at] = last
  }
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 6; turn++) await undefined
}

const isBefore = (one: Event, other: Event) =>
  one.at < other.at || (one.at === other.at && one.order < other.order)

/** A process: its clock has an origin of its own, and may be hours apart. */
export class Process {
  readonly id: string
  readonly world: World
  readonly clock: Clock
  readonly host: SharedHost
  isDead = false
  stoppedUntil = 0
  cutUntil = 0
  /** Whether it is cut off from the store and all others. */
  isCut = false
  peer: Peer | undefined
  readonly #random: () => number

  constructor(world: World, place: number, options: EngineOptions, offline: Offline = 'wait') {
    this.world = world
    this.id = place.toString(16).padStart(32, '0')
    world.processes.push(this)
    const origin = world.dice.below(4) === 0 ? world.dice.below(1e7) : world.dice.below(1000)
    this.clock = {
      now: () => world.now + origin,
      wallNow: () => 1.7e12 + world.now + origin * 1000,
      setTimeout: (wake, ms) => world.after(ms, this, wake),
      clearTimeout: (timer) => {
        if (timer) (timer as Event).isCancelled = true
      },
    }
    const context = { options, snapshot: undefined, clock: this.clock, idleClock: this.clock }
    this.#random = world.dice.next
    this.host = new SharedHost(this.#transport(), context, { offline, random: this.#random, id: this.id })
  }

  /** The same way for a whole throttle: `createThrottle({ clock: process.clock, shared })`. */
  shared(offline: Offline = 'wait', members?: number): Shared {
    const { id } = this
    const settings = { offline, members, random: this.#random, id }
    return { open: (context) => new SharedHost(this.#transport(), context, settings) }
  }

  #transport(): MemoryTransport {
    return new MemoryTransport(this)
  }

  /** As `kill -9`. */
  kill(): void {
    this.isDead = true
  }

  /** As SIGSTOP, and SIGCONT after so long. */
  stop(ms: number): void {
    this.stoppedUntil = Math.max(this.stoppedUntil, this.world.now + ms)
  }

  cut(ms: number): void {
    this.isCut = true
    this.cutUntil = Math.max(this.cutUntil, this.world.now + ms)
    this.world.after(ms, undefined, () => {
      this.isCut = this.world.now < this.cutUntil
    })
  }

  /** Calls `work` for each request that may leave, as a driver does. */
  listen(work: (ticket: number) => void, more: Partial<HostListener> = {}): () => void {
    let timer: unknown
    const drain = () => {
      if (timer) this.clock.clearTimeout(timer)
      let ticket = this.host.poll(this.clock.now())
      for (; ticket >= 0; ticket = this.host.poll(this.clock.now())) work(ticket)
      const ms = this.host.wakeAt - this.clock.now()
      timer = ms < 1e9 ? this.clock.setTimeout(drain, ms) : undefined
    }
    this.host.listen({ changed: drain, fail: () => {}, warn: () => {}, shared: () => {}, ...more })
    return drain
  }
}

/** The way through a store in memory, which keeps the lease and compares it before it passes anything on. */
class MemoryTransport implements Transport {
  readonly leaseMs = LEASE_MS
  readonly #process: Process
  readonly #world: World

  constructor(process: Process) {
    this.#process = process
    this.#world = process.world
  }

  open(peer: Peer): void {
    this.#process.peer = peer
    peer.opened()
  }

  compete(above: number): Promise<Lease | undefined> {
    return this.#ask(() => {
      const { store, now } = this.#world
      if (now < store.until && store.epoch >= above) return undefined
      const isHeard = this.#world.processes.some(({ isDead, host }) => !isDead && host.shared.isWriter)
      if (store.epoch < above || (store.epoch === 0 && above === 0 && isHeard)) {
        Object.assign(store, { epoch: above, until: now + LEASE_MS })
        this.#world.isReserved = true
        return undefined
      }
      this.#world.isReserved = false
      store.epoch = Math.max(store.epoch, above) + 1
      const { id: to } = this.#process
      if (store.holder !== '') this.#world.takeovers.push({ at: now, from: store.holder, to })
      store.holder = to
      store.until = now + LEASE_MS
      return { epoch: store.epoch, stored: store.stored, ageMs: now - store.storedAt }
    })
  }

  renew(epoch: number, stored: Uint8Array | undefined): Promise<boolean> {
    return this.#ask(() => {
      if (!this.#isGood(epoch)) return false
      const { store, now } = this.#world
      store.until = now + LEASE_MS
      if (stored) Object.assign(store, { stored, storedAt: now })
      return true
    })
  }

  release(epoch: number, stored: Uint8Array | undefined): Promise<void> {
    return this.#ask(() => {
      const { store, now } = this.#world
      if (!this.#isGood(epoch)) return
      store.until = now
      if (stored) Object.assign(store, { stored, storedAt: now })
    })
  }

  toLeader(frame: Uint8Array): void {
    this.#send((other) => other.id === this.#world.store.holder, frame)
  }

  toMember(epoch: number, id: string, frame: Uint8Array): void {
    this.#send((other) => other.id === id, frame, epoch)
  }

  toAll(epoch: number, frame: Uint8Array): void {
    this.#send(() => true, frame, epoch)
  }

  reconnect(): void {}

  afterTurn = (done: () => void): void => {
    this.#world.after(0, this.#process, done)
  }

  async close(): Promise<void> {
    this.#process.peer = undefined
  }

  /** As the scripts of Redis: the process that had it last has it still. */
  #isGood(epoch: number): boolean {
    const { store, now, isReserved } = this.#world
    if (store.epoch === epoch && now < store.until && !isReserved) return true
    if (store.epoch > epoch || (now < store.until && !isReserved)) return false
    Object.assign(store, { epoch, holder: this.#process.id, until: now + LEASE_MS })
    this.#world.isReserved = false
    return true
  }

  /** To the store, and from there to others. */
  #send(isFor: (other: Process) => boolean, frame: Uint8Array, epoch?: number): void {
    if (this.#process.isCut) return
    this.#world.travel(() => {
      if (epoch !== undefined && !this.#isGood(epoch))
        return this.#world.travel(() => this.#process.peer?.fenced(epoch), this.#process)
      for (const other of this.#world.processes)
        if (isFor(other) && !other.isCut)
          this.#world.travel(() => {
            if (!other.isCut) other.peer?.received(frame)
          }, other)
    })
  }

  /** A question to the store: both ways take time, and either may break. */
  #ask<T>(answer: () => T): Promise<T> {
    const [process, world] = [this.#process, this.#world]
    const [least, more] = world.faults.way
    return new Promise((resolve, reject) => {
      const broken = () => world.after(300, process, () => reject(new Error('the way is broken')))
      const isBroken = () => process.isCut || world.dice.next() < world.faults.loss
      if (isBroken()) return void broken()
      world.after(least + more * world.dice.next(), undefined, () => {
        const given = answer()
        if (isBroken()) return void broken()
        world.after(least + more * world.dice.next(), process, () => resolve(given))
      })
    })
  }
}
