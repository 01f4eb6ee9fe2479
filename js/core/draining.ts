/** A throttle that takes in no more, and what was taken in before: that goes on until it is over. */
import type { ClosedError } from '../base/errors.js'
import type { Nesting } from './nesting.js'
import type { Inside, Wait } from './permit.js'

export class Draining {
  readonly #nesting: Nesting
  readonly #rest: () => void
  #error: ClosedError | undefined
  #resolve: (() => void) | undefined
  /** Functions of `run` that are not done. */
  #jobs = 0

  /** `rest` looks whether the throttle is idle. */
  constructor(nesting: Nesting, rest: () => void) {
    this.#nesting = nesting
    this.#rest = rest
  }

  /** Whether it takes in no more. */
  get isOn(): boolean {
    return this.#error !== undefined
  }

  /** @throws {ClosedError} for a request that is new: no hop, no retry, no call inside a function. */
  check({ isTaken }: Wait, inside: Inside): void {
    if (this.#error && !isTaken && !inside && !this.#nesting.isTraced()) throw this.#error
  }

  /** Takes in no more. Resolves when what was taken in is over, functions too. */
  begin(error: ClosedError): Promise<void> {
    this.#error = error
    return new Promise((resolve) => {
      this.#resolve = resolve
      this.#rest()
    })
  }

  /** A function is called; `done` follows when what it gives is there. */
  began(): void {
    this.#jobs++
  }

  done(): void {
    this.#jobs--
    if (this.#resolve) queueMicrotask(this.#rest)
  }

  /** The throttle is idle. */
  idle(): void {
    if (this.#jobs === 0) this.#resolve?.()
  }
}
