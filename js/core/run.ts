/**
 * `run`: a function that is called with permission, and heard when it is done.
 *
 * The trap is a function that never ends: with `requestTimeout` its slots come back all the same.
 */
import { outcomeOfError, outcomeOfResult } from '../fetch/outcome.js'
import type { Desk } from './desk.js'
import { ManagerError, TimeoutError } from './errors.js'
import type { Permit, PermitOutcome } from './permit.js'
import type { RunOptions } from './requests.js'

/** What is run. */
export type Work<T> = (permit: Permit) => T | PromiseLike<T>

export class Runner {
  readonly #desk: Desk
  readonly #requestTimeout: number | undefined

  constructor(desk: Desk, requestTimeout: number | undefined) {
    this.#desk = desk
    this.#requestTimeout = requestTimeout
  }

  run<T>(permit: Permit | Promise<Permit>, work: Work<T>, options: RunOptions): Promise<T> {
    return permit instanceof Promise
      ? permit.then((given) => this.#work(given, work, options, false))
      : this.#work(permit, work, options, true)
  }

  /** `work` is never called before `run` has returned. */
  async #work<T>(permit: Permit, work: Work<T>, options: RunOptions, isAtOnce: boolean): Promise<T> {
    if (isAtOnce) {
      this.#desk.driver.given(permit)
      await undefined
    }
    this.#desk.driver.begun(permit)
    let result: T
    try {
      result = await this.within(() => {
        const worked = work(permit)
        this.#desk.driver.late(permit)
        return worked
      }, options.requestTimeout)
    } catch (error) {
      settle(permit, outcomeOfError(error, options.signal))
      throw error
    }
    settle(permit, outcomeOfResult(result))
    return result
  }

  /** What `call` gives, unless it takes longer than an answer may. */
  within<T>(call: () => T | PromiseLike<T>, timeout = this.#requestTimeout): T | PromiseLike<T> {
    if (timeout === undefined) return call()
    return new Promise((resolve, reject) => {
      const alarm = this.#desk.driver.alarm(timeout, () => reject(new TimeoutError(timeout, true)))
      const over = () => alarm.cancel()
      Promise.resolve().then(call).finally(over).then(resolve, reject)
    })
  }
}

/** What the work gave is the caller's, also where its headers cannot be read. */
function settle(permit: Permit, outcome: PermitOutcome | undefined): void {
  try {
    permit.settle(outcome)
  } catch (error) {
    if (error instanceof ManagerError) throw error
  }
}
