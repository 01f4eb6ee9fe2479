/** Time that does not count: while the request of a function waits to be sent again, its server is silent. */
export class Pause {
  #spent = 0
  #since: number | undefined
  /** Called once, when the wait is over. */
  ended: (() => void) | undefined

  begin(now: number): void {
    this.#since = now
  }

  end(now: number): void {
    this.#spent = this.spent(now)
    this.#since = undefined
    const { ended } = this
    this.ended = undefined
    ended?.()
  }

  get isOn(): boolean {
    return this.#since !== undefined
  }

  /** Milliseconds up to now that do not count. */
  spent(now: number): number {
    return this.#spent + (this.#since === undefined ? 0 : now - this.#since)
  }
}
