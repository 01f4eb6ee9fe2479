/**
 * What a group needs of its host, and what it says when the way to the others is broken.
 *
 * The trap is a name that two processes have: each is taken for the other.
 */
import type { WarningEvent } from '../core/events.js'
import type { SharedStats } from '../wasm/types.js'
import type { Refusal, Tell } from './messages.js'
import type { Offline } from './transport.js'

/** A warning of processes that share a limit. */
export type SharedCode = Extract<WarningEvent['code'], `shared-${string}`>

/** What a group tells its host. */
export interface GroupLink {
  changed(refused: readonly Refusal[]): void
  told(tell: Tell): void
  /** Nobody can be asked: what waits is to fail. */
  failed(error: Error): void
  warn(code: SharedCode, message: string): void
  /** Another writer, other members, or another state of the way. */
  moved(stats: SharedStats): void
}

export interface GroupSettings {
  readonly offline: Offline
  /** How many processes there are, if the program says so. */
  readonly members?: number | undefined
  readonly random: () => number
  /** Unlike that of any other process. */
  readonly id: string
}
