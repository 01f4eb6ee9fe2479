/** The errors, as classes with a `code`. The engine hands out data, and the messages are made here. */

/** One thing that is wrong with the options. */
export interface Problem {
  /** Where: `scopes."api.example".backoff.factor`. */
  readonly path: string
  /** The expected value. */
  readonly want: string
  /** The value that was found. */
  readonly got: string
}

/**
 * The base of all errors that a throttle throws by itself. An aborted wait rejects with `signal.reason`
 * instead.
 */
export class ThrottleError extends Error {
  /** Which error this is, for programs. */
  readonly code: string

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = nameOf(code)
    this.code = code
  }
}

/** `ERR_QUEUE_FULL`: `QueueFullError`. The name of the class is what a bundler shortens. */
function nameOf(code: string): string {
  const words = code.slice(4).toLowerCase()
  return `${words.replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase())}Error`
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
  declare readonly code: 'ERR_CONFIG'

  constructor(problems: readonly Problem[]) {
    super('ERR_CONFIG', 'options', problems)
  }
}

/** The snapshot is none, is damaged, or comes from a newer release. No part of it was used. */
export class SnapshotError extends ProblemsError {
  declare readonly code: 'ERR_SNAPSHOT'

  constructor(problems: readonly Problem[]) {
    super('ERR_SNAPSHOT', 'snapshot', problems)
  }
}

type Kind = new (problems: readonly Problem[]) => ThrottleError

/** The error for a module's exception: its problems come as data. */
export function asProblems(Made: Kind, thrown: unknown): unknown {
  if (!Array.isArray(thrown)) return thrown
  return new Made(thrown.map(([path, want, got]) => ({ path, want, got })))
}

/** Calls a module, and throws its problems as an error. */
export function withProblems<T>(Made: Kind, call: () => T): T {
  try {
    return call()
  } catch (thrown) {
    throw asProblems(Made, thrown)
  }
}

/** The request waited as long as its `maxWait` allows, or was not answered within its `requestTimeout`. */
export class TimeoutError extends ThrottleError {
  declare readonly code: 'ERR_TIMEOUT'
  /** Whether it was sent: then its `requestTimeout` has ended it, else its `maxWait`. */
  readonly isSent: boolean

  /** `heldMs`: a hold keeps it for so long, which is known before it waits. */
  constructor(timeoutMs: number, isSent = false, heldMs?: number) {
    const [timeout, held] = [Math.round(timeoutMs), Math.round(heldMs ?? 0)]
    super(
      'ERR_TIMEOUT',
      isSent
        ? `the request was not answered within ${timeout} ms, its requestTimeout`
        : heldMs === undefined
          ? `the request waited ${timeout} ms for permission, as long as its maxWait allows`
          : `the request would be held for ${held} ms, longer than its maxWait, ${timeout} ms`,
    )
    this.isSent = isSent
  }
}

/** `autothrottle/slim` has no module: `initialize` was not awaited, or could not bring it in. */
export class NotInitializedError extends ThrottleError {
  declare readonly code: 'ERR_NOT_INITIALIZED'

  constructor(message = 'await initialize(…) before the first throttle', options?: ErrorOptions) {
    super('ERR_NOT_INITIALIZED', `autothrottle/slim: ${message}`, options)
  }
}

/** The request costs more than a scope's whole quota, or its rate's burst: it could never be sent. */
export class CostExceedsQuotaError extends ThrottleError {
  declare readonly code: 'ERR_COST_EXCEEDS_QUOTA'
  /** The scope, where the engine names it. */
  readonly scope: string | undefined
  /** The setting that holds the quota: `scopes."api.example".quota`. */
  readonly path: string | undefined

  constructor(scope?: string, path?: string) {
    const whole = scope === undefined ? 'a scope' : `${scope}${path === undefined ? '' : ` (${path})`}`
    super('ERR_COST_EXCEEDS_QUOTA', `the request costs more than ${whole} ever allows`)
    this.scope = scope
    this.path = path
  }
}

/** The throttle was closed, or drains. `cause` is what `close` was given. */
export class ClosedError extends ThrottleError {
  declare readonly code: 'ERR_CLOSED'

  constructor(cause?: unknown, isDraining = false) {
    super('ERR_CLOSED', isDraining ? 'the throttle drains: it takes in no more' : 'the throttle is closed', {
      cause,
    })
  }
}

/** The server asked for a longer wait than `retry.maxRetryAfter`. The response is there, its body unread. */
export class RetryAfterTooLongError extends ThrottleError {
  declare readonly code: 'ERR_RETRY_AFTER_TOO_LONG'
  /** How long the server asked for, in milliseconds. */
  readonly retryAfterMs: number
  /** The response that asked; of `run`, what the function gave. */
  readonly response: Response

