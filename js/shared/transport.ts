/**
 * The way between processes, and who leads: what a store, a socket or a platform has to give.
 *
 * A transport moves bytes and elects. It may lose, double, delay and reorder what it moves; it never alters
 * it. It gives each epoch to one process, larger than all before and than `above`; and what a process says
 * under an epoch that is over it does not deliver, as far as it can tell. A leader's messages to all and to
 * the leader come back to it: so it knows whether it hears.
 */
import { shown, unknownKeys } from '../base/checks.js'
import { ConfigError, ThrottleError } from '../base/errors.js'
import type { Clock } from '../options/options.js'

/** Permission to lead. */
export interface Lease {
  /** Larger than that of every lease before, and than `above`. */
  readonly epoch: number
  /** The state that the last leader stored, if the transport keeps any. */
  readonly stored?: Uint8Array | undefined
  /** How old that is, in milliseconds. */
  readonly ageMs?: number | undefined
  /** Whether there was no leader before: then there is no lease to wait for. Default false. */
  readonly isFirst?: boolean
}

/** This process, as a transport sees it. */
export interface Peer {
  /** 32 hexadecimal digits, unlike those of any other process. */
  readonly id: string
  /** For timers: they keep no process alive. */
  readonly clock: Clock
  /** The way hears: said by `open`, and after each `reconnect`. */
  opened(): void
  /** A frame came in. */
  received(frame: Uint8Array): void
  /** A process is known to have ended. No process has to say so: its silence is noticed. */
  gone(id: string): void
  /** A message to this member under this epoch was lost: it does not listen. */
  unheard(id: string, epoch: number): void
  /**
   * Messages to the leader are lost: it is time to compete. `hasEnded`: its process is known to be dead,
   * and not only disconnected for a moment.
   */
  vacant(hasEnded: boolean): void
  /** The lease is another's: what was sent under this epoch did not leave. */
  fenced(epoch: number): void
}

export interface Transport {
  /** Milliseconds that a lease lasts. */
  readonly leaseMs: number
  /** Begins. Called once, before everything else, and not before the first request. */
  open(peer: Peer): void
  /**
   * Tries to become the leader, with an epoch above `above`. `undefined`: another process is. Rejects: the
   * way is broken; with a `ConfigError`, for good.
   */
  compete(above: number): Promise<Lease | undefined>
  /**
   * Makes the lease last for `leaseMs` from now; `store` is what the next leader is to be given, if there is
   * something new. False: it is another's. Rejects as `compete` does.
   */
  renew(epoch: number, store: Uint8Array | undefined): Promise<boolean>
  /** Gives the lease back. */
  release(epoch: number, store: Uint8Array | undefined): Promise<void>
  /** To the present leader. A loss is not reported: what is lost is said again. */
  toLeader(frame: Uint8Array): void
  /** To one, under the epoch. */
  toMember(epoch: number, id: string, frame: Uint8Array): void
  /** To all, under the epoch, this process too. */
  toAll(epoch: number, frame: Uint8Array): void
  /**
   * A connection is open and carries no message: it is made anew. `speaks`: the one of commands, not the one
   * that listens.
   */
  reconnect(speaks: boolean): void
  /**
   * Whether each live process learns at once of a new leader. Then a silent one has ended, and its slots are
   * free as soon as the leader begins; else they are kept for two leases. A process may end with its turn, so
   * it says all at once. Default false.
   */
  readonly isPrompt?: boolean
  /** The least milliseconds between two states to store, unless a strict quota waits for one. Default 0. */
  readonly keepMs?: number
  /** Calls `done` when this turn of the event loop is over. Default: after its microtasks. */
  afterTurn?(done: () => void): void
  /** Ends. No message is taken afterwards. */
  close(): Promise<void>
}

/** The rule for a process that has lost the others for long. */
export type Offline = 'divide' | 'wait' | 'fail'

/** The options of all kinds of sharing. */
export interface SharedOptions {
  /** Of the group: processes with the same name share their limits. */
  readonly name: string
  /**
   * When the way to the others has been broken for five seconds: `divide` goes on alone with one part of
   * every limit, by the number of processes that there were; `wait` waits for the way; `fail` rejects what
   * waits with a `SharedError`. Default: `divide` for requests without a quota, `wait` for those with one.
   */
  readonly offline?: Offline
  /**
   * How many processes there are, for one that goes on alone and never heard of the others: it began while
   * the way was broken. Without it the process waits.
   */
  readonly members?: number
}

/** The way to the processes that share a limit is broken, and `offline` is `fail`. */
export class SharedError extends ThrottleError {
  constructor(cause: unknown) {
    super(
      'ERR_SHARED_OFFLINE',
      "the connection to the group is broken, and offline is 'fail': check the connection",
      { cause },
    )
    this.name = 'SharedError'
  }
}

/**
 * Calls `done` when this turn of the event loop is over: what came in it is known by then, so it is said in
 * one message. The trap is a microtask, which is sooner than that: Node runs those between any two
 * immediates, so 32 requests that were made in one turn would be 32 messages.
 */
export function afterTurn(done: () => void): void {
  const { setImmediate = queueMicrotask } = globalThis as { setImmediate?: (done: () => void) => unknown }
  setImmediate(done)
}

// Checks the options of every kind of sharing in one place.
//
// An empty name is refused: an unset variable is one, and all programs with it would share.

/** Says that a setting is wrong. */
export type Wrong = (path: string, want: string, value: unknown) => void

/**
 * Throws if the options make no sense; `more` checks what only this kind takes, by the keys in `own`.
 *
 * @throws {ConfigError} listing every problem.
 */
export function checkShared(
  options: SharedOptions,
  own: readonly string[],
  more: (wrong: Wrong) => void,
): void {
  if (typeof options === 'string') {
    const want = `an object, such as { name: ${shown(options)} }`
    throw new ConfigError([{ path: 'shared', want, got: shown(options) }])
  }
  const problems = unknownKeys(options, ['name', 'offline', 'members', ...own], 'shared')
  const wrong: Wrong = (path, want, value) =>
    problems.push({ path: `shared${path}`, want, got: shown(value) })
  const { name, offline = 'divide', members = 1 } = options ?? {}
  if (typeof name !== 'string' || name === '') wrong('.name', 'a name that is not empty', name)
  if (!['divide', 'wait', 'fail'].includes(offline)) wrong('.offline', '"divide", "wait" or "fail"', offline)
  if (!Number.isSafeInteger(members) || members < 1) wrong('.members', 'a whole number from 1', members)
  more(wrong)
  if (problems.length > 0) throw new ConfigError(problems)
}
