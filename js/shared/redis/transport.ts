/**
 * The way between processes through Redis: a lease in a key, messages by publish and subscribe.
 *
 * 1. `compete` first makes sure that this process hears, and knows the store's clock; then one script gives
 *    the lease with a new epoch, or says that another process has it.
 * 2. What a writer says leaves once a turn, in one script that first compares the lease. A writer that slept
 *    is told so, and what it said did not leave.
 * 3. A grant carries the instant at which it is to be used, on the store's clock: so the way there, which
 *    takes now 10 ms and then 40, does not shorten the gaps.
 *
 * The trap is a command that waits for a connection and hangs: each answer has as long as a lease lasts.
 */
import type { Lease, Peer, Transport } from '../transport.js'
import { afterTurn } from '../turn.js'
import { COMPETE, RELEASE, RENEW, SEND, TELL, TIME } from './scripts.js'
import type { Store, Subscriber } from './store.js'
import { StoreClock } from './store-clock.js'

const LEASE_MS = 1500
/**
 * How often the store's clock is asked at the beginning, one after another, and for how long: on a slow way
 * fewer have to do, or others would find this process late.
 */
const [FIRST_SAMPLES, SAMPLING_MS] = [16, LEASE_MS / 3]

export class RedisTransport implements Transport {
  readonly afterTurn = afterTurn
  readonly leaseMs = LEASE_MS
  readonly #store: Store
  readonly #keys: readonly string[]
  /** Of keys and channels. The braces keep the keys in one slot of a cluster. */
  readonly #prefix: string
  readonly #clock = new StoreClock()
  #peer!: Peer
  #ready: Promise<Subscriber> | undefined
  #isWriterHeard = false
  /** In a cluster: hears only what goes to all nodes. */
  #isPlain = false
  #isClosed = false
  #isSampling = false
  /** When a message was heard last, and since when the store answers and none is. */
  #heardAt = 0
  #deafSince: number | undefined
  /** The store was asked for the lease, and nobody knows of it yet. */
  #isCompeting = false
  /** What the writer says in this turn: channels with their texts. */
  readonly #said: string[] = []
  #flushed: Promise<unknown> = Promise.resolve()

  constructor(store: Store, name: string) {
    this.#store = store
    this.#prefix = `autothrottle:{${name}}:`
    const keys = ['lease', 'epoch', 'state', ...(store.isCluster ? ['plain'] : [])]
    this.#keys = keys.map((key) => this.#prefix + key)
  }

  open(peer: Peer): void {
    this.#peer = peer
  }

  get offsetMs(): number | undefined {
    return this.#clock.offsetMs
  }

  get leadMs(): number {
    return this.#clock.leadMs
  }

  get roundTripMs(): number | undefined {
    return this.#clock.tripMs
  }

