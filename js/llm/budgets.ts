/**
 * The budgets of one model and key: what a call is charged before it leaves, and what is corrected after.
 *
 * Each budget is a scope with a rate. Two accounts are kept of it: what the vendor has charged by now, and
 * what open calls are still going to use. The scope holds the difference, so a call leaves only when
 * `level − reserved` has room for it.
 *
 * A reservation refills while its call is open; returning all of it would credit the bucket twice. The level
 * therefore never stands above the whole minus all reservations. A `remaining` of a call that took a minute
 * may be as old as the call: a correction is made only by what is wrong at both ends of it. Other clients may
 * have the same key. And vendors that charge `max_tokens` whatever comes out give back no token by usage.
 */
import type { Permit } from '../core/permit.js'
import type { ScopeOptions } from '../options/options.js'
import type { Throttle } from '../throttle/throttle.js'
import type { Body, ReportedLimit } from './answer.js'
import type { Asked, Kind, Rules } from './request.js'

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

const MINUTE = 60_000
const DAY = 86_400_000
const TYPED: readonly [keyof LlmLimit & `${string}p${string}`, Kind, number][] = [
  ['rpm', 'requests', MINUTE],
  ['rpd', 'day', DAY],
  ['tpm', 'tokens', MINUTE],
  ['itpm', 'input', MINUTE],
  ['otpm', 'output', MINUTE],
]

/** The options of the budgets. */
export interface BudgetOptions {
  readonly throttle: Throttle
  readonly name: string
  readonly rules: Rules
  readonly limit: LlmLimit
  readonly headroom: number
  readonly isMax: boolean
  /** A counter of the user's is exact: no ratio is learned. */
  readonly isCounted: boolean
  readonly concurrency: number
}

/** One budget in force. */
interface Budget {
  limit: number
  per: number
  /** Of the limit, without the headroom; and the most of it at once. */
  capacity: number
  burst: number
  /** Its bucket is smaller than the vendor's: what is left of theirs never gives back. */
  isOwn: boolean
  /** How much of the vendor's bucket stays untouched: more after a refusal, slowly less after answers. */
  margin: number
  /** No refusal spoke of it yet. */
  isCalm: boolean
  /** When the last refusal spoke of it, and how much stayed untouched from then. */
  refusedAt: number
  base: number
  isSliding: boolean
}

/** The expected size of a call: of each scope, and in tokens. */
export interface Plan {
  readonly scopes: Record<string, number>
  readonly input: number
  readonly output: number
}

/** The share of a call in one budget. */
interface Part {
  /** By now, without corrections; and those. */
  charged: number
  corrected: number
  /** The vendor's level at the time that the call left; NaN where that is not known. */
  level: number
  /** The charges of calls of the same moment: the vendor may have had them before it, or after. */
  mates: number
}

/** A call that is on its way. */
export interface Call {
  readonly asked: Asked
  readonly permit: Permit
  readonly sentAt: number
  /** Tokens that the vendor has charged, as far as we know. */
  input: number
  readonly output: number
  readonly parts: Partial<Record<Kind, Part>>
  written: number
  isStream: boolean
}

/** It tells the engine that the settings are not the user's: no warning names them. */
const MADE = { '\u00a0made': true }
/** The same, and that they are given anew where the scope was forgotten. */
const PASSING = { ...MADE, '\u00a0passing': true }
/** After a refusal the margin comes back at this share of the pace; the rest is for calls. */
const RETURN = 0.5
/** From the refusal on, what refills in this multiple of the wait that the server asked for is untouched. */
const PATIENCE = 2
/** Answers after which a ratio counts, and how fast it follows. */
const ENOUGH = 3
const SHARE = 0.2
/** Milliseconds by which the ways of two calls may differ; calls of one moment may overtake each other. */
const SKEW = 150
const MOMENT = 100
/** Tokens a second of a model that did not write yet. */
const USUAL_SPEED = 50
/** Of an answer, before one was seen. */
const USUAL_OUTPUT = 1000
/** An answer that is not streamed is charged by its time, a quarter too fast. */
const AHEAD = 1.25

