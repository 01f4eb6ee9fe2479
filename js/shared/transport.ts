/**
 * The way between processes, and who writes: what a store, a socket or a platform has to give.
 *
 * A transport moves text and elects. It may lose, double, delay and reorder what it moves; it must never let
 * two processes hold a lease at once, as far as it can tell, and what a process sends under a lease that is
 * over it should not deliver.
 */
import { ThrottleError } from '../base/errors.js'
import type { Clock } from '../options/options.js'

/** Leave to write. */
export interface Lease {
  /** Larger than that of every lease before, and than `known`. */
  readonly epoch: number
  /** What was kept of the last writer, if the transport keeps anything. */
  readonly state?: string | undefined
  /** How old that is, in milliseconds. */
  readonly stateAgeMs?: number | undefined
  /** Whether nobody wrote before: then there is nothing to wait for. Default false. */
  readonly isFirst?: boolean
}

/** This process, as a transport sees it. */
export interface Peer {
  /** Unlike that of any other process. */
  readonly id: string
  /** For timers: they keep no process alive. */
  readonly clock: Clock
  /** Text came in. */
  heard(text: string): void
  /** A process is known to have ended. Nobody has to say so: it is noticed after two leases. */
  gone(id: string): void
  /**
   * Nobody hears what is said to the writer: so it is time to compete. `hasEnded`: its process is known to be
   * dead, so nobody waits for its story. The trap is one that is only not connected for a moment.
   */
  vacant(hasEnded: boolean): void
  /** The lease is another's: what was sent did not leave. */
  fenced(): void
  /** The way hears nothing, though there is something to hear: it is made anew. */
  deaf(): void
}

export interface Transport {
  /** Milliseconds that a lease lasts. */
  readonly leaseMs: number
  /** Begins. Called once, before everything else, and not before the first request. */
  open(peer: Peer): void
  /**
   * Tries to become the writer: with an epoch above `epoch`. `undefined`: another process is. Rejects: the
   * way is broken.
   */
  compete(epoch: number): Promise<Lease | undefined>
  /**
   * Makes the lease last for `leaseMs` from now; `state` is what the next writer is to be given, if there is
   * something new. False: it is another's. Rejects: the way is broken.
   */
  renew(lease: Lease, state: string | undefined): Promise<boolean>
  /** Gives the lease back. */
  release(lease: Lease, state: string): Promise<void>
  /** Whether the lease is still ours, where that can be said at once. Asked before each grant. */
  isHeld?(lease: Lease): boolean
  /** To the writer, whoever that is. Rejections are for nobody: what is lost is said again. */
  toWriter(text: string): void
  /** To one, under the lease. */
  toMember(lease: Lease, id: string, text: string): void
  /** To all, under the lease. This process need not hear it. */
  toAll(lease: Lease, text: string): void
  /**
   * Milliseconds that the group's clock is ahead of this process's; `undefined` where grants leave at once.
   */
  readonly offsetMs?: number | undefined
  /** How many milliseconds ahead a grant is made, so that it has arrived when it is to leave. Default 0. */
  readonly leadMs?: number
  /** What a question to the store takes, in milliseconds. */
  readonly roundTripMs?: number | undefined
  /**
   * Whether each process that lives hears at once that another writes. Then one that tells it no story has
   * ended, and its places are free as soon as the writer begins; else they are kept for two leases.
   */
  readonly isPrompt?: boolean
  /** Calls `done` when this turn of the event loop is over. Default: after its microtasks. */
  afterTurn?(done: () => void): void
  /** Ends. Nothing is heard afterwards. */
  close(): Promise<void>
}

/** What a process does when the way to the others is broken for long. */
export type Offline = 'divide' | 'wait' | 'fail'

/** What every kind of sharing takes. */
export interface SharedOptions {
  /** Of the group: processes with the same name share their limits. */
  readonly name: string
  /**
   * When the way to the others has been broken for five seconds: `divide` goes on alone with one part of
   * every limit, by the number of processes that there were; `wait` waits for the way; `fail` rejects what
   * waits with a `SharedError`. Default `divide`.
   */
  readonly offline?: Offline
  /**
   * How many processes there are, for one that goes on alone and never heard of the others: it began while
   * the way was broken. Without it such a process waits.
   */
  readonly members?: number
}

/** The way to the processes that share a limit is broken, and `offline` is `fail`. */
export class SharedError extends ThrottleError {
  constructor(cause: unknown) {
    super('ERR_SHARED_OFFLINE', 'the way to those that share the limit is broken', { cause })
  }
}