  async compete(epoch: number): Promise<Lease | undefined> {
    this.#ready ??= this.#listen()
    const subscriber = await this.#ready
    if (this.#isClosed) return undefined
    this.#isCompeting = true
    try {
      return await this.#ask(subscriber, epoch)
    } finally {
      this.#isCompeting = false
    }
  }

  async #ask(subscriber: Subscriber, epoch: number): Promise<Lease | undefined> {
    const writer = `${this.#prefix}writer`
    const answer = await this.#run(COMPETE, [this.#peer.id, String(epoch), String(LEASE_MS), writer])
    const [won, state, age] = answer as string[]
    if (this.#isClosed) return undefined
    if (won === undefined) {
      // It no longer writes: what is said to the writer is not for it.
      if (this.#isWriterHeard) subscriber.unsubscribe(writer).catch(() => {})
      this.#isWriterHeard = false
      this.#isDeaf()
      return undefined
    }
    if (!this.#isWriterHeard) await this.#hear(subscriber, 'writer')
    this.#isWriterHeard = true
    return { epoch: Number(won), ...(state && { state, stateAgeMs: Number(age) }) }
  }

  async renew(lease: Lease, state: string | undefined): Promise<boolean> {
    const isOurs = (await this.#run(RENEW, [...this.#claim(lease), state ?? ''])) === 1
    if (!isOurs || !this.#isDeaf()) return isOurs
    // Whoever hears nobody should not write.
    this.#run(RELEASE, [this.#peer.id]).catch(() => {})
    return false
  }

  async release(lease: Lease, state: string): Promise<void> {
    await this.#flushed
    if (state) await this.renew(lease, state)
    await this.#run(RELEASE, [this.#peer.id])
  }

  toWriter(text: string): void {
    const writer = `${this.#prefix}writer`
    const said = this.#store.isCluster ? this.#run(TELL, [writer, text]) : this.#store.publish(writer, text)
    said.then(
      (heard) => {
        if (heard === 0) this.#peer.vacant(false)
      },
      () => {},
    )
  }

  toMember(lease: Lease, id: string, text: string): void {
    this.#say(lease, `to:${id}`, text)
  }

  toAll(lease: Lease, text: string): void {
    this.#say(lease, 'all', text)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    // The answer may come when the client is gone; what is asked in order is done in order.
    if (this.#isCompeting) await this.#run(RELEASE, [this.#peer.id]).catch(() => {})
    const ready = this.#ready
    this.#ready = undefined
    await ready?.then(
      (subscriber) => subscriber.close(),
      () => {},
    )
  }

  /** Whatever is said in one turn of the event loop is one script. */
  #say(lease: Lease, channel: string, text: string): void {
    if (this.#said.push(this.#prefix + channel, text) > 2) return
    this.#flushed = this.#flush(lease).catch(() => {})
  }

  async #flush(lease: Lease): Promise<void> {
    await undefined
    const args = [...this.#claim(lease), ...this.#said.splice(0)]
    if ((await this.#run(SEND, args)) === 0) this.#peer.fenced()
  }

  #hear(subscriber: Subscriber, channel: string): Promise<void> {
    const hear = (text: string) => {
      this.#heardAt = this.#peer.clock.now()
      this.#deafSince = undefined
      this.#peer.heard(text)
    }
    return this.#inTime(subscriber.subscribe(this.#prefix + channel, hear))
  }

  /**
   * Whether the connection that hears is open and carries nothing, as after a firewall forgot it. Somebody
   * writes, and beats come three times a lease, this process's own as well. Asked when the store answers; for
   * a lease from the first such answer a client may still be connecting. Then the connection is made anew.
   */
  #isDeaf(): boolean {
    const now = this.#peer.clock.now()
    if (now - this.#heardAt < LEASE_MS) return false
    this.#deafSince ??= now
    if (now - this.#deafSince < LEASE_MS) return false
    const ready = this.#ready
    this.#ready = undefined
    this.#isWriterHeard = false
    this.#deafSince = undefined
    ready?.then((subscriber) => subscriber.close()).catch(() => {})
    this.#peer.deaf()
    return true
  }

  /** The connection that hears, and the store's clock; again after a failure. */
  async #listen(): Promise<Subscriber> {
    const { clock, id } = this.#peer
    const opening = this.#store.subscriber()
    try {
      const subscriber = await this.#inTime(opening)
      await this.#hear(subscriber, 'all')
      await this.#hear(subscriber, `to:${id}`)
      this.#isPlain = this.#store.isCluster && !subscriber.isSharded
      const until = clock.now() + SAMPLING_MS
      for (let sample = 0; sample < FIRST_SAMPLES && clock.now() <= until; sample++) await this.#sample()
      this.#heardAt = clock.now()
      if (this.#isClosed) subscriber.close()
      else if (!this.#isSampling) this.#resample()
      this.#isSampling = true
      return subscriber
    } catch (error) {
      this.#ready = undefined
      opening.then(
        (late) => late.close(),
        () => {},
      )
      throw error
    }
  }

  /** Clocks drift, and are set: the store's is asked three times a lease. */
  #resample(): void {
    this.#peer.clock.setTimeout(() => {
      if (this.#isClosed) return
      this.#sample().catch(() => {})
      this.#resample()
    }, LEASE_MS / 3)
  }

  async #sample(): Promise<void> {
    const { clock } = this.#peer
    const asked = clock.now()
    const [seconds, micros] = (await this.#run(TIME, [this.#isPlain ? 'plain' : ''])) as string[]
    this.#clock.sample(asked, clock.now(), Number(seconds) * 1000 + Number(micros) / 1000)
  }

  #claim({ epoch }: Lease): string[] {
    return [`${epoch}:${this.#peer.id}`, String(epoch), String(LEASE_MS)]
  }

  #run(script: string, args: readonly string[]): Promise<unknown> {
    return this.#inTime(this.#store.run(script, this.#keys, args))
  }

  /** Rejects if there is no answer within a lease. */
  #inTime<T>(answer: Promise<T>): Promise<T> {
    const { clock } = this.#peer
    return new Promise((resolve, reject) => {
      const late = () => reject(new Error(`Redis has not answered within ${LEASE_MS} ms`))
      const timer = clock.setTimeout(late, LEASE_MS)
      answer.then(resolve, reject).finally(() => clock.clearTimeout(timer))
    })
  }
}
