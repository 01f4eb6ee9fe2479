/**
 * The object's side: it always leads, since the platform runs one object of a name at a time.
 *
 * 1. A Worker joins and gets a seat. The leader gets what it says by the seat; what the leader says
 *    waits in a mailbox until the Worker asks.
 * 2. A Worker that ends, throws or is cancelled lets go of its seat, and the platform disposes of it: its
 *    places are free at once. No request waits for a lease.
 * 3. The learned state is stored once a second at most, but where a strict quota waits for it: each write
 *    costs. Messages are not held back meanwhile (`allowUnconfirmed`). The next object, after a deploy or an
 *    eviction, goes on from there.
 *
 * The object sleeps: ten seconds after the last Worker has left, no timer is armed.
 */

import { systemClock } from '../../base/clock.js'
import type { HostContext } from '../../core/host.js'
import type { Clock, EngineOptions } from '../../options/options.js'
import type { Stats } from '../../wasm/types.js'
import { SharedHost } from '../host.js'
import { afterTurn, type Lease, type Peer, type Transport } from '../transport.js'

/** The messages to a Worker that it has not taken yet. */
class Mailbox {
  #frames: Uint8Array[] = []
  #asked: ((frames: Uint8Array[]) => void) | undefined

  push(frame: Uint8Array): void {
    this.#frames.push(frame)
    this.#asked?.(this.#take())
    this.#asked = undefined
  }

  /** The messages there are, or the next ones. */
  hear(): Promise<Uint8Array[]> {
    if (this.#frames.length > 0) return Promise.resolve(this.#take())
    return new Promise((resolve) => {
      this.#asked = resolve
    })
  }

  #take(): Uint8Array[] {
    return this.#frames.splice(0)
  }
}

interface Storage {
  get(key: string): Promise<unknown>
  get(keys: string[]): Promise<Map<string, unknown>>
  put(entries: Record<string, unknown>, options?: { allowUnconfirmed?: boolean }): Promise<void>
}

/** The parts of an object's state that this file uses. */
export interface ObjectState {
  readonly storage: Storage
}

/** It may be silent for that long before a Worker asks whether it is there, in milliseconds. */
export const LEASE_MS = 3000
const LINGER_MS = 10_000
/** A value of Cloudflare's storage takes 128 KiB. */
const PART = 120_000
/** The most values of one put. */
const MOST_PARTS = 100
const [KEPT, PARTS] = ['autothrottle:kept', 'autothrottle:state:']

/** Statistics, with the instant at which they were taken. */
export interface Seen {
  readonly now: number
  readonly stats: Stats
}

interface Stored {
  readonly epoch: number
  readonly at: number
  /** A state that fits here takes no other row. */
  readonly bytes?: Uint8Array
  readonly parts: number
}

class ObjectTransport implements Transport {
  readonly leaseMs = LEASE_MS
  readonly keepMs = 1000
  /** Calls to an object that has ended are rejected at once. */
  readonly isPrompt = true
  readonly mailboxes = new Map<string, Mailbox>()
  readonly #storage: Storage
  readonly #clock: Clock
  peer!: Peer
  #epoch = 0
  /** The last message to all: a Worker that joins gets it first. */
  last: Uint8Array | undefined
  #announce!: () => void
  /** It leads: it has sent its first message to all. */
  readonly leads = new Promise<void>((resolve) => {
    this.#announce = resolve
  })

  constructor(storage: Storage, clock: Clock) {
    this.#storage = storage
    this.#clock = clock
  }

  open(peer: Peer): void {
    this.peer = peer
    peer.opened()
  }

