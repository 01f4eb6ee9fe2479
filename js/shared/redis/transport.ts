/**
 * The way between processes through Redis: a lease in a key, frames by publish and subscribe.
 *
 * 1. `compete` first makes sure that this process hears; then one script gives the lease with a new epoch, or
 *    says that another process has it.
 * 2. A leader's messages leave once a turn, in one script that first compares the lease. A leader that slept
 *    learns so, and what it sent did not leave.
 *
 * The trap is a connection that is open and carries no message, as after a firewall forgot it. A leader's
 * messages come back by its own subscription, and a member that hears beats and no answers knows that its
 * commands are lost: the machine says which connection is to be made anew.
 */
import { ConfigError } from '../../base/errors.js'
import { loadShared } from '../../wasm/load/shared.js'
import { afterTurn, type Lease, type Peer, type Transport } from '../transport.js'
import { COMPETE, NO_ANSWER, NO_ANSWER_BY_TLS, RELEASE, RENEW, SEND, TELL } from './scripts.js'
import type { Argument, Store, Subscriber } from './store.js'

const LEASE_MS = 1500

export class RedisTransport implements Transport {
  readonly afterTurn = afterTurn
  readonly leaseMs = LEASE_MS
  readonly #store: Store
  readonly #keys: readonly string[]
  /** Of keys and channels. The braces keep the keys in one slot of a cluster. */
  readonly #prefix: string
  #peer!: Peer
  /** The connection that hears, which can be closed before `#ready` resolves, when it hears. */
  #subscriber: Subscriber | undefined
  #ready: Promise<Subscriber> | undefined
  /** Whether this process listens as the leader. */
  #isLeader = false
  /** In a cluster: `plain` for one that hears only what goes to all nodes. */
  #plain = ''
  #isClosed = false
  /** The store was asked for the lease, and has not answered yet. */
  #isCompeting = false
  /** The leader's messages of this turn: channels with their frames. */
  readonly #pending: Argument[] = []
  #flushed: Promise<unknown> = Promise.resolve()

  constructor(store: Store, name: string) {
    this.#store = store
    this.#prefix = `autothrottle:{${name}}:`
    const keys = ['lease', 'epoch', 'snapshot', ...(store.isCluster ? ['plain'] : [])]
    this.#keys = keys.map((key) => this.#prefix + key)
  }

  open(peer: Peer): void {
    this.#peer = peer
    peer.opened()
  }

