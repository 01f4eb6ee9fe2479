/**
 * Callers that leave when a signal is aborted: one listener for each signal, however many wait with it. A
 * whole crawl may have one controller: Node warns of a leak at its eleventh listener.
 */

/** A caller who leaves. */
export interface Abortable {
  abort(reason: unknown): void
}

export class Aborts {
  readonly #groups = new WeakMap<AbortSignal, Group>()

  /** The signal, if there is one, must not be aborted yet. */
  add(signal: AbortSignal | null | undefined, member: Abortable): void {
    if (!signal) return
    let group = this.#groups.get(signal)
    if (group === undefined) {
      group = new Group(signal)
      this.#groups.set(signal, group)
    }
    group.add(member)
  }

  remove(signal: AbortSignal | null | undefined, member: Abortable): void {
    if (signal) this.#groups.get(signal)?.remove(member)
  }

  /** The promise's result, unless the signal is aborted first. */
  race<T>(promise: Promise<T>, signal: AbortSignal | null): Promise<T> {
    return new Promise((resolve, reject) => {
      const member = { abort: reject }
      if (signal?.aborted) reject(signal.reason)
      else this.add(signal, member)
      promise.finally(() => this.remove(signal, member)).then(resolve, reject)
    })
  }
}

class Group {
  readonly #signal: AbortSignal
  readonly #members = new Set<Abortable>()

  constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  add(member: Abortable): void {
    if (this.#members.size === 0) this.#signal.addEventListener('abort', this)
    this.#members.add(member)
  }

  remove(member: Abortable): void {
    if (this.#members.delete(member) && this.#members.size === 0)
      this.#signal.removeEventListener('abort', this)
  }

  handleEvent(): void {
    const members = [...this.#members]
    this.#members.clear()
    this.#signal.removeEventListener('abort', this)
    for (const member of members) member.abort(this.#signal.reason)
  }
}
