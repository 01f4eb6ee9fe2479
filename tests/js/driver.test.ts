/**
 * Plays `tests/vectors/driver.jsonl`: nested calls, and how a call ends. Python plays the same cases, with
 * tasks and with threads (`python/tests/test_driver.py`).
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createThrottle, type Permit, type RunOptions, type ThrottleOptions } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'

interface Told {
  status?: number
  headers?: Record<string, string>
  backoff?: boolean
  cost?: number
}

type Step =
  /** `inside`: the steps of its function, in its first call; it does no more in the others. */
  | { run: RunOptions & { wait?: number }; scopes?: Record<string, number>; inside?: Step[] }
  | { settle: Told }
  | { gives: Told }
  | { throws: Told }
  | { takes: number }
  | { fetch: string }

interface Case {
  name: string
  /** Those of a throttle, and how long `getScopes` takes; `when` calls these statuses bad. */
  options: ThrottleOptions & { hookTakes?: number; retry?: object }
  when?: number[]
  run?: RunOptions & { wait?: number }
  /** The targets of the calls, in turn. */
  pages?: string[]
  /** How often it is called, one after the other; or all at once. */
  times?: number
  isTogether?: boolean
  /** The robots.txt of the server, which is known before the first call. */
  robots?: string
  /** The statuses that a server gives for what the permit's `fetch` sends; the last one for ever. */
  server?: number[]
  /** Permits that are taken first and never settled. */
  holds?: number
  /** When the throttle is drained: then another call follows at once. */
  drains?: number
  /** How long it is looked, in milliseconds. */
  lasts?: number
  /** When the throttle is closed. */
  closes?: number
  /** The function's steps in each of its calls; the last holds for all further ones. */
  does: Step[][]
  // The expected calls.
  calls?: number
  sends?: number
  status?: number
  error?: string
  fails?: boolean
  left?: number
  inFlight?: number
  ends?: number
  warnings?: string[]
  /** The end of a call that comes while the throttle drains, and when that is over. */
  late?: string
  drained?: number
}

const PAGE = 'https://a.example/'
const cases: Case[] = readFileSync(new URL('../vectors/driver.jsonl', import.meta.url), 'utf8')
  .split('\n')
  .filter(Boolean)
  .map((line) => JSON.parse(line))

/** The name for the longest wait. */
const runOf = ({ wait, ...options }: RunOptions & { wait?: number } = {}): RunOptions =>
  wait === undefined ? options : { ...options, maxWait: wait }

async function play(each: Case) {
  const { when, run, pages = [PAGE], times = 1, isTogether, holds = 0, lasts = 30_000, does } = each
  const { drains, closes, server = [200] } = each
  const { hookTakes, ...options } = each.options
  const clock = new FakeClock()
  const sleep = (ms: number) => new Promise<void>((resolve) => void clock.setTimeout(resolve, ms))
  const slow = async () => {
    await sleep(hookTakes!)
    return 'a.example'
  }
  const retry = when && {
    ...(options.retry as object),
    when: ({ status }: Response) => when.includes(status),
  }
  let sends = 0
  const throttle = createThrottle({
    ...{ clock, jitter: false, delay: 0 },
    fetch: async () => new Response('', { status: server[Math.min(sends++, server.length - 1)]! }),
    ...options,
    ...(retry ? { retry } : {}),
    ...(hookTakes === undefined ? {} : { getScopes: slow }),
  } as ThrottleOptions)
  const warnings: string[] = []
  throttle.addEventListener('warning', ({ code }) => warnings.push(code))
  if (each.robots !== undefined) throttle.robots(PAGE, each.robots, { userAgent: 'bot' })
  let calls = 0
  const work = (permit: Permit) => follow(does[Math.min(calls++, does.length - 1)]!, permit)
  const follow = async (steps: Step[], permit: Permit): Promise<unknown> => {
    let answer: Response | undefined
    for (const step of steps) {
      if ('run' in step) {
        const target = step.scopes ? { scopes: step.scopes } : PAGE
        const inside = [step.inside ?? []]
        const call = (permit: Permit) => follow(inside.shift() ?? [], permit)
        await throttle.run(target, call, runOf(step.run))
      } else if ('takes' in step) await sleep(step.takes)
      else if ('fetch' in step) answer = await permit.fetch(PAGE, { method: step.fetch })
      else if ('settle' in step) permit.settle(step.settle)
      else if ('gives' in step) return { headers: {}, ...step.gives }
      else throw Object.assign(new Error('refused'), { headers: {}, ...step.throws })
    }
    return answer
  }
  for (let held = 0; held < holds; held++) void throttle.acquire(PAGE)
  const call = (_: unknown, index: number) => throttle.run(pages[index % pages.length]!, work, runOf(run))
  const all = async () => {
    if (isTogether) return (await Promise.all(Array.from({ length: times }, call)))[0]
    let given: unknown
    for (let each = 0; each < times; each++) given = await call(undefined, each)
    return given
  }
  type End = { given?: Told | undefined; error?: Error; at: number }
  let end: End = { at: Number.NaN }
  void all().then(
    (given) => (end = { given: given as Told | undefined, at: clock.now() }),
    (error: Error) => (end = { error, at: clock.now() }),
  )
  let [late, drained]: [string | undefined, number | undefined] = [undefined, undefined]
  if (drains !== undefined) {
    await clock.advance(drains)
    void throttle.drain().then(() => (drained = clock.now()))
    await throttle.run(PAGE, () => undefined).catch((error: Error) => (late = error.name))
  }
  if (closes !== undefined) {
    await clock.advance(closes)
    throttle.close()
  }
  await clock.advance(lasts - clock.now())
  const { error } = end
  return {
    calls,
    sends,
    status: end.given?.status,
    error: error?.name,
    fails: error !== undefined,
    left: throttle.scope('a.example').stats.quotaLeft,
    inFlight: throttle.stats().inFlight,
    ends: end.at,
    warnings,
    late,
    drained,
  }
}

const EXPECTED = [
  'calls',
  'sends',
  'status',
  'error',
  'fails',
  'left',
  'inFlight',
  'ends',
  'warnings',
  'late',
  'drained',
] as const

for (const each of cases)
  test(each.name, async () => {
    const told: Record<string, unknown> = await play(each)
    for (const key of EXPECTED) if (key in each) assert.deepEqual(told[key], each[key], key)
  })
