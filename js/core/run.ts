/**
 * `run`: a function that is called with permission, and heard when it is done. With `requestTimeout` the
 * slots of one that never ends come back.
 */
import { answerOfError, answerOfResult, responseOf } from '../answers/answer.js'
import { ManagerError, RetryAfterTooLongError } from '../base/errors.js'
import { RETRY_MAX_RETRY_AFTER } from '../options/generated.js'
import type { RetryOptions, ThrottleOptions } from '../options/options.js'
import { copyOf, type RetryWhen } from '../scopes/hooks.js'
import { FRAME } from './nesting.js'
import { Pause } from './pause.js'
import type { Permit, PermitOutcome, Verdict, Wait } from './permit.js'
import { type RunOptions, retriesOf } from './requests.js'
import type { Scheduler } from './scheduler.js'

/** To wait for it costs less than for `undefined`, of which a promise is made each time. */
const SOON = /* @__PURE__ */ Promise.resolve()

/** Priority bonus of a call that has a refusal to report. */
const FIRST = 1e9

/** The function to run. */
export type Work<T> = (permit: Permit) => T | PromiseLike<T>

/** One call of `run`, all of its attempts. */
interface Run<T> {
  readonly work: Work<T>
  readonly options: RunOptions
  /** When it came in, where a `maxWait` asks for it. */
  readonly since: number | undefined
  /** How often its function is called again, where its options say it: until its first permit has it. */
  retries: number | undefined
}

/** The result of a function, or its error. */
type Ended<T> = { readonly result: T } | { readonly error: unknown }

/** How the next attempt waits. */
function waitOf({ options, since }: Run<unknown>): Wait {
  const { signal = null, priority, cost, maxWait } = options
  return { signal, priority, cost, maxWait, since, isTaken: true }
}

export class Runner {
  readonly #scheduler: Scheduler
  readonly #requestTimeout: number | undefined
  readonly #retry: RetryOptions | undefined

  constructor(
    scheduler: Scheduler,
    { requestTimeout, retry }: Pick<ThrottleOptions, 'requestTimeout' | 'retry'>,
  ) {
    this.#scheduler = scheduler
    this.#requestTimeout = requestTimeout
    this.#retry = retry
  }

