/**
 * One seed: two to nine processes with work for a few scopes, faults of every kind for some seconds, then
 * none; and what must hold of the sum of all processes whatever happened.
 */
import type { EngineOptions } from 'autothrottle'
import { Dice, LEASE_MS, Process, World } from './world.js'

export const OPTIONS: EngineOptions = {
  concurrency: 256,
  seed: 1,
  defaults: {
    delay: 0,
    slotDelay: 0,
    jitter: false,
    concurrency: 100,
    backoff: { httpCodes: [], maxDelay: 10_000 },
  },
  scopes: {
    gap: { delay: 150 },
    slots: { concurrency: 3 },
    quota: { quota: 12, window: 3000, strict: true },
    held: {},
  },
}
const NAMES = ['gap', 'slots', 'quota', 'held']
/** The least, and how much more at most: usually, and now and then, which outlasts a change of writer. */
const LATENCY_MS = [30, 400, 3500]

interface Send {
  readonly process: Process
  readonly scopes: readonly string[]
  readonly at: number
  /** When its process heard the answer. */
  endedAt: number
  /** A refusal with a wait, in milliseconds. */
  heldMs: number
}

export interface Played {
  readonly problems: string[]
  readonly sends: number
  readonly takeovers: number
  readonly faults: string[]
}

/** Plays one seed. */
export async function play(seed: number, { isCalm = false } = {}): Promise<Played> {
  const world = new World(seed)
  const dice = new Dice(seed ^ 0x5bd1e995)
  const count = 2 + dice.below(8)
  const sends: Send[] = []
  const log: string[] = []
  let toDo = 60
  let isOver = false
  const latency = () => LATENCY_MS[0]! + dice.below(LATENCY_MS[dice.below(6) === 0 ? 2 : 1]!)
  const begin = (process: Process) => {
    const requests = new Map<number, readonly string[]>()
    const submit = () => {
      if (toDo <= 0 || process.isDead) return
      toDo--
      const scopes = dice.below(5) === 0 ? [NAMES[dice.below(4)]!, 'slots'] : [NAMES[dice.below(4)]!]
      const names = [...new Set(scopes)]
      const handles = names.map((name) => process.host.intern(name))
      const priority = dice.below(8) === 0 ? dice.below(3) : 0
      const ticket = process.host.submit(process.clock.now(), handles, { priority })
      requests.set(ticket, names)
      if (dice.below(25) === 0)
        world.after(dice.below(400), process, () => {
          if (requests.delete(ticket)) {
            process.host.cancel(process.clock.now(), ticket)
            submit()
          }
        })
    }
    const work = (ticket: number) => {
      const names = requests.get(ticket)
      if (names === undefined) throw new Error(`seed ${seed}: a ticket twice, or of nobody`)
      requests.delete(ticket)
      const send: Send = { process, scopes: names, at: world.now, endedAt: Infinity, heldMs: 0 }
      sends.push(send)
      world.after(latency(), process, () => {
        send.endedAt = world.now
        const isRefused = names.includes('held') && dice.below(8) === 0
        if (isRefused) send.heldMs = 1000 + dice.below(2000)
        const hints = isRefused ? { hints: { delayMs: send.heldMs } } : {}
        const outcome = { status: isRefused ? 429 : 200, latencyMs: 50, ...hints }
        const retry = !isOver && dice.below(10) === 0 ? { retryDelay: dice.below(300) } : {}
        const settled = process.host.settle(process.clock.now(), ticket, { ...outcome, ...retry })
        if (settled === 'again') requests.set(ticket, names)
        else submit()
      })
    }
    process.listen(work)
    for (let each = 0; each < 4; each++) world.after(dice.below(200), process, submit)
    return requests
  }
  const start = (id: string) => {
    const process = new Process(world, id, OPTIONS)
    return { process, requests: begin(process) }
  }
  const all = Array.from({ length: count }, (_, index) => start(`p${index}`))
  if (!isCalm) {
    world.faults.way = [1 + dice.below(5), dice.below(20)]
    world.faults.loss = dice.below(3) === 0 ? dice.next() * 0.2 : 0
    world.faults.doubled = dice.below(3) === 0 ? dice.next() * 0.3 : 0
    for (let fault = dice.below(5); fault > 0; fault--) {
      // Not in the first second: the next writer knows of nobody before a beat was heard.
      world.after(1000 + dice.below(5000), undefined, () => {
        const alive = all.filter(({ process }) => !process.isDead)
        const byLease = alive.find(({ process }) => process.id === world.store.holder)
        const { process } = (dice.below(2) === 0 && byLease) || alive[dice.below(alive.length)]!
        const what = dice.below(4)
        const ms = 100 + dice.below(5000)
        log.push(`${world.now.toFixed(0)} ${process.id} ${['kill', 'stop', 'cut', 'join'][what]} ${ms}`)
        if (what === 0 && alive.length > 1) process.kill()
        else if (what === 1) process.stop(ms)
        else if (what === 2) process.cut(ms)
        else if (what === 3 && all.length < 9) all.push(start(`p${all.length}`))
      })
    }
  }
  await world.run(7000)
  isOver = true
  toDo = 0
  world.faults.loss = world.faults.doubled = 0
  await world.run(16_000)
  const problems = problemsOf(world, sends)
  for (const { process, requests } of all) {
    if (process.isDead) continue
    if (requests.size > 0 || process.host.waiting > 0)
      problems.push(`${process.id}: ${requests.size} of its requests were forgotten`)
    if (process.host.inFlight > 0) problems.push(`${process.id}: ${process.host.inFlight} in flight for ever`)
  }
  const writer = all.find(({ process }) => process.id === world.store.holder)?.process
  const { waiting, inFlight, ageMs } = writer!.host.stats(undefined, writer!.clock.now())
  if (ageMs !== 0) problems.push(`nobody writes: ${world.store.holder} is ${ageMs} ms behind`)
  else if (waiting + inFlight > 0)
    problems.push(`the writer counts ${waiting} waiting, ${inFlight} in flight`)
  return { problems, sends: sends.length, takeovers: world.takeovers.length, faults: log }
}

