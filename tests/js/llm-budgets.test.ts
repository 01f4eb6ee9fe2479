/**
 * The cases of `tests/vectors/llm-budgets.jsonl`: what a model's budgets plan, charge, correct and learn. The
 * crate, JavaScript and Python play them. `UPDATE_GOLDEN=1` writes what is seen here.
 */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { createThrottle } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'
import type { Permit } from '../../js/core/permit.js'
import { Body } from '../../js/llm/answer.js'
import { Budgets, type Call, type LlmLimit } from '../../js/llm/budgets.js'
import type { Vendor } from '../../js/llm/request.js'

const FILE = `${import.meta.dirname}/../vectors/llm-budgets.jsonl`

interface Case {
  readonly name: string
  readonly vendor: Vendor
  readonly limit?: LlmLimit
  readonly headroom?: number
  readonly isMax?: boolean
  readonly isCounted?: boolean
  /** The amounts that are asked for after each step, and when they would be there. */
  readonly asks?: Readonly<Record<string, number>>
  readonly steps: Step[]
}
type Limits = readonly (readonly [kind: string, limit: number, left: number | null, per: number])[]
interface Step {
  readonly at: number
  readonly begin?: string
  readonly bytes?: number
  readonly characters?: number
  readonly tokens?: number
  readonly bound?: number | null
  readonly report?: string
  readonly limits?: Limits
  readonly wait?: number | null
  readonly answered?: string
  readonly isStream?: boolean
  readonly wrote?: string
  readonly input?: number | null
  readonly written?: number
  readonly refused?: string
  readonly kind?: string | null
  readonly gone?: string
  readonly wasSent?: boolean
  readonly ended?: string
  readonly free?: number
  readonly output?: number | null
  readonly isWhole?: boolean
  is?: object
}

const round = (value: number) => Math.round(value * 1000) / 1000

async function play(told: Case): Promise<object[]> {
  const { vendor, limit = {}, headroom = 0.98, isCounted = false, asks = {} } = told
  const clock = new FakeClock()
  const throttle = createThrottle({ clock, jitter: false, warnings: false })
  const budgets = new Budgets({
    ...{ throttle, name: 'm', vendor, limit, headroom, isMax: told.isMax, isCounted, concurrency: 16 },
  })
  const calls = new Map<string, Call>()
  const seen: object[] = []
  for (const step of told.steps) {
    await clock.advance(step.at - clock.now())
    const is: Record<string, unknown> = {}
    if (step.begin) {
      const { characters = 0, bytes = 0, tokens = 0, bound = null } = step
      const asked = {
        ...{ vendor, host: 'h', model: 'm', characters, bytes, tokens, isUncounted: false },
        bound: bound ?? undefined,
      }
      const plan = budgets.plan(asked)
      is.costs = Object.fromEntries(
        Object.entries(plan.scopes).map(([name, cost]) => [name.slice(2), round(cost)]),
      )
      const permit = throttle.scheduler.request(plan.scopes, 'https://h/', {}) as Permit
      assert.ok(!(permit instanceof Promise), 'a call of a case leaves at once')
      calls.set(step.begin, budgets.begin(asked, permit, plan))
      permit.settle()
    }
    if (step.report)
      budgets.report(
        calls.get(step.report)!,
        step.limits!.map(([kind, limit, left, per]) => ({
          ...{ kind: kind as 'day', limit, per },
          left: left ?? undefined,
        })),
        step.wait ?? undefined,
      )
    if (step.answered) budgets.answered(calls.get(step.answered)!, step.isStream === true)
    if (step.wrote) budgets.wrote(calls.get(step.wrote)!, step.input ?? undefined, step.written!)
    if (step.refused)
      budgets.refused(
        calls.get(step.refused)!,
        (step.kind as 'day' | null) ?? undefined,
        step.wait ?? undefined,
      )
    if (step.gone) budgets.gone(calls.get(step.gone)!, step.wasSent === true)
    if (step.ended) {
      const body = new Body(false, false)
      const { input = null, free = 0, output = null, written = 0 } = step
      body.usage = { input: input ?? undefined, free, output: output ?? undefined }
      body.written = written
      is.estimated = budgets.ended(calls.get(step.ended)!, body, step.isWhole !== false)
    }
    const peek = ([kind, cost]: [string, number]) => {
      const { at } = throttle.peek({ scopes: `m#${kind}` }, { cost })
      return [kind, Number.isFinite(at) ? round(at - clock.now()) : null]
    }
    is.waits = Object.fromEntries(Object.entries(asks).map(peek))
    is.known = [budgets.isKnown, budgets.needsUsage]
    seen.push(is)
  }
  return seen
}

const cases = readFileSync(FILE, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Case)
for (const told of cases)
  test(told.name, async () => {
    const seen = await play(told)
    if (process.env.UPDATE_GOLDEN) {
      for (const [at, is] of seen.entries()) told.steps[at]!.is = is
      writeFileSync(FILE, cases.map((each) => `${JSON.stringify(each)}\n`).join(''))
    }
    // A peek rounds to a microsecond, and each correction may do so once.
    for (const [at, { is }] of told.steps.entries()) assertNear(seen[at]!, is!, `step ${at}`)
  })

/** Equal, but for a tenth of a millisecond of waits. */
function assertNear(seen: object, want: object, at: string): void {
  for (const [key, value] of Object.entries(want) as [keyof object, unknown][])
    if (typeof value === 'number')
      assert.ok(Math.abs(seen[key] - value) < 0.1, `${at}: ${key}: ${seen[key]}, not ${value}`)
    else if (value && typeof value === 'object' && !Array.isArray(value)) assertNear(seen[key], value, at)
    else assert.deepEqual(seen[key], value, `${at}: ${key}`)
}
