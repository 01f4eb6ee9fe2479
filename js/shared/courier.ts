/**
 * What a machine wants done: its frames go to the transport, its questions too, and one timer wakes it.
 *
 * What happens in one turn of the event loop is said at its end. The trap is an answer that never comes: each
 * question has as long as a lease lasts.
 */
import { ConfigError } from '../base/errors.js'
import type { WarningEvent } from '../core/events.js'
import type { HostContext } from '../core/host.js'
import type { WasmShared } from '../wasm/load/shared.js'
import type { Notice, Ticket } from '../wasm/types.js'
import type { Transport } from './transport.js'

/** Why a request is refused, and what there is to say of it. */
export type Refusal = readonly [
  what: 'full' | 'cost' | 'down' | 'wrong' | 'offline' | 'denied',
  first?: string,
  second?: string | number,
]

/** What is for the program. */
export interface CourierLink {
  /** There may be something to send. */
  changed(): void
  failed(ticket: Ticket, refusal: Refusal): void
  noticed(notice: Notice): void
  warned(code: WarningEvent['code'], message: string): void
  moved(): void
  /** The machine threw; true if that was all there is to do. */
  broke(error: unknown): boolean
}

/** What the transport does, as the module writes it. */
type Said =
  | readonly [what: 0, op: number, above: number]
  | readonly [what: 1, op: number, epoch: number, store: Uint8Array | undefined]
  | readonly [what: 2, op: number, epoch: number, store: Uint8Array | undefined]
  | readonly [what: 3, frame: Uint8Array]
  | readonly [what: 4, epoch: number, id: string, frame: Uint8Array]
  | readonly [what: 5, epoch: number, frame: Uint8Array]
  | readonly [what: 6]

/** And what is for the program. */
type Effect =
  | Said
  | readonly [what: 7, ticket: Ticket, refusal: Refusal]
  | readonly [what: 8, notice: Notice]
  | readonly [what: 9, code: WarningEvent['code'], message: string]
  | readonly [what: 10]

export class Courier {
  /** Why the way to the others can never work, and why it was broken last. */
  denied: ConfigError | undefined
  broken: unknown
  readonly #machine: WasmShared
  readonly #transport: Transport
  readonly #context: HostContext
  readonly #id: string
  readonly #link: CourierLink
  readonly #asked = new Set<Promise<void>>()
  #isOpen = false
  #isClosed = false
  #isTurning = false
  /** Clears the timer. */
  #rest: (() => void) | undefined

  constructor(
    machine: WasmShared,
    transport: Transport,
    context: HostContext,
    id: string,
    link: CourierLink,
  ) {
    this.#machine = machine
    this.#transport = transport
    this.#context = context
    this.#id = id
    this.#link = link
  }