  async compete(above: number): Promise<Lease | undefined> {
    if (this.#isClosed) return undefined
    this.#ready ??= this.#listen()
    const subscriber = await this.#ready
    if (this.#isClosed) return undefined
    this.#isCompeting = true
    try {
      return await this.#ask(subscriber, above)
    } finally {
      this.#isCompeting = false
    }
  }

  async #ask(subscriber: Subscriber, above: number): Promise<Lease | undefined> {
    const leader = `${this.#prefix}leader`
    const answer = await this.#run(COMPETE, [this.#peer.id, String(above), String(LEASE_MS), leader])
    const [won, stored, age] = answer as string[]
    if (this.#isClosed) return undefined
    if (won === undefined) {
      // It no longer leads: what is sent to the leader is not for it.
      if (this.#isLeader) subscriber.unsubscribe(leader).catch(() => {})
      this.#isLeader = false
      return undefined
    }
    if (!this.#isLeader) await this.#subscribe(subscriber, 'leader')
    this.#isLeader = true
    return { epoch: Number(won), ...(stored && { stored: bytesOf(stored), ageMs: Number(age) }) }
  }

  async renew(epoch: number, store: Uint8Array | undefined): Promise<boolean> {
    return (await this.#run(RENEW, [...this.#claim(epoch), textOf(store), this.#plain])) === 1
  }

  async release(epoch: number, store: Uint8Array | undefined): Promise<void> {
    await this.#flushed
    if (store) await this.renew(epoch, store)
    await this.#run(RELEASE, [this.#peer.id])
  }

  toLeader(frame: Uint8Array): void {
    const leader = `${this.#prefix}leader`
    const published = this.#store.isCluster
      ? this.#run(TELL, [leader, buffer(frame), this.#plain])
      : this.#store.publish(leader, buffer(frame))
    published.then(
      (receivers) => {
        if (receivers === 0) this.#peer.vacant(false)
      },
      () => {},
    )
  }

  toMember(epoch: number, id: string, frame: Uint8Array): void {
    this.#say(epoch, `to:${id}`, frame)
  }

  toAll(epoch: number, frame: Uint8Array): void {
    this.#say(epoch, 'all', frame)
  }

  reconnect(speaks: boolean): void {
    if (this.#isClosed) return
    if (speaks) {
      this.#store.reconnect()
      return
    }
    this.#subscriber?.close()
    const isLeader = this.#isLeader
    this.#isLeader = false
    const listening = this.#listen()
    this.#ready = listening
    listening
      .then(async (subscriber) => {
        if (isLeader) {
          await this.#subscribe(subscriber, 'leader')
          this.#isLeader = true
        }
        if (this.#ready === listening) this.#peer.opened()
      })
      .catch(() => {})
  }

  async close(): Promise<void> {
    this.#isClosed = true
    // The answer may come when the client is gone; what is asked in order is done in order. A client that was
    // told to disconnect while it connects answers never.
    const released = this.#isCompeting ? this.#inTime(this.#run(RELEASE, [this.#peer.id])) : undefined
    this.#subscriber?.close()
    await released?.catch(() => {})
    this.#store.close()
  }

  /** The messages of one turn of the event loop are one script. */
  #say(epoch: number, channel: string, frame: Uint8Array): void {
    if (this.#pending.push(this.#prefix + channel, buffer(frame)) > 2) return
    this.#flushed = this.#flush(epoch).catch(() => {})
  }

  async #flush(epoch: number): Promise<void> {
    await undefined
    const pending = this.#pending.splice(0)
    const answer = await this.#run(SEND, [...this.#claim(epoch), ...pending])
    if (answer === 0) return this.#peer.fenced(epoch)
    const to = `${this.#prefix}to:`
    for (const place of answer as number[]) {
      const channel = String(pending[2 * place])
      if (channel.startsWith(to)) this.#peer.unheard(channel.slice(to.length), epoch)
    }
  }

  #subscribe(subscriber: Subscriber, channel: string): Promise<void> {
    // A store that is asked whether there are listeners sends no message.
    const hear = (frame: Uint8Array) => {
      if (frame.length > 0 && !this.#isClosed) this.#peer.received(frame)
    }
    return this.#inTime(subscriber.subscribe(this.#prefix + channel, hear))
  }

  /** The connection that hears; again after a failure. */
  async #listen(): Promise<Subscriber> {
    // A client that is refused tries again without end, and answers no command meanwhile.
    let refuse: (why: unknown) => void
    const refused = new Promise<never>((_, reject) => {
      refuse = reject
    })
    const subscriber = this.#store.subscriber((error) => {
      const judged = this.#judged(error)
      if (judged !== error) refuse(judged)
    })
    this.#subscriber = subscriber
    const hears = async () => {
      await this.#inTime(subscriber.ready)
      await this.#subscribe(subscriber, 'all')
      await this.#subscribe(subscriber, `to:${this.#peer.id}`)
    }
    try {
      await Promise.race([hears(), refused])
      this.#plain = this.#store.isCluster && !subscriber.isSharded ? 'plain' : ''
      if (this.#isClosed) subscriber.close()
      return subscriber
    } catch (error) {
      if (this.#subscriber === subscriber) this.#ready = undefined
      subscriber.close()
      throw error
    }
  }

  #claim(epoch: number): string[] {
    return [`${epoch}:${this.#peer.id}`, String(epoch), String(LEASE_MS)]
  }

  async #run(script: string, args: readonly Argument[]): Promise<unknown> {
    try {
      return await this.#store.run(script, this.#keys, args)
    } catch (error) {
      throw this.#judged(error)
    }
  }

  /** The error, or one of the options if it will not heal by itself. */
  #judged(error: unknown): unknown {
    const got = (error as Error).message
    const want = `permission to use ${this.#prefix}*`
    return loadShared().is_for_good(got) ? new ConfigError([{ path: 'shared.client', want, got }]) : error
  }

  /** Rejects if there is no answer within a lease: a client waits for its connection without end. */
  #inTime<T>(answer: Promise<T>): Promise<T> {
    const { clock } = this.#peer
    return new Promise((resolve, reject) => {
      const fails = (error: unknown) => reject(this.#judged(error))
      const late = () => reject(new Error(this.#store.isSecure ? NO_ANSWER_BY_TLS : NO_ANSWER))
      const timer = clock.setTimeout(late, LEASE_MS)
      answer.then(resolve, fails).finally(() => clock.clearTimeout(timer))
    })
  }
}

/** Bytes as clients write them: they take a `Buffer`, and of other bytes some make text. */
function buffer(bytes: Uint8Array): Uint8Array {
  const { Buffer } = globalThis as unknown as { Buffer: { from(...of: unknown[]): Uint8Array } }
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

type Text = Uint8Array & { toString(encoding: 'base64'): string }

/** The state is stored as text: not every client can be asked for bytes. */
function textOf(bytes: Uint8Array | undefined): string {
  return bytes ? (buffer(bytes) as Text).toString('base64') : ''
}

function bytesOf(text: string): Uint8Array {
  const { Buffer } = globalThis as unknown as { Buffer: { from(...of: unknown[]): Uint8Array } }
  return Buffer.from(text, 'base64')
}
