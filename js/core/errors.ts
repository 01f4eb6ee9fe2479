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

/** Calls a module, which throws its problems as data, and throws them as an error. */
export function withProblems<T>(Kind: typeof ConfigError | typeof SnapshotError, call: () => T): T {
  try {
    return call()
  } catch (thrown) {
    if (!Array.isArray(thrown)) throw thrown
    const problems = (thrown as [string, string, string][]).map(
      ([path, want, got]): Problem => ({ path, want, got }),
    )
    throw new Kind(problems)
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

/** The server asked for a longer wait than `retry.maxRetryAfter`. The response is there, its body unread. */
export class RetryAfterTooLongError extends ThrottleError {
  /** How long the server asked for, in milliseconds. */
  readonly retryAfterMs: number
  /** The response that asked. */
  readonly response: Response

  constructor(retryAfterMs: number, most: number, response: Response) {
    const asked = `the server asks to wait ${retryAfterMs} ms, more than maxRetryAfter (${most} ms)`
    super('ERR_RETRY_AFTER_TOO_LONG', `${asked}: status ${response.status}`)
    this.retryAfterMs = retryAfterMs
    this.response = response
  }
}

/** The request would be sent again, but its body is a stream that was read: give a string, a buffer or a `Request`. */
export class BodyNotReplayableError extends ThrottleError {
  constructor() {
    super('ERR_BODY_NOT_REPLAYABLE', 'the request cannot be sent again: its body is a stream that was read')
  }
}

/** robots.txt does not allow the URL, or could not be had, which RFC 9309 wants treated alike. */
export class DisallowedError extends ThrottleError {
  constructor(message: string, options?: ErrorOptions) {
    super('ERR_DISALLOWED', message, options)
  }
}

/** What waited for a host that only ever refuses, when a `stall` listener called `fail()`. */
export class StalledError extends ThrottleError {
  /** The scope. */
  readonly scope: string

  constructor(scope: string, forMs: number) {
    super('ERR_STALLED', `${scope} has answered only badly for ${Math.round(forMs / 1000)} s`)
    this.scope = scope
  }
}

/** A hook of yours failed, or gave what makes no sense. It fails its own request only; `cause` is what it threw. */
export class ManagerError extends ThrottleError {
  /** Which hook. */
  readonly hook: string

  constructor(hook: string, what: string, options?: ErrorOptions) {
    super('ERR_MANAGER', `${hook} ${what}`, options)
    this.hook = hook
  }
}
