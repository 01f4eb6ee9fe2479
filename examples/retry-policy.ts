/**
 * A scope manager of one's own, after the retry policy of scrapy-zyte-api: 429 and 503 mean 20 to 40 s twice,
 * then 30 s plus up to 2ⁿ s, ten minutes at most; network errors 3 to 7 s, growing to 55 s. `npx tsx
 * examples/retry-policy.ts`
 *
 * Source: the retrying chapter of the manual of python-zyte-api (its default policy).
 */
import { createThrottle, type ManagedAnswer, type ScopeManager, type ThrottleOptions } from 'autothrottle'

/** @param random from 0 to 1: an argument, so that a run can be repeated. */
export class RetryPolicy implements ScopeManager {
  delay = 0
  #refusals = 0
  #errors = 0
  readonly #random: () => number

  constructor(random: () => number = Math.random) {
    this.#random = random
  }

  onGood(): void {
    this.delay = 0
    this.#refusals = 0
    this.#errors = 0
  }

  onBad({ status }: ManagedAnswer): void {
    this.delay = 1000 * (status === undefined ? this.#afterError() : this.#afterRefusal())
  }

  #afterRefusal(): number {
    this.#refusals++
    if (this.#refusals <= 2) return this.#between(20, 40)
    return Math.min(600, 30 + this.#between(0, 2 ** Math.min(this.#refusals, 20)))
  }

  #afterError(): number {
    this.#errors++
    const grown = 2 ** Math.min(this.#errors - 1, 10)
    return Math.min(55, this.#between(3, 7) * grown)
  }

  #between(low: number, high: number): number {
    return low + (high - low) * this.#random()
  }
}

export function withRetryPolicy(options: ThrottleOptions = {}, random?: () => number) {
  return createThrottle({
    retry: { limit: 10 },
    ...options,
    scopes: { 'api.zyte.example': { jitter: false, slotDelay: 0, manager: () => new RetryPolicy(random) } },
  })
}

if (process.argv[1]?.endsWith('retry-policy.ts')) {
  const policy = new RetryPolicy()
  for (const status of [429, 429, 429, 429, 200, 503]) {
    const event = { scope: 'api.zyte.example', at: 0, status, error: undefined, latency: 100 }
    if (status === 200) policy.onGood()
    else policy.onBad(event)
    console.log(`${status}: ${Math.round(policy.delay)} ms`)
  }
}