/** What the next writer could not know: see "the stated window" in `docs/shared.md`. */
function isUnknown(world: World, send: Send): boolean {
  const { process, at } = send
  return world.takeovers.some((takeover) => {
    if (at > takeover.at + 200 || at < takeover.at - 3 * LEASE_MS) return false
    const wasAway = process.away.some(({ from, to }) => from <= takeover.at + 200 && to >= at)
    return takeover.from === process.id || process.diedAt <= takeover.at + 200 || wasAway
  })
}

/** A process that sleeps while a grant is due sends when it wakes: no longer than a lease after that. */
function isLate(send: Send): boolean {
  return send.process.away.some(({ to }) => send.at >= to && send.at <= to + 60)
}

/** Until when others have to count it: dead, asleep or cut off for two leases, its slots are given back. */
function countedUntil(send: Send): number {
  const { process } = send
  const lost = process.away.filter(
    ({ from, to }) => to - from > LEASE_MS && to > send.at && from < send.endedAt,
  )
  const awayAt = Math.min(...lost.map(({ from }) => from), Infinity)
  return Math.min(send.endedAt, process.diedAt, awayAt)
}

function problemsOf(world: World, all: readonly Send[]): string[] {
  const problems: string[] = []
  const of = (scope: string) =>
    all.filter((send) => send.scopes.includes(scope) && !isUnknown(world, send) && !isLate(send))
  const gap = of('gap')
  for (let at = 1; at < gap.length; at++) {
    const [one, other] = [gap[at - 1]!, gap[at]!]
    const ms = other.at - one.at
    if (ms < 150 - 1) problems.push(`gap: ${ms} ms at ${other.at} (${one.process.id}, ${other.process.id})`)
  }
  const slots = of('slots')
  for (const send of slots) {
    const flying = slots.filter((other) => other.at <= send.at && countedUntil(other) > send.at)
    if (flying.length > 3)
      problems.push(`slots: ${flying.length} at ${send.at} (${flying.map((each) => each.process.id)})`)
  }
  const quota = of('quota')
  for (const send of quota) {
    const used = quota.filter(({ at }) => at > send.at - 3000 + 1 && at <= send.at)
    if (used.length > 12) problems.push(`quota: ${used.length} before ${send.at}`)
  }
  for (const refusal of all.filter(({ heldMs }) => heldMs > 0)) {
    // The news has to arrive, and may have to be told again.
    const from = refusal.endedAt + 2 * LEASE_MS
    const until = refusal.endedAt + refusal.heldMs - 1
    if (isUnknown(world, { ...refusal, at: refusal.endedAt })) continue
    const early = of('held').find(({ at }) => at > from && at < until)
    if (early) problems.push(`hold: ${early.at} by ${early.process.id}, held until ${until}`)
  }
  return problems
}
