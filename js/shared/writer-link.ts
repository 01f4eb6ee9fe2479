/**
 * What a writer is given: the process that it writes in, and what it goes on from.
 *
 * The trap is a memory that looks younger than it is: its age counts from when it was heard.
 */
import type { Snapshot } from '../wasm/types.js'
import type { Grant, State, Tell } from './messages.js'

/** What a writer needs of its process. */
export interface WriterLink {
  readonly id: string
  readonly epoch: number
  readonly hash: string
  readonly leaseMs: number
  /** As the transport's. */
  readonly isPrompt: boolean
  /** Decides for its own process only, while the way is broken. */
  readonly isAlone: boolean
  /** Whether it may still grant. If not, it is stopped by this call. */
  isGood(): boolean
  grant(to: string, grant: Grant): void
  tell(tell: Tell): void
  /** A beat is wanted within so many milliseconds. */
  soon(ms: number): void
  /** A member has other options. */
  differs(id: string): void
  /** Milliseconds that the group's clock is ahead of this one's. */
  offsetMs(): number | undefined
}

/** What the engine goes on from. */
export interface Beginning {
  readonly state: State | undefined
  readonly ageMs: number
  /** Who wrote last; and a process that is known to have ended. */
  readonly former: string | undefined
  readonly gone: string | undefined
  /** Without a state: what the program gave. */
  readonly snapshot: Snapshot | undefined
}