  /** Carries at the end of this turn. */
  soon(): void {
    if (this.#isTurning || this.#isClosed) return
    this.#isTurning = true
    const carry = () => {
      this.#isTurning = false
      if (!this.#isClosed) this.carry()
    }
    if (this.#transport.afterTurn) this.#transport.afterTurn(carry)
    else queueMicrotask(carry)
  }

  /** Does what there is to do. */
  carry(): void {
    this.#guard(() => {
      const now = this.#now
      for (;;) {
        const effect = this.#machine.poll_effect(now) as Effect | undefined
        if (effect === undefined) break
        this.#do(effect)
      }
      // What this process grants itself is in no frame.
      this.#link.changed()
      this.#sleep()
    })
  }

  /** No more calls: the machine cannot be asked, also not to say farewell. */
  abandon(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#rest?.()
    if (this.#isOpen) Promise.resolve(this.#transport.close()).catch(() => {})
  }

  #guard(call: () => void): void {
    try {
      call()
    } catch (error) {
      if (!this.#link.broke(error)) throw error
    }
  }

  /** Says what there is to say last, and lets go of the way. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.carry()
    this.#isClosed = true
    this.#rest?.()
    await Promise.all(this.#asked)
    if (this.#isOpen) await this.#transport.close()
  }

  get #now(): number {
    return this.#context.clock.now()
  }

  #do(effect: Effect): void {
    switch (effect[0]) {
      case 7:
        this.#link.failed(effect[1], effect[2])
        break
      case 8:
        this.#link.noticed(effect[1])
        break
      case 9:
        this.#link.warned(effect[1], effect[2])
        break
      case 10:
        this.#link.moved()
        break
      default:
        this.#say(effect, this.#open())
    }
  }

  #say(effect: Said, transport: Transport): void {
    const machine = this.#machine
    switch (effect[0]) {
      case 0: {
        const [, op, above] = effect
        this.#ask(op, transport.compete(above), (lease, now) => {
          if (!lease) return machine.refused(now, op)
          const { epoch, stored, ageMs = 0, isFirst = false } = lease
          machine.elected(now, op, epoch, stored, ageMs, isFirst)
        })
        break
      }
      case 1: {
        const [, op, epoch, store] = effect
        this.#ask(op, transport.renew(epoch, store), (isOurs, now) =>
          isOurs ? machine.renewed(now, op) : machine.refused(now, op),
        )
        break
      }
      case 2: {
        const [, op, epoch, store] = effect
        this.#ask(op, transport.release(epoch, store), (_, now) => machine.released(now, op))
        break
      }
      case 3:
        transport.toLeader(effect[1])
        break
      case 4:
        transport.toMember(effect[1], effect[2], effect[3])
        break
      case 5:
        transport.toAll(effect[1], effect[2])
        break
      case 6:
        transport.reconnect()
    }
  }

  #open(): Transport {
    const [transport, machine] = [this.#transport, this.#machine]
    if (this.#isOpen) return transport
    this.#isOpen = true
    transport.open({
      id: this.#id,
      clock: this.#context.idleClock,
      opened: () => this.#hear((now) => machine.opened(now)),
      received: (frame) => this.#hear((now) => machine.received(now, frame)),
      gone: (id) => this.#hear((now) => machine.gone(now, id)),
      unheard: (id, epoch) => this.#hear((now) => machine.unheard(now, id, epoch)),
      vacant: (hasEnded) => this.#hear((now) => machine.vacant(now, hasEnded)),
      fenced: (epoch) => this.#hear((now) => machine.fenced(now, epoch)),
    })
    return transport
  }

  /** Something happened outside: who may leave now leaves. */
  #hear(hear: (now: number) => void): void {
    if (this.#isClosed) return
    this.#guard(() => {
      hear(this.#now)
      this.#link.changed()
    })
    this.soon()
  }

  /** Hears the answer, or within a lease that there is none. */
  #ask<T>(op: number, asked: Promise<T>, answer: (given: T, now: number) => void): void {
    const { idleClock } = this.#context
    const done = new Promise<void>((resolve) => {
      const over = (hear: (now: number) => void) => {
        if (!this.#asked.delete(done)) return
        idleClock.clearTimeout(timer)
        this.#hear(hear)
        resolve()
      }
      const late = () => over((now) => this.#machine.timed_out(now, op))
      const timer = idleClock.setTimeout(late, this.#transport.leaseMs)
      asked.then(
        (given) => {
          this.denied = undefined
          over((now) => answer(given, now))
        },
        (error: unknown) => {
          this.broken = error
          if (error instanceof ConfigError) this.denied = error
          const why = (error as Error | undefined)?.message ?? String(error)
          over((now) => this.#machine.failed(now, op, why, error instanceof ConfigError))
        },
      )
    })
    this.#asked.add(done)
  }

  /** One timer. While a request waits for another process, this may be all that keeps this one alive. */
  #sleep(): void {
    this.#rest?.()
    const { wake_at: at, waiting } = this.#machine
    if (at === Number.POSITIVE_INFINITY) return
    const { clock, idleClock } = this.#context
    const its = waiting > 0 ? clock : idleClock
    const timer = its.setTimeout(
      () => this.#hear((now) => this.#machine.timeout(now)),
      Math.max(at - this.#now, 0),
    )
    this.#rest = () => its.clearTimeout(timer)
  }
}
