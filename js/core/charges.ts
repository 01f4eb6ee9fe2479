/** Corrections of the costs of requests. */
import type { Clock } from '../options/options.js'
import type { Handles } from '../scopes/handles.js'
import type { Outcome } from '../wasm/engine.js'
import { checkedCost } from './convert.js'
import type { Host } from './host.js'
import type { Permit, PermitOutcome } from './permit.js'

export class Charges {
  readonly #engine: Host
  readonly #clock: Clock
  readonly #handles: Handles

  constructor(engine: Host, clock: Clock, handles: Handles) {
    this.#engine = engine
    this.#clock = clock
    this.#handles = handles
  }

  /** Corrects the cost of a request. It may have been settled. */
  adjust(permit: Permit, cost: PermitOutcome['cost']): void {
    const checked = checkedCost(cost, permit)
    this.#charge(permit, true, (name) => (typeof checked === 'object' ? checked[name] : checked))
  }

  /** After an adjustment the outcome carries no cost: the engine would begin from what it expected. */
  costs(permit: Permit, outcome: Outcome): Outcome {
    if (outcome.cost === undefined && !outcome.scopes?.some((own) => own.cost !== undefined)) return outcome
    const { cost, scopes, ...rest } = outcome
    const { isAdjusted } = permit
    const ownOf = (name: string) => scopes?.find(({ scope }) => scope === this.#handles.of(name).handle)
    this.#charge(permit, isAdjusted, (name) => ownOf(name)?.cost ?? cost)
    if (!isAdjusted) return outcome
    return scopes ? { ...rest, scopes: scopes.map(({ cost: _, ...own }) => own) } : rest
  }

  /** Notes what a request cost, where that is known; the engine hears it here, or with the outcome. */
  #charge(permit: Permit, isAdjusted: boolean, of: (name: string) => number | undefined): void {
    const { scopes, sentAt, cost, charged } = permit
    const now = this.#clock.now()
    permit.charged = scopes.map((name, index) => {
      const before = charged?.[index] ?? (typeof cost === 'number' ? cost : cost[index]!)
      const actual = of(name) ?? before
      // A scope that the engine has forgotten owes no wait.
      if (isAdjusted && actual !== before && this.#engine.find(name) >= 0)
        this.#engine.adjust(now, this.#handles.of(name).handle, sentAt, before, actual)
      return actual
    })
    permit.isAdjusted ||= isAdjusted
  }
}