  async compete(above: number): Promise<Lease> {
    const kept = (await this.#storage.get(KEPT)) as Stored | undefined
    const names = Array.from({ length: kept?.parts ?? 0 }, (_, part) => PARTS + part)
    const parts = names.length > 0 ? await this.#storage.get(names) : new Map<string, unknown>()
    const stored = kept?.bytes ?? joined(names.map((name) => parts.get(name)))
    this.#epoch = Math.max(kept?.epoch ?? 0, above) + 1
    // Before anything is granted: an epoch is never used twice.
    await this.#storage.put({ [KEPT]: { at: 0, parts: 0, ...kept, epoch: this.#epoch } })
    const ageMs = Math.max(this.#clock.wallNow() - (kept?.at ?? 0), 0)
    return { epoch: this.#epoch, isFirst: kept === undefined, stored, ageMs }
  }

  async renew(_: number, store: Uint8Array | undefined): Promise<boolean> {
    if (store) await this.#save(store)
    return true
  }

  async release(_: number, store: Uint8Array | undefined): Promise<void> {
    if (store) await this.#save(store)
  }

  toLeader(frame: Uint8Array): void {
    afterTurn(() => this.peer.received(frame))
  }

  toMember(epoch: number, id: string, frame: Uint8Array): void {
    const mailbox = this.mailboxes.get(id)
    if (mailbox) mailbox.push(frame)
    else queueMicrotask(() => this.peer.unheard(id, epoch))
  }

  toAll(_: number, frame: Uint8Array): void {
    this.last = frame
    this.#announce()
    for (const mailbox of this.mailboxes.values()) mailbox.push(frame)
    this.toLeader(frame)
  }

  reconnect(): void {}

  async close(): Promise<void> {}

  remove(id: string): void {
    if (this.mailboxes.delete(id)) this.peer?.gone(id)
  }

  async #save(bytes: Uint8Array): Promise<void> {
    const parts = bytes.length <= PART ? 0 : Math.ceil(bytes.length / PART)
    // A larger state is not stored, but learned anew.
    if (parts > MOST_PARTS) return
    const kept: Stored = { epoch: this.#epoch, at: this.#clock.wallNow(), parts }
    const entries: Record<string, unknown> = { [KEPT]: parts === 0 ? { ...kept, bytes } : kept }
    for (let part = 0; part < parts; part++)
      entries[PARTS + part] = bytes.slice(part * PART, (part + 1) * PART)
    await this.#storage.put(entries, { allowUnconfirmed: true })
  }
}

export class Room {
  readonly #transport: ObjectTransport
  readonly #host: SharedHost
  readonly #clock: Clock
  readonly #isOver: () => void
  #emptySince = 0

  /** @param isOver called when no Worker was there for a while, and all state is stored. */
  constructor(storage: Storage, options: EngineOptions, isOver: () => void) {
    this.#isOver = isOver
    // An object may resolve what another caller waits for: one timer serves all.
    this.#clock = { ...systemClock(false), isPerRequest: false }
    this.#transport = new ObjectTransport(storage, this.#clock)
    const context: HostContext = { options, snapshot: undefined, clock: this.#clock, idleClock: this.#clock }
    this.#host = new SharedHost(this.#transport, context, { offline: 'wait' })
    const nothing = () => {}
    const warn = (code: string, message: string) => console.warn(`autothrottle: ${message} (${code})`)
    this.#host.listen({ changed: nothing, fail: nothing, shared: nothing, warn })
    this.#host.open()
    this.#watch()
  }

  join(id: string): void {
    const mailbox = new Mailbox()
    this.#transport.mailboxes.set(id, mailbox)
    const { last } = this.#transport
    if (last !== undefined) mailbox.push(last)
  }

  hear(id: string): Promise<Uint8Array[]> {
    return this.#transport.mailboxes.get(id)?.hear() ?? Promise.reject(new Error('the seat was left'))
  }

  say(frame: Uint8Array): void {
    this.#transport.peer.received(frame)
  }

  remove(id: string): void {
    this.#transport.remove(id)
  }

  /** With the instant of the object's clock. */
  async stats(): Promise<Seen> {
    await this.#transport.leads
    const now = this.#clock.now()
    return { now, stats: this.#host.stats(undefined, now) }
  }

  #watch(): void {
    this.#clock.setTimeout(async () => {
      const now = this.#clock.now()
      if (this.#transport.mailboxes.size > 0) this.#emptySince = now
      if (now - this.#emptySince < LINGER_MS) return this.#watch()
      this.#isOver()
      await this.#host.close()
    }, LINGER_MS / 2)
  }
}

/** Parts in one; `undefined` if one is missing. */
function joined(parts: readonly unknown[]): Uint8Array | undefined {
  if (parts.length === 0 || !parts.every((part) => part instanceof Uint8Array)) return undefined
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}
