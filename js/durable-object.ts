/**
 * One limit for all Workers of a program: a Durable Object decides, the Workers ask it.
 *
 * ```ts
 * import { ThrottleObject, throttleOf } from 'autothrottle/durable-object'
 *
 * export class Limiter extends ThrottleObject {
 *   options = { defaults: { rampup: true } }
 * }
 *
 * export default {
 *   fetch: (request, env) =>
 *     throttleOf(env.LIMITER, { name: 'api.example' }).fetch('https://api.example/items'),
 * }
 * ```
 *
 * A Worker that throws or is cancelled gives its place back at once, since the platform disposes of what it
 * held. `waitUntil` keeps a Worker until what it learned was sent.
 *
 * It runs in workerd from 1.20250722 on, which wrangler from 4.26.1 on has.
 */
import { DurableObject, RpcTarget, waitUntil } from 'cloudflare:workers'
import { systemClock } from './base/clock.js'
import { ThrottleError, TimeoutError } from './base/errors.js'
import type { Permit } from './core/permit.js'
import type { RequestOptions, RunOptions, ThrottledRequestInit } from './core/requests.js'
import type { EngineOptions, ThrottleOptions } from './options/options.js'
import { splitOptions } from './options/split.js'
import type { Target } from './scopes/names.js'
import { LEASE_MS, type ObjectState, Room, type Seen } from './shared/durable-object/room.js'
import { SharedHost } from './shared/host.js'
import type { Peer, Transport } from './shared/transport.js'
import { Throttle } from './throttle/throttle.js'
import type { ScopeStats, Stats } from './wasm/types.js'

/** The object: extend it, name its class in `durable_objects.bindings`, and say its options. */
export abstract class ThrottleObject<Env = unknown> extends DurableObject<Env> {
  /**
   * The settings that all Workers share: the options of `createThrottle` that decide (`rate`, `rampup`,
   * `scopes`, `retry` …). Hooks stay with the Worker that has the request. Default `{}`: a request a second
   * to each host.
   */
  options: Omit<ThrottleOptions, 'shared' | 'clock' | 'snapshot'> = {}
  #room: Room | undefined
  #decides: EngineOptions | undefined

  /** @internal Asked by `throttleOf`. @throws {ConfigError} listing every problem of the options. */
  throttleOptions(): EngineOptions {
    this.#decides ??= splitOptions(this.options).engineOptions
    return this.#decides
  }

  /** @internal A Worker comes. A permit comes back when the Worker lets go of its object. */
  joinThrottle(id: string): RpcTarget {
    return new Seat(this.#open(), id)
  }

  /** @internal Asked by `stats`. */
  throttleStats(): Promise<Seen> {
    return this.#open().stats()
  }

  #open(): Room {
    this.#room ??= new Room((this.ctx as ObjectState).storage, this.throttleOptions(), () => {
      this.#room = undefined
    })
    return this.#room
  }
}

/**
 * The object that a Worker holds while it has requests. The Worker polls it for messages: a callback of the
 * Worker's would keep its context alive after its client has gone.
 */
class Seat extends RpcTarget {
  readonly #room: Room
  readonly #id: string

  constructor(room: Room, id: string) {
    super()
    this.#room = room
    this.#id = id
    room.join(id)
  }

  say(frame: Uint8Array): void {
    this.#room.say(frame)
  }

  hear(): Promise<Uint8Array[]> {
    return this.#room.hear(this.#id)
  }

  [Symbol.dispose](): void {
    this.#room.remove(this.#id)
  }
}

/** A binding of a Durable Object's namespace. */
export interface ObjectNamespace {
  idFromName(name: string): unknown
  get(id: never): unknown
}

interface Stub {
  throttleOptions(): Promise<EngineOptions>
  joinThrottle(id: string): Promise<SeatStub>
  throttleStats(): Promise<Seen>
}

interface SeatStub {
  say(frame: Uint8Array): Promise<void>
  /** The messages since the last call, as soon as there is one. */
  hear(): Promise<Uint8Array[]>
  [Symbol.dispose](): void
}