  constructor(retryAfterMs: number, most: number, response: Response) {
    const asked = `the server asks to wait ${retryAfterMs} ms, more than maxRetryAfter (${most} ms)`
    const { status } = (response as Response | undefined) ?? {}
    super('ERR_RETRY_AFTER_TOO_LONG', status === undefined ? asked : `${asked}: status ${status}`)
    this.retryAfterMs = retryAfterMs
    this.response = response
  }
}

/** The advice for calls inside of functions and hooks. */
export const HOW_TO_NEST =
  'functions of run, map or wrap call the fetch that they are given, ({ fetch }) => fetch(url),' +
  ' hooks and a fetch of yours another throttle'

/**
 * A call inside a function of `run`, `map` or `wrap` waits for the slot that its function holds, in a runtime
 * that cannot know it. A call inside a hook waits for it in all runtimes.
 */
export class NestedError extends ThrottleError {
  declare readonly code: 'ERR_NESTED'

  constructor(url: string) {
    super('ERR_NESTED', `${url} waits for a slot that its own function holds: ${HOW_TO_NEST}`)
  }
}

/** robots.txt does not allow the URL, or could not be had, which RFC 9309 wants treated alike. */
export class DisallowedError extends ThrottleError {
  declare readonly code: 'ERR_DISALLOWED'
  /** It could not be had: another try, a minute later, may allow the URL. */
  readonly isUnavailable: boolean

  constructor(message: string, isUnavailable = false, options?: ErrorOptions) {
    super('ERR_DISALLOWED', message, options)
    this.isUnavailable = isUnavailable
  }
}

// written by `cargo xtask write`: errors

/** As many requests wait as `maxWaiting` allows. */
export class QueueFullError extends ThrottleError {
  declare readonly code: 'ERR_QUEUE_FULL'

  constructor() {
    super(
      'ERR_QUEUE_FULL',
      'as many requests wait as maxWaiting allows: send less, or pull work with throttle.map',
    )
  }
}

/** A call into the engine was broken off, so what it decides can no longer be trusted. */
export class EngineBrokenError extends ThrottleError {
  declare readonly code: 'ERR_ENGINE_BROKEN'

  constructor(options?: ErrorOptions) {
    super(
      'ERR_ENGINE_BROKEN',
      'an error broke off a call into the engine, most likely a stack overflow that your program caught: end that recursion, and make a new throttle',
      options,
    )
  }
}

/**
 * The request would be sent again, but its body is a stream that was read: give a string, a buffer or a
 * `Request`.
 */
export class BodyNotReplayableError extends ThrottleError {
  declare readonly code: 'ERR_BODY_NOT_REPLAYABLE'

  constructor() {
    super(
      'ERR_BODY_NOT_REPLAYABLE',
      'the request cannot be sent again: its body is a stream that was read; give a string or a buffer',
    )
  }
}

/**
 * No answer has come from a scope for `downAfter`, only failed connections and timeouts. One request at a
 * time still leaves, to see whether the server is back.
 */
export class ScopeDownError extends ThrottleError {
  declare readonly code: 'ERR_SCOPE_DOWN'
  /** The scope. */
  readonly scope: string
  /** For how long no answer came, in milliseconds. */
  readonly forMs: number

  constructor(scope: string, forMs: number) {
    super('ERR_SCOPE_DOWN', `${scope} is down: no answer has come for ${Math.round(forMs / 1000)} s`)
    this.scope = scope
    this.forMs = forMs
  }
}

/** The error of requests to a host that refuses all of them, after a `stall` listener called `fail()`. */
export class StalledError extends ThrottleError {
  declare readonly code: 'ERR_STALLED'
  /** The scope. */
  readonly scope: string
  /** For how long it has answered only badly, in milliseconds. */
  readonly forMs: number

  constructor(scope: string, forMs: number) {
    super('ERR_STALLED', `${scope} has answered only badly for ${Math.round(forMs / 1000)} s`)
    this.scope = scope
    this.forMs = forMs
  }
}

/**
 * A hook of yours failed, or gave what makes no sense. It fails its own request only; `cause` is what it
 * threw.
 */
export class ManagerError extends ThrottleError {
  declare readonly code: 'ERR_MANAGER'
  /** Which hook. */
  readonly hook: string

  constructor(hook: string, what: string, options?: ErrorOptions) {
    super('ERR_MANAGER', `${hook} ${what}`, options)
    this.hook = hook
  }
}

/** The page's Content-Security-Policy, or a browser extension's, does not let WebAssembly compile. */
export class WasmBlockedError extends ThrottleError {
  declare readonly code: 'ERR_WASM_BLOCKED'

  constructor(options?: ErrorOptions) {
    super(
      'ERR_WASM_BLOCKED',
      "WebAssembly is blocked: allow 'wasm-unsafe-eval' in script-src of the Content-Security-Policy (docs/runtimes.md)",
      options,
    )
  }
}

// end of what is written
