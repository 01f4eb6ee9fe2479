/**
 * The budgets of one model and key, as scopes of the throttle. Rust keeps the accounts (`crates/llm`). It
 * says which pace each scope has and what each call costs from now on; this carries it out.
 */
import type { Permit } from '../core/permit.js'
import type { ScopeOptions } from '../options/options.js'
import type { Throttle } from '../throttle/throttle.js'
import { loadLlm, type WasmBudgets } from '../wasm/load/llm.js'
import type { Body, ReportedLimit } from './answer.js'
import { type Asked, KINDS, type Kind, VENDORS, type Vendor } from './request.js'

/** Limits of a model, as its owner says them. A limit that is left out is learned from the headers. */
export interface LlmLimit {
  /** Requests a minute. */
  rpm?: number
  /** Requests a day. */
  rpd?: number
  /** Tokens a minute, input and output together. */
  tpm?: number
  /** Input tokens a minute. */
  itpm?: number
  /** Output tokens a minute. */
  otpm?: number
  /** Whether no span of the window's length may hold more, in place of an even refill. Default: Azure's. */
  sliding?: boolean
  /** Whether input that comes from the vendor's cache is charged. Default: `'free'` for Anthropic. */
  cached?: 'free' | 'counted'
}

/** The options of the budgets. */
export interface BudgetOptions {
  readonly throttle: Throttle
  readonly name: string
  /** `undefined`: of requests that ask no model. */
  readonly vendor: Vendor | undefined
  readonly limit: LlmLimit
  readonly headroom: number
  /** Reserve what may come out at most, not what usually does. Default: as the vendor charges. */
  readonly isMax: boolean | undefined
  /** A counter of the user's is exact: no ratio is learned. */
  readonly isCounted: boolean
  readonly concurrency: number
}

/** The expected size of a call: of each scope, and as Rust has it. */
export interface Plan {
  readonly scopes: Readonly<Record<string, number>>
  readonly row: Float64Array
}

/** A number for each kind of budget, or what a change says. */
type Seven = [number, number, number, number, number, number, number]
type Planned = [...Seven, number, number, number, number, number, number]

/** A call that is on its way. */
export interface Call {
  readonly id: number
  readonly asked: Asked
  readonly permit: Permit
  readonly sentAt: number
}

/** It tells the engine that the settings are not the user's: no warning names them. */
const MADE = { '\u00a0made': true }
/** The same, and that they are given anew where the scope was forgotten. */
const PASSING = { ...MADE, '\u00a0passing': true }

/** The news of a call, by their numbers in Rust. */
const HEARD = { wrote: 0, report: 1, answered: 2, gone: 3, refused: 4, ended: 5 } as const

export class Budgets {
  readonly #throttle: Throttle
  readonly #name: string
  readonly #its: WasmBudgets
  /** Its kinds, by their numbers, and the scope of each. */
  readonly #kinds: readonly number[]
  readonly #scopes: OwnScope[] = []
  readonly #open = new Map<number, Call>()

  constructor({ throttle, name, vendor, limit, ...rest }: BudgetOptions) {
    const { headroom, concurrency, isCounted, isMax } = rest
    const { rpm, rpd, tpm, itpm, otpm, sliding, cached } = limit
    const flags = [isMax, sliding, cached && cached === 'free'].map(Number) as [number, number, number]
    const limits = [rpm, rpd, tpm, itpm, otpm].map(Number) as [number, number, number, number, number]
    const number = VENDORS.indexOf(vendor!)
    this.#its = new (loadLlm().WasmBudgets)(number, headroom, concurrency, isCounted, ...flags, ...limits)
    this.#throttle = throttle
    this.#name = name
    const facts = this.#its.facts()
    this.#kinds = [...KINDS.keys()].filter((kind) => facts & (256 << kind))
    this.#carry()
  }