/** The options of one Worker. */
export interface ThrottleOfOptions
  extends Pick<
    ThrottleOptions,
    | 'fetch'
    | 'getScopes'
    | 'getResponseBackoff'
    | 'getErrorBackoff'
    | 'getResponseDelay'
    | 'getHints'
    | 'hints'
    | 'redirects'
    | 'redirectMaxDelay'
    | 'release'
    | 'requestTimeout'
  > {
  /** Of the object: Workers that give the same name share its limits. A host, a key, a tenant. */
  readonly name: string
  /**
   * Milliseconds that a request waits in the Worker; beyond it is a `WaitTooLongError` that says when to come
   * back. Default 10,000: a call that is held costs.
   */
  readonly maxWait?: number
}

/** The request would wait for longer than `maxWait`. */
export class WaitTooLongError extends ThrottleError {
  declare readonly code: 'ERR_WAIT_TOO_LONG'
  /** When to come back, in milliseconds, as far as is known. */
  readonly retryAfterMs: number

  constructor(retryAfterMs: number) {
    super('ERR_WAIT_TOO_LONG', `the request would wait for longer than maxWait: ${retryAfterMs} ms or so`)
    this.retryAfterMs = retryAfterMs
  }
}

/** Options of objects by id, as this isolate has heard them: a deploy makes another isolate. */
const known = new Map<string, Promise<EngineOptions>>()
/** An object for each host or key may be millions of them: what is forgotten is asked again. */
const MOST_KNOWN = 1000

/** The throttle of an object, for one request of a Worker: make it where the request is handled. */
export function throttleOf(namespace: ObjectNamespace, options: ThrottleOfOptions): ObjectThrottle {
  return new ObjectThrottle(namespace, options)
}

/** As a `Throttle`, but what decides is elsewhere: so it is asked first. */
export class ObjectThrottle {
  readonly #stub: () => Stub
  readonly #id: string
  readonly #options: Omit<ThrottleOfOptions, 'name' | 'maxWait'>
  readonly #maxWait: number
  #opened: Promise<Throttle> | undefined

  /** @internal */
  constructor(namespace: ObjectNamespace, { name, maxWait = 10_000, ...options }: ThrottleOfOptions) {
    if (typeof name !== 'string' || name === '') throw new TypeError('name: want a name that is not empty')
    if (!(maxWait >= 0)) throw new TypeError(`maxWait: want milliseconds from 0; got ${String(maxWait)}`)
    const id = namespace.idFromName(name)
    this.#stub = () => namespace.get(id as never) as Stub
    this.#id = String(id)
    this.#options = options
    this.#maxWait = maxWait
  }

