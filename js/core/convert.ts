/**
 * A permit's outcome for the engine: all of it checked, in the engine's own form. It changes no state, so an
 * outcome that is partly wrong counts nowhere.
 */
import { answerOf } from '../answers/answer.js'
import { fetchedLines } from '../answers/headers.js'
import { isObject, isPlain, keysOf, kindOf, notOneOf, shown, wrong } from '../base/checks.js'
import { ConfigError } from '../base/errors.js'
import type { Clock, HeaderMap } from '../options/options.js'
import type { Handles } from '../scopes/handles.js'
import { type Backoffs, backoffMap, checkedBackoffs } from '../scopes/hooks.js'
import { namedScopes } from '../scopes/names.js'
import type { Outcome, ScopeOutcome } from '../wasm/engine.js'
import { nearestName } from '../wasm/functions.js'
import type { Permit, PermitOutcome } from './permit.js'

/** How to read headers, by scope name. */
export type HeaderMaps = Readonly<Record<string, HeaderMap>>

/** Whether a request may be sent again, and can be. */
type Again = Pick<Outcome, 'retry' | 'replayable'>

export class Converter {
  readonly #wallNow: () => number
  readonly #handles: Handles
  readonly #hints: HeaderMaps | undefined

  constructor(clock: Clock, handles: Handles, hints: HeaderMaps | undefined) {
    this.#wallNow = () => clock.wallNow()
    this.#handles = handles
    this.#hints = hints
  }

  /**
   * @throws {TypeError} for status and headers that are none.
   * @throws {ManagerError} for scopes that are not the request's.
   */
  outcome(permit: Permit, outcome: PermitOutcome, now: number, again: Again): Outcome {
    if (!isObject(outcome)) throw wrong('settle', 'an outcome, such as { status: 429 }', outcome)
    const { hints, backoff, adjustDelay } = outcome
    const cost = checkedCost(outcome.cost, permit)
    const { status, headers, error } = answerOf(outcome)
    if (status === undefined && error === undefined) checkOutcome(outcome)
    const backoffs = checkedBackoffs('settle', outcome.scopes, permit.scopes)
    const converted: { [Key in keyof Outcome]: Outcome[Key] | undefined } = {
      status,
      error,
      headers,
      headerMap: this.#mapOf(permit.scopes),
      hints,
      wallNowMs: this.#wallNow,
      backoff,
      scopes: this.#own(permit.scopes, backoffs, cost),
      namedOnly: backoffs !== undefined,
      ...again,
      latencyMs: outcome.latency ?? (status === undefined ? undefined : now - permit.sentAt),
      cost: typeof cost === 'number' ? cost : undefined,
      adjustDelay,
    }
    return converted as Outcome
  }

  /**
   * The limits in a good answer of `fetch`, as lines for the engine; `undefined` for all that `outcome` has
   * to look at.
   */
  goodLines(response: Response): string | undefined {
    if (this.#hints !== undefined) return undefined
    try {
      const { status, headers } = response
      const isGood = Number.isInteger(status) && status >= 200 && status < 300
      // In this order: Node loads its fetch with the first look at `Headers`, which takes ten milliseconds.
      const isRead = isGood && isObject(headers) && Symbol.iterator in headers
      return isRead && headers instanceof Headers ? fetchedLines(headers) : undefined
    } catch {
      return undefined // A getter throws.
    }
  }

  /** The outcome for the scopes that it names. */
  #own(
    names: readonly string[],
    backoffs: Backoffs | undefined,
    cost: PermitOutcome['cost'],
  ): readonly ScopeOutcome[] | undefined {
    const costs = typeof cost === 'object' ? cost : undefined
    if (backoffs === undefined && costs === undefined) return undefined
    const map = backoffs === undefined ? {} : backoffMap(backoffs)
    const own: ScopeOutcome[] = []
    for (const name of names) {
      const cost = costs && Object.hasOwn(costs, name) ? { cost: costs[name]! } : undefined
      if (cost || Object.hasOwn(map, name))
        own.push({ ...map[name], ...cost, scope: this.#handles.of(name).handle })
    }
    return own
  }

  /** How the headers of these scopes are read. */
  #mapOf(names: readonly string[]): HeaderMap | undefined {
    const hints = this.#hints
    const name = hints && names.find((name) => Object.hasOwn(hints, name))
    return name === undefined ? undefined : hints?.[name]
  }
}

/** Every word of an outcome. */
const WORDS = [
  ...['status', 'statusCode', 'headers', 'hints', 'error', 'latency'],
  ...['backoff', 'scopes', 'cost', 'adjustDelay'],
]
/** The names that other libraries use. */
const MEANT: Readonly<Record<string, string>> = {
  code: 'status',
  httpStatus: 'status',
  err: 'error',
  response: 'settle(response)',
  res: 'settle(response)',
}

/**
 * @throws {TypeError} for an outcome without a word of ours, which the throttle would ignore without a word.
 */
function checkOutcome(outcome: PermitOutcome): void {
  const fail = (got: string, meant?: string) => {
    throw notOneOf('settle', WORDS, got, meant)
  }
  if (outcome instanceof Error) fail('an error: type settle({ error })')
  const typed = Object.keys(outcome)
  if (WORDS.some((word) => word in outcome)) return
  if (!isPlain(outcome)) fail(kindOf(outcome))
  if (typed.length === 0) return
  fail(keysOf(outcome), MEANT[typed[0]!] ?? nearestName(typed[0]!, WORDS))
}

/**
 * The real cost of a request, checked.
 *
 * @throws {ConfigError} for one number where the scopes were to cost different ones, and for scopes that are
 * not the request's.
 */
export function checkedCost(cost: PermitOutcome['cost'], { scopes, target }: Permit): PermitOutcome['cost'] {
  if (cost === undefined) return undefined
  const fail = (path: string, want: string, got: unknown): never => {
    throw new ConfigError([{ path, want, got: shown(got) }])
  }
  if (isObject(cost)) {
    for (const [name, value] of Object.entries(cost)) {
      if (!scopes.includes(name)) fail(`cost.${name}`, `a scope of the request (${scopes.join(', ')})`, value)
      if (!(Number.isFinite(value) && value >= 0)) fail(`cost.${name}`, 'a number from 0', value)
    }
    return cost
  }
  if (!(Number.isFinite(cost) && cost >= 0)) fail('cost', 'a number from 0', cost)
  const { costs } = typeof target === 'object' && 'scopes' in target ? namedScopes(target.scopes) : {}
  if (costs?.some((each) => each !== costs[0])) {
    const one = scopes[costs.indexOf(Math.max(...costs))]
    fail('cost', `a map, as the scopes were to cost different amounts: { ${shown(one)}: ${cost} }`, cost)
  }
  return cost
}
