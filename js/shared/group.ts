/**
 * This process among those that share a limit: member always, writer while it holds the lease.
 *
 * 1. Nothing happens before the first request. Then it competes: somebody writes, or this process does.
 * 2. A writer makes its lease last, and says so in a beat, three times a lease. Who hears none for a lease
 *    competes.
 * 3. Whoever writes next goes on from what it last heard, or from what the transport kept: the younger.
 * 4. Where the way is broken for long, `offline` says what happens; the way is tried all the while.
 *
 * The trap is a clock: only spans of this process's own clock are compared, so a process that slept finds its
 * lease over before it does anything.
 */
import { ConfigError } from '../base/errors.js'
import type { HostContext } from '../core/host.js'
import type { SharedStats } from '../wasm/types.js'
import type { GroupLink, GroupSettings } from './group-link.js'
import { hashOf } from './hash.js'
import { Member, type Memory } from './member.js'
import {
  decode,
  encode,
  type Grant,
  type Message,
  stateIn,
  type ToMember,
  type ToWriter,
} from './messages.js'
import { derived, divided, dividedState } from './offline.js'
import { Told } from './told.js'
import { type Lease, type Peer, SharedError, type Transport } from './transport.js'
import { Writer } from './writer.js'
import type { WriterLink } from './writer-link.js'

/** The way may be broken for so long before `offline` counts, in milliseconds. */
const PATIENCE_MS = 5000

export class Group {
  readonly member: Member
  readonly told: Told
  /** Why the way to the others can never work. */
  denied: ConfigError | undefined
  readonly #transport: Transport
  readonly #context: HostContext
  readonly #link: GroupLink
  readonly #settings: GroupSettings
  readonly #hash: string
  #writer: Writer | undefined
  #lease: Lease | undefined
  /** Until when the lease is good, by this process's clock. */
  #until = 0
  /** Goes on alone, while the way is broken. */
  #alone: Writer | undefined
  #isOpen = false
  #isClosed = false
  #isCompeting = false
  #heardAt = 0
  /** Since when the way is broken, and why. */
  #broken: { readonly at: number; readonly cause: unknown } | undefined
  #isOffline = false
  /** Who wrote when a writer was last heard; and the one that is known to have ended. */
  #writerId: string | undefined
  #goneId: string | undefined
  /** Members that there were when a beat was last heard or said; or that there are, as the program says. */
  #size: number | undefined
  #ticking: unknown
  #hurrying: unknown

  constructor(transport: Transport, context: HostContext, link: GroupLink, settings: GroupSettings) {
    this.#transport = transport
    this.#context = context
    this.#link = link
    this.told = new Told(link)
    this.#settings = settings
    this.#hash = hashOf(context.options)
    this.#size = settings.members
    this.member = new Member(
      {
        id: this.id,
        hash: this.#hash,
        now: () => this.#now,
        offsetMs: () => transport.offsetMs,
        afterTurn: (done) => (transport.afterTurn ?? queueMicrotask)(done),
        send: (message) => this.#send(message),
        changed: (refused) => link.changed(refused),
      },
      transport.leaseMs,
    )
  }

  get id(): string {
    return this.#settings.id
  }

  /** The writer, if it is this process. */
  get writer(): Writer | undefined {
    return this.#writer ?? this.#alone
  }

  /** The group as it is known here. */
  get stats(): SharedStats {
    const [now, { epoch }] = [this.#now, this.member]
    const isWriter = this.#writer !== undefined
    return {
      writer: isWriter ? this.id : this.#writerId,
      isWriter,
      epoch: Math.floor(epoch),
      members: this.#size,
      leadMs: this.#leadMs,
      roundTripMs: this.#transport.roundTripMs,
      lastHeardAt: isWriter ? now : this.#writerId === undefined ? undefined : this.#heardAt,
      offlineSince: this.#isOffline ? this.#broken?.at : undefined,
    }
  }

  get #now(): number {
    return this.#context.clock.now()
  }