  /** As `throttle.fetch`. @throws {WaitTooLongError} instead of waiting for longer than `maxWait`. */
  async fetch(input: RequestInfo | URL, init?: ThrottledRequestInit): Promise<Response> {
    const throttle = await this.#throttle()
    const request = { maxWait: this.#maxWait, ...init?.throttle }
    const target = request.scopes === undefined ? input : { scopes: request.scopes }
    return this.#inTime(throttle, target, throttle.fetch(input, { ...init, throttle: request }))
  }

  /** As `throttle.run`. @throws {WaitTooLongError} instead of waiting for longer than `maxWait`. */
  async run<T>(target: Target, fn: (permit: Permit) => T | PromiseLike<T>, options?: RunOptions): Promise<T> {
    const throttle = await this.#throttle()
    return this.#inTime(throttle, target, throttle.run(target, fn, { maxWait: this.#maxWait, ...options }))
  }

  /** As `throttle.acquire`. @throws {WaitTooLongError} instead of waiting for longer than `maxWait`. */
  async acquire(target: Target, options?: RequestOptions): Promise<Permit> {
    const throttle = await this.#throttle()
    return this.#inTime(throttle, target, throttle.acquire(target, { maxWait: this.#maxWait, ...options }))
  }

  /** Of all Workers together: the object itself is asked. */
  async stats(): Promise<Stats> {
    const [throttle, { now, stats }] = await Promise.all([this.#throttle(), this.#stub().throttleStats()])
    return shifted(stats, throttle.now() - now)
  }

  /** The throttle itself, for everything else: events, `scope(name)`, `hold`, `pause`. */
  throttle(): Promise<Throttle> {
    return this.#throttle()
  }

  #throttle(): Promise<Throttle> {
    this.#opened ??= this.#open()
    return this.#opened
  }

  async #open(): Promise<Throttle> {
    let decides = known.get(this.#id)
    if (!decides) {
      decides = this.#stub().throttleOptions()
      if (known.size >= MOST_KNOWN) known.clear()
      known.set(this.#id, decides)
      decides.catch(() => known.delete(this.#id))
    }
    const transport = new WorkerTransport(this.#stub)
    return new Throttle({
      ...(await decides),
      ...this.#options,
      // It belongs to one request, so one timer may wake all that wait.
      clock: { ...systemClock(true), isPerRequest: false },
      shared: { open: (context) => new SharedHost(transport, context, { offline: 'wait' }) },
    })
  }

  async #inTime<T>(throttle: Throttle, target: Target, done: Promise<T>): Promise<T> {
    try {
      return await done
    } catch (error) {
      if (!(error instanceof TimeoutError) || error.isSent) throw error
      const ms = throttle.peek(target).at - throttle.now()
      throw new WaitTooLongError(Number.isFinite(ms) && ms > 0 ? Math.ceil(ms) : this.#maxWait)
    }
  }
}

/** The Worker's side: it never leads. */
class WorkerTransport implements Transport {
  readonly leaseMs = LEASE_MS
  readonly isPrompt = true
  readonly #stub: () => Stub
  #peer!: Peer
  #seat: Promise<SeatStub> | undefined

  constructor(stub: () => Stub) {
    this.#stub = stub
  }

  open(peer: Peer): void {
    this.#peer = peer
    peer.opened()
  }

  /** Takes a seat, or another one if the object has moved. */
  async compete(): Promise<undefined> {
    if (this.#seat) return
    const seat = this.#stub().joinThrottle(this.#peer.id)
    this.#seat = seat
    try {
      void this.#listen(seat, await seat)
    } catch (error) {
      this.#stand(seat)
      throw error
    }
  }

  async #listen(seat: Promise<SeatStub>, stub: SeatStub): Promise<void> {
    try {
      while (this.#seat === seat) for (const frame of await stub.hear()) this.#peer.received(frame)
    } catch {
      // The object has moved: another seat is taken.
      if (this.#stand(seat)) this.#peer.vacant(false)
    }
  }

  #stand(seat: Promise<SeatStub>): boolean {
    const wasThere = this.#seat === seat
    if (wasThere) this.#seat = undefined
    return wasThere
  }

  async renew(): Promise<boolean> {
    return false
  }

  async release(): Promise<void> {}

  toLeader(frame: Uint8Array): void {
    const seat = this.#seat
    const sent = seat
      ?.then((stub) => stub.say(frame))
      .catch(() => {
        if (this.#stand(seat)) this.#peer.vacant(false)
      })
    if (sent) waitUntil(sent)
  }

  toMember(): void {}

  toAll(): void {}

  reconnect(): void {}

  async close(): Promise<void> {
    const seat = await this.#seat?.catch(() => undefined)
    this.#seat = undefined
    seat?.[Symbol.dispose]()
  }
}

/** Statistics of the object, by a clock that is ahead by `ms` milliseconds. */
function shifted(stats: Stats, ms: number): Stats {
  const own = (scope: ScopeStats): ScopeStats =>
    scope.holdUntil === undefined ? scope : { ...scope, holdUntil: scope.holdUntil + ms }
  const scopes = Object.entries(stats.scopes).map(([name, scope]) => [name, own(scope)])
  return { ...stats, scopes: Object.fromEntries(scopes), ageMs: 0 }
}
