/**
 * The object's side: it always writes, since the platform runs one object of a name at a time.
 *
 * 1. A Worker joins and gets a seat. What it says by the seat is heard by the writer; what the writer says
 *    waits in a mailbox until the Worker asks.
 * 2. A Worker that ends, throws or is cancelled lets go of its seat, and the platform disposes of it: its
 *    places are free at once. Nothing waits for a lease.
 * 3. What was learned is stored once a second at most, without holding back what is sent meanwhile
 *    (`allowUnconfirmed`): the next object, after a deploy or an eviction, goes on from there.
 *
 * The trap is an object that never sleeps: ten seconds after the last Worker has left, no timer is armed.
 */

import { systemClock } from '../../base/clock.js'
import type { HostContext } from '../../core/host.js'
import type { Clock, EngineOptions } from '../../options/options.js'
import { Group } from '../group.js'
import type { Seen } from '../messages.js'
import type { Lease, Peer, Transport } from '../transport.js'

/** What was said to a Worker and not heard yet. */
class Mailbox {
  #texts: string[] = []
  #asked: ((texts: string[]) => void) | undefined

  push(text: string): void {
    this.#texts.push(text)
    this.#asked?.(this.#take())
    this.#asked = undefined
  }

  /** What there is, or will be. */
  hear(): Promise<string[]> {
    if (this.#texts.length > 0) return Promise.resolve(this.#take())
    return new Promise((resolve) => {
      this.#asked = resolve
    })
  }

  #take(): string[] {
    return this.#texts.splice(0)
  }
}

interface Storage {
  get(key: string): Promise<unknown>
  get(keys: string[]): Promise<Map<string, unknown>>
  put(entries: Record<string, unknown>, options?: { allowUnconfirmed?: boolean }): Promise<void>
}

/** What an object is made with, as far as it is used. */
export interface ObjectState {
  readonly storage: Storage
}

/** Says nothing by itself for so long before a Worker asks whether it is there, in milliseconds. */
export const LEASE_MS = 3000
const KEEP_MS = 900
const LINGER_MS = 10_000
/** A value of Cloudflare's storage takes 128 KiB, and a character three bytes at most. */
const PART = 40_000
/** A put takes so many values. */
const MOST_PARTS = 100
const [KEPT, PARTS] = ['autothrottle:kept', 'autothrottle:state:']

interface Kept {
  readonly epoch: number
  readonly at: number
  readonly parts: number
}

class ObjectTransport implements Transport {
  readonly leaseMs = LEASE_MS
  /** What a Worker asks of an object that has ended is rejected at once. */
  readonly isPrompt = true
  readonly mailboxes = new Map<string, Mailbox>()
  readonly #storage: Storage
  readonly #clock: Clock
  peer!: Peer
  #epoch = 0
  #keptAt = Number.NEGATIVE_INFINITY
  /** What it said to all last: whoever joins hears it first. */
  last: string | undefined
  #said!: () => void
  /** It writes: it has said so. */
  readonly writes = new Promise<void>((resolve) => {
    this.#said = resolve
  })

  constructor(storage: Storage, clock: Clock) {
    this.#storage = storage
    this.#clock = clock
  }

  open(peer: Peer): void {
    this.peer = peer
  }

  async compete(known: number): Promise<Lease> {
    const kept = (await this.#storage.get(KEPT)) as Kept | undefined
    const names = Array.from({ length: kept?.parts ?? 0 }, (_, part) => PARTS + part)
    const parts = names.length > 0 ? await this.#storage.get(names) : new Map<string, unknown>()
    const state = names.map((name) => parts.get(name) ?? '').join('')
    this.#epoch = Math.max(kept?.epoch ?? 0, known) + 1
    // Before anything is granted: an epoch is never used twice.
    await this.#storage.put({ [KEPT]: { epoch: this.#epoch, at: kept?.at ?? 0, parts: names.length } })
    const stateAgeMs = Math.max(this.#clock.wallNow() - (kept?.at ?? 0), 0)
    return { epoch: this.#epoch, isFirst: kept === undefined, ...(state && { state, stateAgeMs }) }
  }

  async renew(_: Lease, state: string | undefined): Promise<boolean> {
    if (state !== undefined && this.#clock.now() - this.#keptAt >= KEEP_MS) this.#keep(state).catch(() => {})
    return true
  }

  async release(_: Lease, state: string): Promise<void> {
    if (state) await this.#keep(state)
  }

  toWriter(): void {}

  toMember(_: Lease, id: string, text: string): void {
    this.mailboxes.get(id)?.push(text)
  }

  toAll(_: Lease, text: string): void {
    this.last = text
    this.#said()
    for (const mailbox of this.mailboxes.values()) mailbox.push(text)
  }

  async close(): Promise<void> {}

  leave(id: string): void {
    if (this.mailboxes.delete(id)) this.peer?.gone(id)
  }

  async #keep(state: string): Promise<void> {
    this.#keptAt = this.#clock.now()
    const parts = Math.ceil(state.length / PART)
    // What is larger is learned anew.
    if (parts > MOST_PARTS) return
    const kept: Kept = { epoch: this.#epoch, at: this.#clock.wallNow(), parts }
    const entries: Record<string, unknown> = { [KEPT]: kept }
    for (let part = 0; part < parts; part++)
      entries[PARTS + part] = state.slice(part * PART, (part + 1) * PART)
    await this.#storage.put(entries, { allowUnconfirmed: true })
  }
}

export class Room {
  readonly #transport: ObjectTransport
  readonly #group: Group
  readonly #clock: Clock
  readonly #isOver: () => void
  #emptySince = 0

  /** @param isOver called when nobody was there for a while, and everything is stored. */
  constructor(storage: Storage, options: EngineOptions, isOver: () => void) {
    this.#isOver = isOver
    // An object may resolve what another caller waits for: one timer serves all.
    this.#clock = { ...systemClock(false), isPerRequest: false }
    this.#transport = new ObjectTransport(storage, this.#clock)
    const context: HostContext = { options, snapshot: undefined, clock: this.#clock, idleClock: this.#clock }
    const link = {
      changed: () => {},
      told: () => {},
      failed: () => {},
      moved: () => {},
      warn: (code: string, message: string) => console.warn(`autothrottle: ${code}: ${message}`),
    }
    const id = `object${this.#clock.wallNow().toString(36)}`
    const random = () => 0.5
    this.#group = new Group(this.#transport, context, link, { offline: 'wait', random, id })
    this.#group.open()
    this.#watch()
  }

  join(id: string): void {
    const mailbox = new Mailbox()
    this.#transport.mailboxes.set(id, mailbox)
    const { last } = this.#transport
    if (last !== undefined) mailbox.push(last)
  }

  hear(id: string): Promise<string[]> {
    return this.#transport.mailboxes.get(id)?.hear() ?? Promise.reject(new Error('the seat was left'))
  }

  say(text: string): void {
    this.#transport.peer.heard(text)
  }

  leave(id: string): void {
    this.#transport.leave(id)
  }

  async stats(): Promise<Seen> {
    await this.#transport.writes
    const { now, engine } = this.#group.writer!
    return { now, stats: engine.stats(undefined, now) }
  }

  #watch(): void {
    this.#clock.setTimeout(async () => {
      const now = this.#clock.now()
      if (this.#transport.mailboxes.size > 0) this.#emptySince = now
      if (now - this.#emptySince < LINGER_MS) return this.#watch()
      this.#isOver()
      await this.#group.close()
    }, LINGER_MS / 2)
  }
}
