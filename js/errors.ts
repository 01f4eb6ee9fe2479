/**
 * What can go wrong, as classes with a `code`.
 *
 * The trap is an error that loses its text on the way out of WebAssembly: the engine hands out data, and the
 * messages are made here.
 */

/** One thing that is wrong with the options. */
export interface Problem {
  /** Where: `scopes."api.example".backoff.factor`. */
  readonly path: string
  /** What would have been right. */
  readonly want: string
  /** What stood there. */
  readonly got: string
}

/** The base of all errors that a throttle throws by itself. An aborted wait rejects with `signal.reason` instead. */
export class ThrottleError extends Error {
  /** Which error this is, for programs. */
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.code = code
  }
}

/** Input that makes no sense, with all of its problems at once. */
class ProblemsError extends ThrottleError {
  /** The path of the first problem. */
  readonly path: string
  /** Every problem. */
  readonly problems: readonly Problem[]

  constructor(code: string, whole: string, problems: readonly Problem[]) {
    const lines = problems.map(({ path, want, got }) => `${path || whole}: want ${want}; got ${got}`)
    super(code, lines.join('\n'))
    this.path = problems[0]?.path ?? ''
    this.problems = problems
  }
}

/** The options hold something that makes no sense. */
export class ConfigError extends ProblemsError {
  constructor(problems: readonly Problem[]) {
    super('ERR_CONFIG', 'options', problems)
  }
}

/** The snapshot is none, is damaged, or comes from a newer release. Nothing of it was used. */
export class SnapshotError extends ProblemsError {
  constructor(problems: readonly Problem[]) {
    super('ERR_SNAPSHOT', 'snapshot', problems)
  }
}

/** As many requests wait as `maxWaiting` allows. */
export class QueueFullError extends ThrottleError {
  constructor() {
    super('ERR_QUEUE_FULL', 'as many requests wait as maxWaiting allows')
  }
}

/** The request waited as long as its `timeout` allows. */
export class TimeoutError extends ThrottleError {
  constructor(timeoutMs: number) {
    super('ERR_TIMEOUT', `the request waited ${timeoutMs} ms for permission, as long as its timeout allows`)
  }
}

/** The request costs more than the whole quota of a scope: it could never be sent. */
export class CostExceedsQuotaError extends ThrottleError {
  constructor() {
    super('ERR_COST_EXCEEDS_QUOTA', 'the request costs more than the whole quota of a scope')
  }
}

/** The throttle was closed. `cause` is what `close` was given. */
export class ClosedError extends ThrottleError {
  constructor(cause?: unknown) {
    super('ERR_CLOSED', 'the throttle is closed', { cause })
  }
}