  /** How far ahead a grant is made now. A slow way costs slots that time, so there is a most. */
  get #leadMs(): number {
    return Math.min(this.#transport.leadMs ?? 0, this.#transport.leaseMs / 5)
  }

  /** A request is about to come. */
  open(): void {
    if (this.#isOpen) return
    this.#isOpen = true
    const peer: Peer = {
      id: this.id,
      clock: this.#context.idleClock,
      heard: (text) => this.#hear(text),
      gone: (id) => this.#writer?.drop(id),
      vacant: (hasEnded) => {
        if (hasEnded) this.#goneId = this.#writerId
        this.#later(20)
      },
      fenced: () => this.#stepDown(),
      deaf: () => this.told.deaf(),
    }
    this.#transport.open(peer)
    this.#heardAt = this.#now
    this.#tick()
    this.#compete()
  }

  /** Nothing more will be asked: others go on. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    const { idleClock } = this.#context
    idleClock.clearTimeout(this.#ticking)
    idleClock.clearTimeout(this.#hurrying)
    this.#alone?.stop()
    if (!this.#isOpen) return
    this.member.flush()
    const [writer, lease] = [this.#writer, this.#lease]
    if (writer && lease && this.#leads()) {
      const state = writer.state()
      this.#say(lease, { type: 'resign', from: this.id, epoch: lease.epoch, state })
      writer.stop()
      await this.#transport.release(lease, state).catch(() => {})
    } else this.member.ping('bye')
    await this.#transport.close()
  }

  #tick(): void {
    const { leaseMs } = this.#transport
    const now = this.#now
    let next = leaseMs / 3
    if (this.#leads()) this.#renew()
    else {
      if (this.#broken && now - this.#broken.at >= PATIENCE_MS) this.#goOffline(this.#broken.cause)
      const left = this.#heardAt + leaseMs - now
      if (left > 0) this.member.ping()
      else this.#later(leaseMs / 10)
      // Its lease may be over between two pings: then nobody waits for the next one.
      next = Math.min(next, left > 0 ? left : leaseMs / 10)
    }
    this.#ticking = this.#context.idleClock.setTimeout(() => this.#tick(), next)
  }

  /** Competes in a moment, so that not all do at once. */
  #later(most: number): void {
    if (!this.#isClosed)
      this.#context.idleClock.setTimeout(() => this.#compete(), this.#settings.random() * most)
  }

  async #compete(): Promise<void> {
    if (this.#isCompeting || this.#writer || this.#isClosed) return
    this.#isCompeting = true
    const asked = this.#now
    try {
      const lease = await this.#transport.compete(Math.floor(this.member.epoch))
      if (this.#isClosed) {
        if (lease) await this.#transport.release(lease, '')
      } else {
        this.#isConnected()
        if (lease) this.#lead(lease, asked)
        // Whoever writes is to say so at once: a new process need not wait for the next beat.
        else if (this.member.epoch === 0)
          this.#transport.toWriter(encode({ type: 'ping', from: this.id, epoch: 0, hello: 0 }))
      }
      this.denied = undefined
    } catch (error) {
      if (error instanceof ConfigError) {
        // It will not heal by itself, so nothing waits for that.
        this.denied = error
        this.#link.failed(error)
      } else this.#isBroken(error)
    } finally {
      this.#isCompeting = false
    }
  }

  #lead(lease: Lease, asked: number): void {
    const now = this.#now
    const { memory } = this.member
    const kept = lease.state ? { text: lease.state, at: now - (lease.stateAgeMs ?? 0) } : undefined
    const known = [memory, kept].filter((each) => each !== undefined).sort((a, b) => b.at - a.at)
    const isFirst = lease.isFirst === true && this.member.epoch === 0
    // Said first: a memory of many scopes takes a while to read, and meanwhile the others tell their stories.
    this.#say(lease, { type: 'beat', from: this.id, epoch: lease.epoch, members: {}, hash: this.#hash })
    this.#writer = this.#beginning(lease.epoch, known)
    this.#lease = lease
    this.#until = asked + this.#transport.leaseMs
    if (!isFirst) this.#writer.collect()
    this.member.enter(lease.epoch)
    this.told.moved(this.stats)
  }

