/**
 * `run`: a function that is called with permission, and heard when it is done.
 *
 * The trap is a function that never ends: with `requestTimeout` its slots come back all the same.
 */
import { outcomeOfError, outcomeOfResult } from '../fetch/outcome.js'
import type { Desk } from './desk.js'
import { ManagerError, TimeoutError } from './errors.js'
import { FRAME } from './nesting.js'
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

  /**
   * `work` is never called before `run` has returned. Its frame has a name by which calls inside it are known
   * (`nesting.ts`).
   */
  readonly #work = {
    [FRAME]: async <T>(permit: Permit, work: Work<T>, options: RunOptions, isAtOnce: boolean): Promise<T> => {
      const { driver, nesting } = this.#desk
      if (isAtOnce) {
        driver.given(permit)
        await undefined
      }
      driver.begun(permit)
      permit.outer = options.signal ?? null
      const timeout = options.requestTimeout ?? this.#requestTimeout
      let result: T
      try {
        result = await (timeout === undefined
          ? this.#call(permit, work)
          : this.#limited(permit, work, timeout))
      } catch (error) {
        nesting.over(permit)
        settle(permit, outcomeOfError(error, options.signal))
        throw error
      }
      nesting.over(permit)
      settle(permit, outcomeOfResult(result))
      return result
    },
  }[FRAME]!

  #call<T>(permit: Permit, work: Work<T>): T | PromiseLike<T> {
    const worked = this.#desk.nesting.call(permit, work)
    this.#desk.driver.late(permit)
    return worked
  }

  /** The same, with an end; what the function does is aborted with it. */
  #limited<T>(permit: Permit, work: Work<T>, timeout: number): T | PromiseLike<T> {
    permit.stop = new AbortController()
    const named = { [FRAME]: async () => await this.#call(permit, work) }[FRAME]!
    const abort = (error: unknown) => permit.stop?.abort(error)
    return this.within(named, timeout, abort)
  }

  /** What `call` gives, unless it takes longer than an answer may. */
  within<T>(
    call: () => T | PromiseLike<T>,
    timeout = this.#requestTimeout,
    abort: (error: unknown) => void = () => {},
  ): T | PromiseLike<T> {
    if (timeout === undefined) return call()
    return new Promise((resolve, reject) => {
      const alarm = this.#desk.driver.alarm(timeout, () => {
        const error = new TimeoutError(timeout, true)
        reject(error)
        abort(error)
      })
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