/** Usage ÷ estimate of calls of one size, and how far both are off. */
interface Ratio {
  value: number
  count: number
  plainError: number
  error: number
}

const follow = (old: number, now: number, count: number) =>
  old + (now - old) * Math.max(SHARE, 1 / (count + 1))
const within = (low: number, value: number, high: number) => Math.min(high, Math.max(low, value))

export class Budgets {
  /** Whether limits are known: typed, or told by an answer. */
  isKnown: boolean
  readonly isCachedFree: boolean
  readonly rules: Rules
  readonly #its: BudgetOptions
  /** The budgets that its vendor has, and those that were typed. */
  readonly #kinds: readonly Kind[]
  readonly #typed: Partial<Record<Kind, number>> = {}
  readonly #budgets: Partial<Record<Kind, Budget>> = {}
  readonly #scopes: Partial<Record<Kind, OwnScope>> = {}
  readonly #open = new Set<Call>()
  readonly #ratios = new Map<number, Ratio>()
  #isOpen: boolean
  #output = USUAL_OUTPUT
  #outputs = 0
  #speed = USUAL_SPEED
  /** The share of input that is charged; the rest comes from the vendor's cache. */
  #uncached = 1

  constructor(its: BudgetOptions) {
    const { rules, limit, concurrency } = its
    this.#its = its
    this.rules = rules
    this.isCachedFree = limit.cached ? limit.cached === 'free' : rules.isCachedFree === true
    const typed = TYPED.filter(([key]) => limit[key])
    this.#kinds = [...new Set([...rules.kinds, ...typed.map(([, kind]) => kind)])]
    this.#isOpen = this.isKnown = typed.length > 0
    for (const kind of this.#kinds)
      this.configure(kind, { delay: 0, concurrency: kind === 'requests' && !this.isKnown ? 1 : concurrency })
    for (const [key, kind, per] of typed) {
      this.#typed[kind] = limit[key]! / per
      this.#set(kind, limit[key]!, per, true)
    }
  }

  /** Whether true usage counts: the vendor charges it, and a limit of tokens is known. */
  get needsUsage(): boolean {
    return this.rules.isActual && this.#kinds.some((kind) => this.#budgets[kind] && !isCount(kind))
  }

  scope(kind = this.#kinds[0]!): string {
    return `${this.#its.name}#${kind}`
  }

  /** Changes settings of one of its scopes. */
  configure(kind: Kind, changed: ScopeOptions): void {
    this.#scopes[kind] ??= new OwnScope(this.#its.throttle, this.scope(kind))
    this.#scopes[kind].configure(changed)
  }

  /** The cost of a call in each scope, as far as it is known. */
  plan(asked: Asked): Plan {
    for (const kind of this.#kinds) this.#scopes[kind]!.keep()
    const [ratio, doubt] = this.#ratioOf(asked)
    const input = Math.ceil(this.#estimate(asked) * ratio + asked.tokens)
    // A margin for errors of the estimate is reserved too, and comes back with the answer.
    const padded = Math.ceil(input * (1 + 2 * doubt))
    const usual = this.#its.isMax ? (asked.bound ?? 0) : Math.ceil(this.#output)
    const output = Math.min(usual, asked.bound ?? Number.POSITIVE_INFINITY)
    const scopes: Record<string, number> = {}
    for (const kind of this.#kinds) {
      const { burst = Number.POSITIVE_INFINITY, limit = 0 } = this.#budgets[kind] ?? {}
      const cost = this.#cost(kind, padded, output)
      // Where true usage counts, one that is larger than all waits for all, and owes the rest.
      const isBorne = this.rules.isActual || cost <= limit
      scopes[this.scope(kind)] = isBorne ? Math.min(cost, burst) : cost
    }
    return { scopes, input, output }
  }

  #cost(kind: Kind, input: number, output: number): number {
    if (isCount(kind)) return 1
    if (kind === 'input') return input
    if (kind === 'output') return output
    return this.rules.isLarger ? Math.max(input, output) : input + output
  }

  /** The call leaves. */
  begin(asked: Asked, permit: Permit, { scopes, input, output }: Plan): Call {
    const { sentAt } = permit
    const parts: Call['parts'] = {}
    const call: Call = { asked, permit, sentAt, input, output, parts, written: 0, isStream: false }
    for (const open of this.#open)
      if (!open.isStream) this.wrote(open, open.input, AHEAD * this.#writtenSoFar(open))
    this.#open.add(call)
    for (const kind of this.#kinds)
      parts[kind] = { charged: scopes[this.scope(kind)]!, corrected: 0, level: Number.NaN, mates: 0 }
    // It had to have room for all of its input, and is charged what is usually not from the cache.
    if (this.#uncached < 0.98) {
      call.input = input * this.#uncached
      for (const kind of ['input', 'tokens'] as const) {
        const cost = this.#cost(kind, call.input * 1.2, output)
        if (cost < (parts[kind]?.charged ?? 0)) this.#charge(call, kind, cost)
      }
    }
    for (const kind of this.#kinds) {
      const own = parts[kind]!
      own.level = this.#level(kind)
      for (const mate of this.#open) {
        if (mate === call || mate.sentAt <= sentAt - MOMENT) continue
        own.mates += mate.parts[kind]!.charged
        mate.parts[kind]!.mates += own.charged
      }
    }
    return call
  }

  /** More was written: what is beyond the estimate is charged as the vendor charges it, at once. */
  wrote(call: Call, input: number | undefined, written: number): void {
    if (call.isStream) call.written = Math.max(call.written, written)
    if (!this.rules.isActual) return
    if (input !== undefined && input !== call.input) {
      call.input = input
      this.#charge(call, 'input', input)
    }
    for (const kind of ['output', 'tokens'] as const) {
      const cost = this.#cost(kind, call.input, written)
      // In steps, not with each word.
      if (cost > (call.parts[kind]?.charged ?? 0) * 1.05 + 20) this.#charge(call, kind, cost)
    }
  }

  /** The headers of an answer: limits, and what is left of them. */
  report(call: Call, all: readonly ReportedLimit[], wait?: number): void {
    for (const { kind, limit, left, per } of all) {
      if (!(limit / per >= (this.#typed[kind] ?? Number.POSITIVE_INFINITY) * 0.999))
        this.#set(kind, limit, per)
      if (wait !== undefined && left !== undefined && left < call.parts[kind]!.charged)
        this.#step(kind, call, wait)
      this.#correct(call, kind, left)
      this.isKnown = true
    }
  }

  /** An answer came: others need not wait for it to tell limits. */
  open(): void {
    if (!this.#isOpen) this.configure('requests', { concurrency: this.#its.concurrency })
    this.#isOpen = true
  }

  /** No answer will come. It keeps what it was to take, unless the server never had it. */
  gone(call: Call, wasSent: boolean): void {
    this.#open.delete(call)
    if (!wasSent) for (const kind of this.#kinds) this.#charge(call, kind, 0)
  }

  /** It was not run: no token was spent. `wait`: until it would have room in the budget that has none. */
  refused(call: Call, kind?: Kind, wait = 0): void {
    this.#open.delete(call)
    const budget = kind && this.#budgets[kind]
    if (budget && !isCount(kind)) {
      this.#step(kind, call, wait)
      this.#correct(call, kind, call.parts[kind]!.charged - (wait * budget.limit) / budget.per)
    }
    for (const kind of this.#kinds) if (!isCount(kind)) this.#charge(call, kind, 0)
  }

  /** The vendor had no room: more of its bucket stays untouched. Refusals of one flight are one step. */
  #step(kind: Kind, { sentAt }: Call, wait: number): void {
    const budget = this.#budgets[kind]!
    if (isCount(kind)) return
    const isSame = sentAt <= budget.refusedAt
    budget.base = Math.max(isSame ? budget.base : 0, (PATIENCE * wait * budget.limit) / budget.per)
    if (isSame) return
    budget.isCalm = false
    budget.margin = Math.min(budget.limit / 2, budget.margin + budget.limit / 10)
    budget.refusedAt = this.#its.throttle.now()
  }

  /**
   * The amount that stays untouched now. All of it at once would be silence for longer than the server asked.
   */
  #untouched({ limit, per, margin, base, refusedAt }: Budget): number {
    const back = ((this.#its.throttle.now() - refusedAt) * limit * RETURN) / per
    return Math.min(margin, Math.max(this.#marginOf(limit), base) + back)
  }

  /** The body is over. Whether what it took had to be estimated. */
  ended(call: Call, { usage, written }: Body, isWhole: boolean): boolean {
    this.#open.delete(call)
    const { asked, sentAt } = call
    const { input = call.input, free, output = call.isStream ? written : call.output } = usage
    if (usage.input !== undefined) {
      this.#learn(asked, input + free)
      if (input + free > 0) this.#uncached += (input / (input + free) - this.#uncached) * SHARE
    }
    if (usage.output !== undefined && isWhole) {
      const took = Math.max(1, this.#its.throttle.now() - sentAt)
      this.#output = Math.max(1, this.#output + (output - this.#output) / Math.min(++this.#outputs, 50))
      if (output > 20) this.#speed = follow(this.#speed, (output / took) * 1000, this.#outputs)
    }
    for (const kind of this.#kinds) {
      if (this.rules.isActual && !isCount(kind)) this.#charge(call, kind, this.#cost(kind, input, output))
      const budget = this.#budgets[kind]
      if (!budget) continue
      const less = budget.limit / (budget.isCalm ? 100 : 8000)
      budget.margin = Math.max(this.#marginOf(budget.limit), budget.margin - less)
    }
    return asked.bound !== 0 && usage.output === undefined
  }

  #writtenSoFar({ sentAt, asked }: Call): number {
    const written = ((this.#its.throttle.now() - sentAt) / 1000) * this.#speed
    return Math.min(written, asked.bound ?? written)
  }

  #charge(call: Call, kind: Kind, cost: number): void {
    const part = call.parts[kind]
    if (!part) return
    part.charged = cost
    this.#take(call, kind, 0)
    // The vendor's bucket does not rise above the whole while a call is only reserved.
    const reserved = this.#reserved(kind)
    const over = this.#room(kind) + reserved - (this.#budgets[kind]?.capacity ?? 0)
    if (reserved > 0 && over > 1) this.#take(call, kind, over)
  }

  /** Takes so much more from a budget than the call costs; negative gives back. */
  #take({ permit, parts }: Call, kind: Kind, more: number): void {
    const part = parts[kind]!
    part.corrected += more
    // A refund is of the latest charge, so an older level of the bucket does not limit it.
    permit.startsAt(this.#its.throttle.now())
    permit.adjust({ [this.scope(kind)]: Math.max(0, part.charged + part.corrected) })
  }

  /** The tokens that a vendor has not charged yet, if it charges as it writes. */
  #reserved(kind: Kind): number {
    let sum = 0
    if (this.rules.isActual && !isCount(kind))
      for (const call of this.#open) {
        const written = call.isStream ? call.written : this.#writtenSoFar(call)
        sum += Math.max(0, call.parts[kind]!.charged - this.#cost(kind, call.input, written))
      }
    return sum
  }

  /** The amount in the scope's bucket; NaN where it has none, or another limit hides it. */
  #room(kind: Kind): number {
    const { burst = 1, capacity = 1, per = 1, isSliding = true } = this.#budgets[kind] ?? {}
    if (isSliding) return Number.NaN
    const { throttle } = this.#its
    const { at, reason = 'rate' } = throttle.peek({ scopes: this.scope(kind) }, { cost: burst })
    return reason === 'rate' ? burst - ((at - throttle.now()) * capacity) / per : Number.NaN
  }

  /** The vendor's level by our own accounts, without the headroom. */
  #level(kind: Kind): number {
    return this.#room(kind) + this.#reserved(kind)
  }

  /** Follows what the vendor says is left, by what is wrong both when the call left and now. */
  #correct(call: Call, kind: Kind, left = Number.NaN): void {
    const budget = this.#budgets[kind]!
    const { isOwn } = budget
    const { level: then, mates } = call.parts[kind]!
    const level = this.#level(kind)
    const before = Number.isNaN(then) ? level : then
    const rounding = isCount(kind) ? Number(isOwn) : (this.rules.rounding ?? 0)
    const real = left - (isCount(kind) ? Number(!isOwn) : this.#untouched(budget))
    const over = Math.min(level, before) - real - rounding
    const under = real - Math.max(level, before + mates) - rounding
    if (over > 0) this.#take(call, kind, over)
    else if (under > 0 && !isOwn) this.#take(call, kind, -under)
  }

  #marginOf(limit: number): number {
    return Math.max(limit * (1 - this.#its.headroom), this.rules.rounding ?? 0)
  }

  #set(kind: Kind, limit: number, per: number, isTyped = false): void {
    const before = this.#budgets[kind]
    if (before?.limit === limit && before.per === per) return
    const isMinute = kind === 'requests' && per === MINUTE
    // Requests of a minute may be counted by the second: evenly spaced they need less headroom. Windows
    // that roll have no level that could drift.
    const isSpread = isMinute && this.rules.isSpread === true
    const { headroom, concurrency, limit: typed } = this.#its
    const isEven = !(typed.sliding ?? this.rules.isSliding)
    const isSliding = !isEven || (kind === 'day' && isTyped && !this.rules.isEvenDay)
    const less = (1 - headroom) / (isSliding ? 4 : isSpread ? 2 : 1)
    const capacity = Math.max(limit * (1 - less), Math.min(1, limit))
    const burst = Math.max(1, Math.floor(isSpread ? capacity / 60 : capacity))
    // Other clients of the key show only in answers: the first flight does not take all that is left.
    const { margin = limit / 4, isCalm = true, base = 0 } = before ?? {}
    const { refusedAt = Number.NEGATIVE_INFINITY } = before ?? {}
    const isOwn = isTyped || isSpread
    this.#budgets[kind] = { limit, per, capacity, burst, isSliding, isOwn, margin, isCalm, refusedAt, base }
    // A request that left a moment later may arrive a moment earlier.
    const rolling = (limit: number, per: number) => ({
      ...{ limit: Math.max(1, Math.floor(limit)), window: per + SKEW, strict: true },
    })
    const quota = [rolling(burst, per), ...(isMinute ? [rolling(limit / 6, per / 6)] : [])]
    // A pace that is typed anew has all slots, unless they are, too.
    const slots = kind === 'requests' && !this.#isOpen ? 1 : concurrency
    this.configure(kind, {
      ...(isSliding ? { quota } : { rate: { limit: capacity, window: per, burst } }),
      concurrency: slots,
    })
  }

  #estimate({ characters, bytes }: Asked): number {
    return (this.rules.isByCharacters ? characters : bytes) / 4
  }

  /** The ratio for calls of this size, where it is better than none; and its error. */
  #ratioOf(asked: Asked): readonly [number, number] {
    if (this.#its.isCounted || this.rules.isByCharacters) return [1, 0]
    const ratio = this.#ratios.get(sizeOf(asked))
    if (!ratio || ratio.count < ENOUGH) return [1, 0.1]
    return ratio.error < ratio.plainError ? [ratio.value, ratio.error] : [1, ratio.plainError]
  }

  #learn(asked: Asked, input: number): void {
    const estimate = this.#estimate(asked)
    const counted = input - asked.tokens
    if (!(estimate > 0 && counted >= 0)) return
    const size = sizeOf(asked)
    const ratio = this.#ratios.get(size) ?? { value: 1, count: 0, plainError: 0, error: 0 }
    const off = (by: number) => Math.abs(estimate * by - counted) / Math.max(1, counted)
    ratio.plainError = follow(ratio.plainError, off(1), ratio.count)
    ratio.error = follow(ratio.error, off(ratio.value), ratio.count)
    ratio.value = follow(ratio.value, within(0.5, counted / estimate, 3), ratio.count++)
    this.#ratios.set(size, ratio)
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

/** Counted in requests, not in tokens. */
const isCount = (kind: Kind) => /^(?:requests|day|other)$/.test(kind)
/** Calls of similar size: within a factor of four. */
const sizeOf = ({ bytes }: Asked) => Math.floor(Math.log2(bytes + 1) / 2)