  /** A writer that goes on from the youngest memory that can be read. */
  #beginning(epoch: number, known: readonly Memory[], share?: number): Writer {
    for (const memory of known) {
      try {
        return this.#newWriter(epoch, memory, share)
      } catch (error) {
        this.told.unreadable(error)
      }
    }
    return this.#newWriter(epoch, undefined, share)
  }

  /** `share` processes go on alone, each slower by so much. */
  #newWriter(epoch: number, memory: Memory | undefined, share?: number): Writer {
    const { options, clock, snapshot } = this.#context
    const isAlone = share !== undefined
    const link: WriterLink = {
      id: this.id,
      epoch,
      hash: this.#hash,
      leaseMs: this.#transport.leaseMs,
      isPrompt: this.#transport.isPrompt === true,
      isAlone,
      isGood: () => isAlone || this.#leads(),
      grant: (to, grant) => this.#grant(to, grant),
      tell: (tell) => {
        this.#link.told(tell)
        if (this.#lease) this.#say(this.#lease, tell)
      },
      soon: (ms) => this.#soon(ms),
      differs: (id) => this.#link.warn('shared-options', `process ${id} shares the limit with other options`),
      offsetMs: () => (isAlone ? undefined : this.#transport.offsetMs),
    }
    const ageMs = memory ? this.#now - memory.at : 0
    const state = memory && stateIn(memory.text)
    const beginning = { state, ageMs, former: this.#writerId, gone: this.#goneId, snapshot }
    const ahead = derived(clock, () => (isAlone ? 0 : this.#leadMs), share ?? 1)
    if (!isAlone) return new Writer(link, options, ahead, beginning)
    if (state) beginning.state = dividedState(state, share)
    beginning.ageMs /= share
    return new Writer(link, divided(options, share), ahead, beginning)
  }

  /**
   * Whether this process writes: no longer, if its lease is another's or over. The transport may know that at
   * once.
   */
  #leads(): boolean {
    if (this.#lease && (this.#transport.isHeld?.(this.#lease) ?? this.#now < this.#until)) return true
    this.#stepDown()
    return false
  }

  async #renew(): Promise<void> {
    const lease = this.#lease
    if (!lease) return
    // The lease first: to write down a memory of many scopes may take as long as is left of it.
    const renewed = this.#keep(lease, undefined)
    const state = this.#beat()
    await renewed
    if (state !== undefined && this.#lease === lease) await this.#keep(lease, state)
  }

  async #keep(lease: Lease, state: string | undefined): Promise<void> {
    const asked = this.#now
    try {
      const isOurs = await this.#transport.renew(lease, state)
      if (this.#lease !== lease) return
      if (isOurs) this.#until = Math.max(this.#until, asked + this.#transport.leaseMs)
      else this.#stepDown()
    } catch (error) {
      this.#isBroken(error)
    }
  }

  /** Says that it writes; gives what it remembers, where that went along. */
  #beat(): string | undefined {
    const [writer, lease] = [this.#writer, this.#lease]
    if (!writer || !lease) return undefined
    const beat = writer.beat()
    this.#size = writer.size ?? this.#size
    this.#say(lease, beat)
    this.member.onBeat(beat)
    this.told.moved(this.stats)
    return beat.state
  }

  /** Something was learned that should not be lost, or somebody is new: the next beat comes soon. */
  #soon(ms: number): void {
    if (this.#hurrying !== undefined || !this.#writer) return
    this.#hurrying = this.#context.idleClock.setTimeout(() => {
      this.#hurrying = undefined
      const state = this.#beat()
      // Whatever is said is stored as well: whoever writes next may have heard nothing.
      if (state !== undefined && this.#lease) this.#keep(this.#lease, state)
    }, ms)
  }

  /** Writes no longer: another does, or will. */
  #stepDown(): void {
    if (!this.#writer) return
    this.#writer.stop()
    this.#writer = undefined
    this.#lease = undefined
    this.#heardAt = this.#now
    this.#later(this.#transport.leaseMs / 10)
  }

  #send(message: ToWriter): void {
    const writer = this.writer
    if (writer) writer.hear(message)
    else this.#transport.toWriter(encode(message))
  }

  #grant(to: string, grant: Grant): void {
    if (to === this.id) this.member.onGrant(grant)
    else if (this.#lease) this.#transport.toMember(this.#lease, to, encode(grant))
  }

  #say(lease: Lease, message: ToMember): void {
    this.#transport.toAll(lease, encode(message))
  }

  #hear(text: string): void {
    // A store that is asked whether anybody listens says nothing.
    if (this.#isClosed || text === '') return
    const message = decode(text)
    if (message === 'wrong') this.told.wrong(text)
    else if (message === 'version') this.told.version()
    else if (message.from !== this.id)
      try {
        this.#take(message)
      } catch (error) {
        this.told.senseless(message.from, error)
      }
  }

  #take(message: Message): void {
    if (message.from === this.#goneId && message.type !== 'resign') this.#goneId = undefined
    if (isToWriter(message)) {
      if (message.epoch === 0) this.#soon(0)
      this.#writer?.hear(message)
    } else this.#onWriter(message)
  }

  /** A writer said something: this one, or an older or newer one. */
  #onWriter(message: ToMember): void {
    if (message.epoch < this.member.epoch) return
    if (this.#writer) {
      // Two cannot be right: the newer one is.
      if (message.epoch <= (this.#lease?.epoch ?? 0)) return
      this.#stepDown()
    }
    const now = this.#now
    // Beats come oftener than that: this process slept, or the writer did. What lay unread may be old, and
    // where grants do not say when, leave that is in it is asked for anew.
    const { offsetMs, leaseMs } = this.#transport
    const wasSilent = offsetMs === undefined && now - this.#heardAt > leaseMs
    this.#heardAt = now
    this.#writerId = message.from
    this.#isConnected()
    if (wasSilent) this.member.sayHello()
    if (message.type === 'resign') {
      this.#goneId = message.from
      this.member.memory = { text: message.state, at: now }
      this.#later(20)
      return
    }
    this.member.enter(message.epoch)
    if (message.type === 'grant') this.member.onGrant(message)
    else if (message.type === 'tell') this.#link.told(message)
    else if (message.type === 'beat') {
      // One that does not know this process has not heard of all.
      if (Object.hasOwn(message.members, this.id)) this.#size = Object.keys(message.members).length
      if (message.hash !== this.#hash)
        this.#link.warn('shared-options', 'the process that decides has other options: those count')
      this.member.onBeat(message)
      this.told.moved(this.stats)
    }
  }

  #isBroken(cause: unknown): void {
    this.#broken = { at: this.#broken?.at ?? this.#now, cause }
  }

  #isConnected(): void {
    this.#broken = undefined
    if (!this.#isOffline) return
    this.#isOffline = false
    this.told.online()
    this.#alone?.stop()
    this.#alone = undefined
    this.told.moved(this.stats)
    this.member.retreat()
  }

  #goOffline(cause: unknown): void {
    const size = this.#size
    // To go on alone at full speed is what all others would do, too.
    const offline =
      size === undefined && this.#settings.offline === 'divide' ? 'wait' : this.#settings.offline
    if (offline === 'fail') this.#link.failed(new SharedError(cause))
    if (this.#isOffline) return
    this.#isOffline = true
    this.told.offline(this.#settings.offline, offline, size, cause)
    this.told.moved(this.stats)
    if (offline !== 'divide' || size === undefined) return
    // Between two leases: the next writer's is larger.
    const epoch = Math.floor(this.member.epoch) + 0.5
    const { memory } = this.member
    this.#alone = this.#beginning(epoch, memory ? [memory] : [], size)
    this.member.enter(epoch)
  }
}

function isToWriter(message: Message): message is ToWriter {
  return ['hello', 'turn', 'ping', 'bye'].includes(message.type)
}
