/**
 * A strategy of one's own for a scope, in place of backoff and rampup: an object that hears what happens and
 * says how fast.
 *
 * ```ts
 * createThrottle({ scopes: { 'api.example': { jitter: false, manager: {
 *   delay: 0,
 *   onBad() { this.delay = 30_000 },
 *   onGood() { this.delay = 0 },
 * } } } })
 * ```
 *
 * The way: an event → the object's method → its `delay` and `concurrency` are read → what changed is
 * configured. The engine never hears of it. The error of an object that throws rejects the request of the
 * call, as the cause. One object may stand behind many scopes; a function makes one for each scope.
 */

import { isObject, keysOf, kindOf, shown } from '../base/checks.js'
import { ManagerError, type Problem } from '../base/errors.js'
import type { ScopeOptions } from '../options/options.js'
import type { Outcome } from '../wasm/engine.js'

/** The event that a manager gets when a request of its scope leaves. */
export interface ManagedSend {
  /** The scope. */
  readonly scope: string
  /** When, in milliseconds of the throttle's clock. */
  readonly at: number
}

/** The event that a manager gets when a request ended. */
export interface ManagedAnswer extends ManagedSend {
  /** The status of the response, if there was one. */
  readonly status: number | undefined
  /** Why there was none. */
  readonly error: unknown
  /** From send to response headers in milliseconds, if there was a response. */
  readonly latency: number | undefined
}

/**
 * Decides how fast one scope goes. `delay` and `concurrency` are read after each call; getters are welcome.
 */
export interface ScopeManager {
  /** A request leaves. */
  onSend?(event: ManagedSend): void
  /** An answer that is not bad. An answer that the caller gave up is neither good nor bad. */
  onGood?(event: ManagedAnswer): void
  /** A bad answer: a status in `backoff.statusCodes`, a failure, or what a hook says. */
  onBad?(event: ManagedAnswer): void
  /** Milliseconds between two sends. Default: the scope's own. */
  readonly delay?: number
  /** Slots. Default: the scope's own. */
  readonly concurrency?: number
}

/** One for each scope by that name. */
export type MakeScopeManager = (scope: string) => ScopeManager

const METHODS = ['onSend', 'onGood', 'onBad'] as const
const WORDS = [...METHODS, 'delay', 'concurrency']

/** Problems of a `manager` setting. */
export function managerProblems(manager: unknown, path: string, isShared: boolean): Problem[] {
  if (manager === undefined || typeof manager === 'function') return []
  if (isShared || !isObject(manager)) {
    const want = isShared
      ? 'a function that makes one for each scope'
      : 'an object or a function that makes one'
    return [{ path, want, got: kindOf(manager) }]
  }
  const problems: Problem[] = []
  if (!WORDS.some((word) => word in manager)) {
    problems.push({ path, want: `one of ${WORDS.join(', ')} in it`, got: keysOf(manager) })
  }
  for (const method of METHODS) {
    const value = (manager as ScopeManager)[method]
    if (value !== undefined && typeof value !== 'function')
      problems.push({ path: `${path}.${method}`, want: 'a function', got: kindOf(value) })
  }
  return problems
}

/** Scopes' settings with and without what is for their managers. */
export class ManagedScopes {
  readonly #scopes: Record<string, ScopeOptions>
  readonly #defaults: ScopeOptions
  readonly #managers = new Map<string, { manager: ScopeManager; applied: ScopeOptions }>()

  constructor(scopes: Record<string, ScopeOptions> = {}, defaults: ScopeOptions = {}) {
    this.#scopes = scopes
    this.#defaults = defaults
  }

  /** Whether any scope has a manager. */
  static areIn(
    scopes: Record<string, ScopeOptions> | undefined,
    defaults: ScopeOptions | undefined,
  ): boolean {
    return (
      defaults?.manager !== undefined ||
      Object.values(scopes ?? {}).some((scope) => scope?.manager !== undefined)
    )
  }

  /** The options of a scope when it is made, or made anew. */
  begin(scope: string): ScopeOptions | undefined {
    const known = this.#managers.get(scope)
    if (known) return known.applied
    const own = Object.hasOwn(this.#scopes, scope) ? this.#scopes[scope]?.manager : undefined
    const make = own ?? this.#defaults.manager
    if (make === undefined) return undefined
    const manager = ask(scope, () => (typeof make === 'function' ? make(scope) : make))
    const [problem] = managerProblems(manager, 'manager', false)
    if (problem || typeof manager !== 'object') {
      const { want, got } = problem ?? { want: 'an object', got: shown(manager) }
      throw new ManagerError('manager', `for ${scope}: want ${want}; got ${got}`)
    }
    const applied = paceOf(scope, manager)
    this.#managers.set(scope, { manager, applied })
    return applied
  }

  /**
   * Forgets those that a function made for scopes without a name in the settings: the engine forgets idle
   * ones, too.
   */
  forget(): void {
    for (const scope of this.#managers.keys())
      if (!Object.hasOwn(this.#scopes, scope)) this.#managers.delete(scope)
  }

  /** How many there are. */
  get size(): number {
    return this.#managers.size
  }

  /** Tells that a request leaves; gives what that changes. */
  onSend(scope: string, at: number): ScopeOptions | undefined {
    return this.#notify(scope, (manager) => manager.onSend?.({ scope, at }))
  }

  /** Tells of an answer that the engine has judged; gives what that changes. */
  onAnswer(scope: string, at: number, isBad: boolean, outcome: Outcome): ScopeOptions | undefined {
    const { status, error, latencyMs } = outcome
    const event = { scope, at, status, error, latency: latencyMs }
    return this.#notify(scope, (manager) => (isBad ? manager.onBad?.(event) : manager.onGood?.(event)))
  }

  #notify(scope: string, call: (manager: ScopeManager) => void): ScopeOptions | undefined {
    const entry = this.#managers.get(scope)
    if (!entry) return undefined
    ask(scope, () => call(entry.manager))
    const pace = paceOf(scope, entry.manager)
    if (pace.delay === entry.applied.delay && pace.concurrency === entry.applied.concurrency) return undefined
    entry.applied = pace
    return pace
  }
}

/** The engine's options of a scope: that it has a manager, not which. */
export function withManagerMarked(options: ScopeOptions): ScopeOptions {
  const isMarked = isObject(options) && options.manager !== undefined
  return isMarked ? { ...options, manager: true as never } : options
}

function paceOf(scope: string, manager: ScopeManager): ScopeOptions {
  const { delay, concurrency } = ask(scope, () => ({
    delay: manager.delay,
    concurrency: manager.concurrency,
  }))
  return { ...(delay === undefined ? {} : { delay }), ...(concurrency === undefined ? {} : { concurrency }) }
}

function ask<T>(scope: string, call: () => T): T {
  try {
    return call()
  } catch (cause) {
    throw new ManagerError('manager', `of ${scope} failed`, { cause })
  }
}
