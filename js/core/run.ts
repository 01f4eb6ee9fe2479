/**
 * `run`: a function that is called with permission, and heard when it is done. With `requestTimeout` the
 * slots of one that never ends come back.
 */
import { type Answer, answerOfError, answerOfResult } from '../answers/answer.js'
import { ManagerError } from '../base/errors.js'
import type { RetryOptions, ThrottleOptions } from '../options/options.js'
import type { Desk } from './desk.js'
import { FRAME } from './nesting.js'
import type { Permit } from './permit.js'
import { type RunOptions, retryOf } from './requests.js'

/** To wait for it costs less than for `undefined`, of which a promise is made each time. */
const SOON = /* @__PURE__ */ Promise.resolve()

/** What is run. */
export type Work<T> = (permit: Permit) => T | PromiseLike<T>

export class Runner {
  readonly #desk: Desk
  readonly #requestTimeout: number | undefined
  readonly #retry: RetryOptions | undefined

  constructor(desk: Desk, { requestTimeout, retry }: Pick<ThrottleOptions, 'requestTimeout' | 'retry'>) {
    this.#desk = desk
    this.#requestTimeout = requestTimeout
    this.#retry = retry
  }

  /** @throws {ConfigError} for a `retry` of a call that makes no sense. */
  check(retry: RunOptions['retry']): void {
    retryOf(retry, this.#retry)
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
    [FRAME]: async <T>(
      permit: Permit,
      work: Work<T>,
      options: RunOptions,
      isAtOnce: boolean,
      left?: number,
    ): Promise<T> => {
      const { driver } = this.#desk
      if (isAtOnce) {
        driver.given(permit)
        await SOON
      }
      driver.begun(permit)
      permit.outer = options.signal ?? null
      if (options.retry) permit.retry = retryOf(options.retry, this.#retry)
      const timeout = options.requestTimeout ?? this.#requestTimeout
      let result: T
      let again: Promise<Permit> | undefined
      try {
        result = await (timeout === undefined
          ? this.#call(permit, work)
          : this.#limited(permit, work, timeout))
        again = this.#end(permit, answerOfResult(result), options, left)
      } catch (error) {
        again = this.#end(permit, answerOfError(error, options.signal), options, left)
        if (again === undefined) throw error
      }
      if (again === undefined) return result!
      return this.#work(await again, work, options, false, (left ?? permit.retry?.limit ?? 0) - 1)
    },
  }[FRAME]!

  /** Settles, and gives what the next call of the function waits for, if there is one. */
  #end(
    permit: Permit,
    answer: Answer | undefined,
    options: RunOptions,
    left = permit.retry?.limit ?? 0,
  ): Promise<Permit> | undefined {
    this.#desk.nesting.over(permit)
    try {
      const isBad = answer !== undefined && (answer.error !== undefined || answer.status! >= 400)
      if (isBad && !permit.isSettled) {
        if (left > 0) {
          const verdict = this.#desk.retry(permit, answer, options, true)
          return typeof verdict === 'object' ? verdict : undefined
        }
        if (this.#retry !== undefined && options.retry === undefined) this.#warn()
      }
      permit.settle(answer)
    } catch (error) {
      // What the work gave is the caller's, also where its headers cannot be read.
      if (error instanceof ManagerError) throw error
    }
    return undefined
  }

  #warn(): void {
    const what = 'retry has no effect on functions of run, map or wrap'
    this.#desk.warnings.once('no-effect', `${what}: { retry: true } of their own calls them again`)
  }

  #call<T>(permit: Permit, work: Work<T>): T | PromiseLike<T> {
    const worked = this.#desk.nesting.call(permit, work)
    // When in a function its request was sent is not known.
    this.#desk.driver.late(permit, false)
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
    return this.#desk.driver.within(Promise.resolve().then(call), timeout, abort)
  }
}
