/**
 * What a group tells people: warnings, and that it changed.
 *
 * The trap is a warning that names no cause: each says what happened, why, and what follows.
 */
import type { SharedStats } from '../wasm/types.js'
import type { GroupLink } from './group-link.js'
import type { Offline } from './transport.js'

export class Told {
  readonly #link: GroupLink
  /** The writer, the members and the way as they were told. */
  #state = 'undefined undefined true'

  constructor(link: GroupLink) {
    this.#link = link
  }

  /** Another writer, other members, or another state of the way, if it is so. */
  moved(stats: SharedStats): void {
    const state = `${stats.writer} ${stats.members} ${stats.offlineSince === undefined}`
    if (state === this.#state) return
    this.#state = state
    this.#link.moved(stats)
  }

  /** A message is none. */
  wrong(text: string): void {
    this.#link.warn('shared-message', `a message is not well formed, and dropped: ${text.slice(0, 200)}`)
  }

  /** A message is well formed, and nothing can be done with it. */
  senseless(from: string, error: unknown): void {
    const why = (error as Error).message
    this.#link.warn('shared-message', `a message of ${from} makes no sense (${why}), and is dropped`)
  }

  /** A memory is none. */
  unreadable(error: unknown): void {
    const why = `what the writer remembered cannot be read (${(error as Error).message})`
    this.#link.warn('shared-memory', `${why}: the group goes on without it`)
  }

  version(): void {
    this.#link.warn('shared-version', 'a process of another version shares the limit: it is not understood')
  }

  online(): void {
    this.#link.warn('shared-online', 'the way to those that share the limit is open again')
  }

  deaf(): void {
    const what = 'the connection that hears the group is open and carries nothing: it is made anew'
    this.#link.warn('shared-deaf', what)
  }

  /** The way is broken for long. `asked` is what the program wants then, `offline` what is done. */
  offline(asked: Offline, offline: Offline, size: number | undefined, cause: unknown): void {
    const unknown = 'waits, since it never heard of the others: `members` says how many there are'
    const wait = offline === asked ? 'waits' : unknown
    const what = { divide: `goes on alone with one ${size}th of every limit`, wait, fail: 'fails' }
    const why = (cause as Error | undefined)?.message ?? String(cause)
    const message = `the way to those that share the limit is broken (${why}): this process `
    this.#link.warn('shared-offline', message + what[offline])
  }
}
