/**
 * Calls inside functions of `run`, `map` and `wrap`: which of them waits for a slot that its own function
 * holds.
 *
 * A call is known to be inside while its function has not returned to us yet, and after an `await` by
 * `AsyncLocalStorage` where that is free (not in Node before 24, where it slows every promise of the
 * process), else by V8's asynchronous stack traces, read only for calls that wait while a function runs. The
 * traps: to guess where a runtime knows neither, and work for those who do not nest.
 */

import { builtin } from '../base/builtin.js'
import { NestedError } from '../base/errors.js'
import { namedScopes, type Scopes, urlTextOf } from '../scopes/names.js'
import { NOTHING, type Permit } from './permit.js'
import type { Waiting } from './waiting.js'
import type { Warnings } from './warnings.js'

/**
 * The function that a call is made in: its permit, `true` for one of those that run, `false` for none,
 * `undefined` before the first look.
 */
export type Inside = Permit | boolean | undefined

/** The name of the frame that awaits a function. */
export const FRAME = 'autothrottle run'
const HERE = new RegExp(`at async .*${FRAME}`)
/**
 * How long a call waits for the slot of a function before its error, in runtimes that do not know whose it
 * is.
 */
export const BLIND_MS = 10_000

interface Storage {
  run<T>(store: Permit, call: (permit: Permit) => T, permit: Permit): T
  getStore(): Permit | undefined
}

export class Nesting {
  readonly #warnings: Warnings
  readonly #running: Permit[] = []
  #here: Permit | undefined
  /** `null` where there is none for free. */
  #storage: Storage | null | undefined
  /** Calls inside functions that wait. */
  #waits = 0

  constructor(warnings: Warnings) {
    this.#warnings = warnings
  }

  /** Calls a function; `over` follows when what it gives is there. */
  call<T>(permit: Permit, work: (permit: Permit) => T): T {
    if (this.#storage === undefined) this.#storage = storage()
    permit.place = this.#running.push(permit) - 1
    const outer = this.#here
    this.#here = permit
    try {
      return this.#storage === null ? work(permit) : this.#storage.run(permit, work, permit)
    } finally {
      this.#here = outer
    }
  }

  over(permit: Permit): void {
    const { place } = permit
    if (place < 0) return
    permit.place = -1
    const last = this.#running.pop()!
    if (last === permit) return
    this.#running[place] = last
    last.place = place
  }

  /** The function that this is known to be called in. */
  get inside(): Permit | undefined {
    return this.#here ?? this.#storage?.getStore()
  }

  /** The same, also by the stack. */
  where(): Inside {
    return this.inside ?? this.isTraced()
  }

  /** Whether the stack says that this is called in a function that runs. */
  isTraced(): boolean {
    return this.#storage === null && this.#running.length > 0 && HERE.test(stack())
  }

  /** The unused permit of the function, if it is one for these scopes. */
  unused(inside: Inside, scopes: Scopes): Permit | undefined {
    const { names } = namedScopes(scopes)
    const all = inside === true ? this.#running : inside ? [inside] : []
    for (const permit of all) {
      const isSame =
        permit.scopes.length === names.length && names.every((name) => permit.scopes.includes(name))
      if (isSame && !permit.isSettled) return permit
    }
    return undefined
  }

  /** A call inside waits; gives the function that waits for it. */
  block(inside: Inside): Permit | undefined {
    const held = inside === true ? [...this.#held()] : []
    const permit = inside === true ? (held.find(({ waits }) => waits === 0) ?? held[0]) : inside
    if (!permit) return undefined
    permit.waits++
    this.#waits++
    return permit
  }

  /** It waits no longer. */
  unblock(permit: Permit): void {
    permit.waits--
    this.#waits--
  }

  /**
   * No request may leave before one ends. If all that is in flight are functions that wait for calls
   * inside them, no other code can give a slot back: their slots are.
   */
  free(inFlight: number): void {
    if (this.#waits === 0) return
    const held = [...this.#held()]
    if (held.length !== inFlight || held.some(({ waits }) => waits === 0)) return
    const scopes = [...new Set(held.flatMap(({ scopes }) => scopes))].join(', ')
    const message = `functions of run, map or wrap hold all slots that calls inside them wait for (${scopes})`
    this.#warnings.once('nested', `${message}: their slots are given back; raise \`concurrency\``)
    for (const permit of held) permit.settle(NOTHING)
  }

  /** In a runtime that does not know whose call it is: what to do if it still waits after this long. */
  blindly(waiting: Waiting, inFlight: () => number): (() => NestedError | undefined) | undefined {
    if (this.#storage !== null || this.#running.length === 0) return undefined
    const url = urlTextOf(waiting.target)
    const isTheirs = ({ target }: Permit) => urlTextOf(target) === url
    // V8's stacks begin with the error's name.
    if (url === undefined || ![...this.#held()].some(isTheirs) || /^\w*Error/.test(stack())) return undefined
    return () => ([...this.#held()].length === inFlight() ? new NestedError(url) : undefined)
  }

  /** Functions whose permit is not used yet. */
  *#held(): Generator<Permit> {
    for (const permit of this.#running) if (!permit.isSettled) yield permit
  }
}

/** `AsyncLocalStorage` where it is no hook at every promise. */
function storage(): Storage | null {
  const { AsyncLocalStorage } = (builtin('async_hooks') ?? {}) as { AsyncLocalStorage?: new () => Storage }
  if (AsyncLocalStorage === undefined || '_enable' in AsyncLocalStorage.prototype) return null
  return new AsyncLocalStorage()
}

/** The stack as deep as it goes. */
function stack(): string {
  const limited = Error as { stackTraceLimit?: number }
  const before = limited.stackTraceLimit
  limited.stackTraceLimit = 200
  const { stack } = new Error()
  if (before !== undefined) limited.stackTraceLimit = before
  return typeof stack === 'string' ? stack : ''
}
