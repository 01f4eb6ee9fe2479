/**
 * Processes that share a limit, in virtual time: their clocks, the network between them, and the store that
 * elects. `crates/shared/tests/` plays the machine under faults; here it is the host around it.
 */

import { type Clock, createThrottle, type Throttle, type ThrottleOptions } from 'autothrottle'
import type { Shared } from '../../../js/core/host.js'
import { SharedHost } from '../../../js/shared/host.js'
import type { Lease, Offline, Peer, Transport } from '../../../js/shared/transport.js'
import { Dice } from '../serve.js'

interface Event {
  readonly at: number
  readonly order: number
  readonly run: () => void
  isCancelled: boolean
}

export class World {
  now = 1000
  /** Milliseconds of one way: the least, and how much more at most. */
  way: readonly [number, number] = [1, 0]
  readonly processes: Process[] = []
  readonly store = {
    ...{ epoch: 0, holder: '', until: 0, storedAt: 0 },
    stored: undefined as Uint8Array | undefined,
  }
  readonly dice: Dice
  /** The next is the last. */
  readonly #events: Event[] = []
  #order = 0

  constructor(seed: number) {
    this.dice = new Dice(seed)
  }

  after(ms: number, run: () => void): Event {
    const event = { at: this.now + Math.max(ms, 0), order: this.#order++, run, isCancelled: false }
    const isLater = (other: Event) =>
      other.at > event.at || (other.at === event.at && other.order > event.order)
    this.#events.splice(this.#events.findLastIndex(isLater) + 1, 0, event)
    return event
  }

  travel(run: () => void): void {
    this.after(this.way[0] + this.way[1] * this.dice.next(), run)
  }

  async run(ms: number): Promise<void> {
    const until = this.now + ms
    await turns()
    for (let event = this.#events.at(-1); event && event.at <= until; event = this.#events.at(-1)) {
      this.#events.pop()
      if (event.isCancelled) continue
      this.now = Math.max(this.now, event.at)
      event.run()
      // Whatever promises that resolves goes on before the next event.
      await turns()
    }
    this.now = until
  }
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 6; turn++) await undefined
}

/**
 * A process: its clock has an origin of its own, and may be hours apart. Its way is a store in memory, which
 * keeps the lease and compares it before it passes anything on.
 */
export class Process implements Transport {
  readonly leaseMs = 1500
  readonly id: string
  readonly clock: Clock
  readonly #world: World
  #peer: Peer | undefined
  /** Whether it is cut off from the store and all others. */
  #isCut = false

  constructor(world: World, place: number) {
    this.#world = world
    this.id = place.toString(16).padStart(32, '0')
    world.processes.push(this)
    const origin = world.dice.below(4) === 0 ? world.dice.below(1e7) : world.dice.below(1000)
    this.clock = {
      now: () => world.now + origin,
      wallNow: () => 1.7e12 + world.now + origin * 1000,
      setTimeout: (wake, ms) => world.after(ms, wake),
      clearTimeout: (timer) => {
        if (timer) (timer as Event).isCancelled = true
      },
    }
  }

  /** For a throttle: `createThrottle({ clock: process.clock, shared: process.shared() })`. */
  shared(offline: Offline = 'wait'): Shared {
    const settings = { offline, random: this.#world.dice.next, id: this.id }
    return { open: (context) => new SharedHost(this, context, settings) }
  }

  cut(ms: number): void {
    this.#isCut = true
    this.#world.after(ms, () => {
      this.#isCut = false
    })
  }

  open(peer: Peer): void {
    this.#peer = peer
    peer.opened()
  }

  compete(above: number): Promise<Lease | undefined> {
    return this.#ask(() => {
      const { store, now } = this.#world
      if (now < store.until) return undefined
      store.epoch = Math.max(store.epoch, above) + 1
      Object.assign(store, { holder: this.id, until: now + this.leaseMs })
      return { epoch: store.epoch, stored: store.stored, ageMs: now - store.storedAt }
    })
  }

  renew(epoch: number, stored: Uint8Array | undefined): Promise<boolean> {
    return this.#ask(() => this.#keeps(epoch, stored, this.leaseMs))
  }

  release(epoch: number, stored: Uint8Array | undefined): Promise<void> {
    return this.#ask(() => void this.#keeps(epoch, stored, 0))
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
    this.#world.after(0, done)
  }

  async close(): Promise<void> {
    this.#peer = undefined
  }

  /** As the scripts of Redis: the process that had it last has it still. */
  #keeps(epoch: number, stored: Uint8Array | undefined, forMs: number): boolean {
    const { store, now } = this.#world
    if (store.epoch !== epoch) return false
    store.until = now + forMs
    if (stored) Object.assign(store, { stored, storedAt: now })
    return true
  }

  /** To the store, and from there to others. */
  #send(isFor: (other: Process) => boolean, frame: Uint8Array, epoch?: number): void {
    const world = this.#world
    if (this.#isCut) return
    world.travel(() => {
      if (epoch !== undefined && epoch !== world.store.epoch)
        return world.travel(() => this.#peer?.fenced(epoch))
      for (const other of world.processes)
        if (isFor(other) && !other.#isCut)
          world.travel(() => {
            if (!other.#isCut) other.#peer?.received(frame)
          })
    })
  }

  /** A question to the store: both ways take time, and either may break. */
  #ask<T>(answer: () => T): Promise<T> {
    const world = this.#world
    return new Promise((resolve, reject) => {
      const broken = () => world.after(300, () => reject(new Error('the way is broken')))
      if (this.#isCut) return void broken()
      world.travel(() => {
        const given = answer()
        if (this.#isCut) broken()
        else world.travel(() => resolve(given))
      })
    })
  }
}

// Whole throttles of several processes that share a limit, in virtual time.

/** Throttles of several processes with the same options. */
export function throttles(
  count: number,
  options: ThrottleOptions,
  { offline = 'wait' as Offline } = {},
): { world: World; processes: Process[]; all: Throttle[] } {
  const world = new World(1)
  world.way = [2, 3]
  const processes = Array.from({ length: count }, (_, index) => new Process(world, index))
  const all = processes.map((process) =>
    createThrottle({ ...options, clock: process.clock, shared: process.shared(offline) }),
  )
  return { world, processes, all }
}

/** The state of a promise when the world has gone on for so long. */
export async function after<T>(world: World, ms: number, promise: Promise<T>): Promise<T | string> {
  let [state, value]: [string, unknown] = ['waits', undefined]
  promise.then(
    (given) => ([state, value] = ['given', given]),
    (error) => ([state, value] = ['failed', error]),
  )
  await world.run(ms)
  if (state === 'failed') throw value
  return state === 'given' ? (value as T) : state
}