  /** @throws {ConfigError} for a `retry` of a call that makes no sense. */
  check(retry: RunOptions['retry']): void {
    retriesOf(retry, this.#retry)
  }

  run<T>(permit: Permit | Promise<Permit>, work: Work<T>, options: RunOptions): Promise<T> {
    const since = options.maxWait === undefined ? undefined : this.#scheduler.clock.now()
    const retries = options.retry ? retriesOf(options.retry, this.#retry) : undefined
    const run: Run<T> = { work, options, since, retries }
    return permit instanceof Promise
      ? permit.then((granted) => this.#work(granted, run, false))
      : this.#work(permit, run, true)
  }

  /**
   * `work` is never called before `run` has returned. Its frame has a name by which calls inside it are known
   * (`nesting.ts`).
   */
  readonly #work = {
    [FRAME]: async <T>(permit: Permit, run: Run<T>, isAtOnce: boolean): Promise<T> => {
      const { driver } = this.#scheduler
      const { work, options } = run
      if (isAtOnce) {
        driver.granted(permit)
        await SOON
      }
      driver.started(permit)
      permit.outer = options.signal ?? null
      if (run.retries !== undefined) {
        permit.left = run.retries
        run.retries = undefined
      }
      if (permit.left) permit.again = waitOf(run)
      const timeout = options.requestTimeout ?? this.#requestTimeout
      let ended: Ended<T>
      let answer: PermitOutcome | undefined
      this.#scheduler.draining.began()
      try {
        const result = await (timeout === undefined
          ? this.#call(permit, work)
          : this.#limited(permit, work, timeout))
        ended = { result }
        answer = answerOfResult(result)
      } catch (error) {
        ended = { error }
        answer = answerOfError(error, options.signal)
      }
      this.#scheduler.nesting.over(permit)
      this.#scheduler.draining.done()
      const when = this.#retry?.when
      if (when && answer && 'result' in ended && !permit.isSettled)
        if (await this.#isRefused(permit, when, ended.result)) answer = { ...answer, backoff: true }
      const again = this.#end(permit, answer, run, ended)
      if (again === undefined) {
        if ('error' in ended) throw ended.error
        return ended.result
      }
      return this.#work(await again, run, false)
    },
  }[FRAME]!

  /** Whether the caller calls an answer a refusal. */
  async #isRefused(permit: Permit, when: RetryWhen, result: unknown): Promise<boolean> {
    try {
      return await when(copyOf(responseOf(result) ?? result))
    } catch (cause) {
      permit.again = undefined
      permit.settle(answerOfResult(result))
      throw new ManagerError('retry.when', 'failed for what a function gave', { cause })
    }
  }

  /**
   * Settles, and gives what the next call of the function waits for, if there is one. If the permit was
   * settled while the function ran, that verdict decides. If its request had a good answer then, and the
   * function throws a refusal or a failure, the later word counts, too.
   */
  #end<T>(
    permit: Permit,
    answer: PermitOutcome | undefined,
    run: Run<T>,
    ended: Ended<T>,
  ): Promise<Permit> | undefined {
    const isBad =
      answer !== undefined && (answer.error !== undefined || answer.status! >= 400 || answer.backoff === true)
    if (!permit.isSettled) {
      if (isBad && this.#retry !== undefined && run.options.retry === undefined) this.#warn(answer)
      try {
        permit.settle(answer)
      } catch (error) {
        // The caller gets the result of the work, also where its headers cannot be read.
        if (error instanceof ManagerError) throw error
      }
    }
    if (permit.verdict) {
      const { verdict, askedMs } = permit.verdict
      return this.#next(permit, verdict, askedMs, run, ended)
    }
    let last = permit
    while (last.next) last = last.next
    if (!isBad || 'result' in ended || last === permit || !last.isGood) return undefined
    const heard = this.#hear(last, answer, run)
    if (permit.left && last.left) {
      permit.left = last.left
      return heard.then(
        ([verdict, askedMs]) =>
          this.#next(permit, verdict, askedMs, run, ended) ?? Promise.reject(ended.error),
      )
    }
    heard.catch(() => {})
    return undefined
  }

  /**
   * Tells the engine a refusal of a request that was settled. It takes a permit of no cost that is before all
   * others, so no request leaves at the old pace meanwhile.
   */
  async #hear<T>(last: Permit, later: PermitOutcome, run: Run<T>): Promise<[Verdict, number]> {
    const scheduler = this.#scheduler
    const wait = waitOf(run)
    let permit = last
    if (last.isSettled) {
      const { signal } = wait
      const scopes = { scopes: Object.fromEntries(last.scopes.map((name) => [name, 0])) }
      permit = await scheduler.request(scopes.scopes, last.target, {
        signal: signal!,
        priority: FIRST,
        inside: false,
        isTaken: true,
      })
      permit.left = last.left
      scheduler.driver.started(permit)
    }
    const verdict = scheduler.retry(permit, { ...later, adjustDelay: false }, wait, false)
    return [verdict, scheduler.askedMs]
  }

  /** The next step after a verdict. */
  #next<T>(
    permit: Permit,
    verdict: Verdict,
    askedMs: number,
    run: Run<T>,
    ended: Ended<T>,
  ): Promise<Permit> | undefined {
    if (verdict === 'too-long' && 'result' in ended) {
      const { maxRetryAfter = RETRY_MAX_RETRY_AFTER } = this.#retry ?? {}
      throw new RetryAfterTooLongError(askedMs, maxRetryAfter, ended.result as Response)
    }
    if (typeof verdict === 'object') return verdict
    if (verdict !== 'not-replayable') return undefined
    // It begins anew.
    const { scopes, cost, target, left } = permit
    const named =
      typeof cost === 'number'
        ? [...scopes]
        : Object.fromEntries(scopes.map((name, index) => [name, cost[index]!]))
    const again = this.#scheduler.request(named, target, {
      ...waitOf(run),
      delay: askedMs,
      inside: permit.around,
    })
    if (!(again instanceof Promise)) this.#scheduler.driver.granted(again)
    return Promise.resolve(again).then((permit) => Object.assign(permit, { left: left! - 1 }))
  }

  #warn({ status = 0, error }: PermitOutcome): void {
    if (error === undefined && status !== 429 && status < 500) return
    const what = 'retry has no effect on functions of run, map or wrap'
    const how = '{ retry: true } of their own calls them again'
    this.#scheduler.warnings.once('no-effect', `${what}: ${how}`, undefined, 'retry')
  }

  #call<T>(permit: Permit, work: Work<T>): T | PromiseLike<T> {
    const worked = this.#scheduler.nesting.call(permit, work)
    // When in a function its request was sent is not known.
    this.#scheduler.driver.reportLateStart(permit, false)
    return worked
  }

  /** The same, with an end; what the function does is aborted with it. */
  #limited<T>(permit: Permit, work: Work<T>, timeout: number): T | PromiseLike<T> {
    permit.stop = new AbortController()
    const named = { [FRAME]: async () => await this.#call(permit, work) }[FRAME]!
    const abort = (error: unknown) => permit.stop?.abort(error)
    permit.pause = new Pause()
    return this.within(named, timeout, abort, permit.pause)
  }

  /** The result of `call`, unless it takes longer than an answer may. */
  within<T>(
    call: () => T | PromiseLike<T>,
    timeout = this.#requestTimeout,
    abort: (error: unknown) => void = () => {},
    pause?: Pause,
  ): T | PromiseLike<T> {
    if (timeout === undefined) return call()
    return this.#scheduler.driver.within(Promise.resolve().then(call), timeout, abort, pause)
  }
}