  /** Whether limits are known: typed, or named by an answer. */
  get isKnown(): boolean {
    return (this.#its.facts() & 1) > 0
  }

  /** Whether true usage counts: the vendor charges it, and a limit of tokens is known. */
  get needsUsage(): boolean {
    return (this.#its.facts() & 2) > 0
  }

  get isCachedFree(): boolean {
    return (this.#its.facts() & 4) > 0
  }

  scope(kind = this.#kinds[0]!): string {
    return `${this.#name}#${KINDS[kind]}`
  }

  /** Changes settings of its first scope. */
  configure(changed: ScopeOptions): void {
    this.#scopes[this.#kinds[0]!]!.configure(changed)
  }

  /** The cost of a call in each scope, as far as it is known. */
  plan({ characters, bytes, tokens, bound = Number.NaN }: Asked): Plan {
    const row = this.#its.plan(characters, bytes, tokens, bound)
    const scopes: Record<string, number> = {}
    for (const kind of this.#kinds) {
      this.#scopes[kind]!.keep()
      scopes[this.scope(kind)] = row[kind]!
    }
    return { scopes, row }
  }

  /** The call leaves. */
  begin(asked: Asked, permit: Permit, { row }: Plan): Call {
    const sentAt = this.#throttle.now()
    const id = this.#its.begin(sentAt, ...(row as unknown as Planned))
    const call: Call = { id, asked, permit, sentAt }
    this.#open.set(id, call)
    this.#carry()
    return call
  }

  /** More was written: what is beyond the estimate is charged as the vendor charges it, at once. */
  wrote(call: Call, input: number | undefined, written: number): void {
    if (this.#hear(call, 'wrote', input, written)) this.#carry()
  }

  /** The headers of an answer: limits, and what is left of them. */
  report(call: Call, all: readonly ReportedLimit[], wait?: number): void {
    for (const { kind, limit, left, per } of all)
      this.#hear(call, 'report', KINDS.indexOf(kind), limit, left, per, wait)
    this.#carry()
  }

  /** A good answer came: others need not wait for it to tell limits. */
  answered(call: Call, isStream: boolean): void {
    this.#hear(call, 'answered', Number(isStream))
    this.#carry()
  }

  /** No answer will come. It keeps what it was to take, unless the server never had it. */
  gone(call: Call, wasSent: boolean): void {
    this.#hear(call, 'gone', Number(wasSent))
    this.#over(call)
  }

  /** It was not run: no token was spent. `wait`: until it would have room in the budget that has none. */
  refused(call: Call, kind?: Kind, wait = 0): void {
    this.#hear(call, 'refused', kind && KINDS.indexOf(kind), wait)
    this.#over(call)
  }

  /** The body is over. Whether what it took had to be estimated. */
  ended(call: Call, { usage, written }: Body, isWhole: boolean): boolean {
    const { input, free, output } = usage
    const isEstimated = this.#hear(call, 'ended', input, free, output, written, Number(isWhole))
    this.#over(call)
    return isEstimated
  }

  #hear({ id }: Call, what: keyof typeof HEARD, ...numbers: (number | undefined)[]): boolean {
    const [first, second, third, fourth, fifth] = numbers as number[]
    // A number that is not there becomes NaN on its way.
    return this.#its.hear(this.#throttle.now(), id, HEARD[what], first!, second!, third!, fourth!, fifth!)
  }

  #over({ id }: Call): void {
    this.#carry()
    this.#open.delete(id)
  }

  /** Does what is due after a verb. */
  #carry(): void {
    const changes = this.#its.changes()
    for (let at = 0; at < changes.length; at += 7) this.#change(changes.subarray(at))
    const now = this.#throttle.now()
    const waits = KINDS.map((_, kind) => this.#wait(kind, this.#its.asks(kind), now))
    const charges = this.#its.carry(now, ...(waits as unknown as Seven))
    const costs = new Map<number, Record<string, number>>()
    for (let at = 0; at < charges.length; at += 3)
      costs.set(charges[at]!, { ...costs.get(charges[at]!), [this.scope(charges[at + 1])]: charges[at + 2]! })
    for (const [id, cost] of costs) {
      const { permit } = this.#open.get(id)!
      // A refund is of the latest charge, so an older level of the bucket does not limit it.
      permit.startsAt(now)
      permit.adjust(cost)
    }
  }

  /** The time until an amount could leave; NaN where another limit hides it. */
  #wait(kind: number, cost: number, now: number): number {
    if (!(cost > 0)) return Number.NaN
    const { at, reason = 'rate' } = this.#throttle.peek({ scopes: this.scope(kind) }, { cost })
    return reason === 'rate' ? at - now : Number.NaN
  }

  #change(row: Float64Array): void {
    const [kind, concurrency, limit, window, burst, most, short] = row as unknown as Seven
    const known = this.#scopes[kind]
    this.#scopes[kind] ??= new OwnScope(this.#throttle, this.scope(kind))
    const scope = this.#scopes[kind]
    if (!known) scope.configure({ delay: 0, concurrency })
    const windows = [
      { limit, window, strict: true },
      { limit: most, window: short, strict: true },
    ]
    if (burst > 0) scope.configure({ rate: { limit, window, burst }, concurrency })
    else if (limit > 0) scope.configure({ quota: windows.filter((each) => each.limit > 0), concurrency })
    else if (known) scope.configure({ concurrency })
  }
}

/** A scope that the product configures by itself. */
export class OwnScope {
  readonly name: string
  readonly #throttle: Throttle
  #settings: ScopeOptions = {}
  #handle = -1

  constructor(throttle: Throttle, name: string) {
    this.#throttle = throttle
    this.name = name
  }

  /** Changes settings. Of a group's scopes only the writer knows which there are: there they stay. */
  configure(changed: ScopeOptions): void {
    const { scheduler, options } = this.#throttle
    const { engine } = scheduler.driver
    this.#settings = { ...this.#settings, ...changed }
    // The engine sets a delay aside for a rate that comes later, and takes no two at once.
    if (changed.rate !== undefined) delete this.#settings.delay
    const isNew = engine.find(this.name) < 0
    const isKept = engine.keepAlive(this.#handle)
    this.#handle = scheduler.handles.of(this.name).handle
    const marks = options.shared === undefined ? PASSING : MADE
    engine.configure(this.#throttle.now(), this.#handle, { ...marks, ...(isKept ? changed : this.#settings) })
    // No request waits for a new one, and to ask would let others of this call go.
    if (!isNew) scheduler.driver.drain()
  }

  /** It stays until the request that is put together has it. Made anew where the engine has forgotten it. */
  keep(): void {
    if (!this.#throttle.scheduler.driver.engine.keepAlive(this.#handle)) this.configure({})
  }
}
