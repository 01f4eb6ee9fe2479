/**
 * One seed: two to nine processes with work for a few scopes, faults of every kind for some seconds, then
 * none; and what must hold of the sum of all processes whatever happened.
 */
import type { EngineOptions } from 'autothrottle'
import { Dice } from '../dice.js'
import { LEASE_MS, Process, World } from './world.js'

export const OPTIONS: EngineOptions = {
  concurrency: 256,
  seed: 1,
  defaults: {
    delay: 0,
    slotDelay: 0,
    jitter: false,
    concurrency: 100,
    backoff: { statusCodes: [], maxDelay: 10_000 },
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
const FAULTS = ['kill', 'stop', 'cut', 'join', 'forget', 'busy'] as const

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

/** A process, and what it asked for by ticket. */
interface Asking {
  readonly process: Process
  readonly requests: ReadonlyMap<number, readonly string[]>
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
        if (isRefused) send.heldMs = 1000 + dice.below(4000)
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
  const start = (id: string): Asking => {
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
        const what = FAULTS[dice.below(FAULTS.length)]!
        const ms = 100 + dice.below(5000)
        log.push(`${world.now.toFixed(0)} ${process.id} ${what} ${ms}`)
        if (what === 'kill' && alive.length > 1) process.kill()
        else if (what === 'stop') process.stop(ms)
        else if (what === 'cut') process.cut(ms)
        else if (what === 'join' && all.length < 9) all.push(start(`p${all.length}`))
        else if (what === 'forget') world.forget()
        else if (what === 'busy') world.busy(ms, dice)
      })
    }
  }
  await world.run(7000)
  isOver = true
  toDo = 0
  world.faults.loss = world.faults.doubled = 0
  // Whatever goes on is over at once, or after sixteen seconds.
  let late: string[] = []
  for (let second = 0; second < 16; second++) {
    await world.run(1000)
    late = unfinished(world, all)
    if (late.length === 0) break
  }
  const problems = [...problemsOf(world, sends), ...late]
  return { problems, sends: sends.length, takeovers: world.takeovers.length, faults: log }
}

/** What is forgotten, and what flies for ever. */
function unfinished(world: World, all: readonly Asking[]): string[] {
  const problems: string[] = []
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
  return problems
}

/** The longest way of a message, in milliseconds: to the store and from there. Grants are so far ahead. */
const WAY_MS = 50
const BEAT_MS = LEASE_MS / 3
/** Leave that is later is not used, in milliseconds. */
const LATE_MS = LEASE_MS
/** Whoever is back has told its story after so long: the second beat shows what it missed. */
const TELL_MS = 2 * BEAT_MS + 3 * WAY_MS

/**
 * The stated windows of `docs/shared.md`, and nothing beyond. Where messages are lost, a story is told again
 * with each beat: six of them are waited for.
 */
class Windows {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  /** Whether `process` could tell by `at` what happened there at `since`; it needs so long if it is there. */
  hasTold({ away, diedAt }: Process, since: number, at: number, ms = 2 * WAY_MS): boolean {
    const { hadLoss } = this.#world
    const story = hadLoss ? 6 * BEAT_MS : TELL_MS
    let [from, needs] = [since, hadLoss ? story : ms]
    for (const { from: left, to: back } of away)
      if (left < from + story && back > from - story) [from, needs] = [Math.max(back, since), story]
    return at >= from + needs && diedAt >= from + (hadLoss ? story : 2 * WAY_MS)
  }

  /**
   * Whether a writer that decided at `at` may not know what happened in `process` at `when`: another wrote
   * then, the memory is older, and the process could not tell. One that the memory lacks is not waited for.
   * What was granted the writer before knew at once, news it had to be told.
   */
  isUnknown(process: Process, when: number, at: number, { isNews = false } = {}): boolean {
    return this.#world.takeovers.some((takeover) => {
      if (takeover.at > at || when > takeover.at + LATE_MS + WAY_MS) return false
      const remembered = takeover.knownUntil - WAY_MS
      if (isNews ? this.hasTold(process, when, remembered) : when < remembered) return false
      const isNew = process.startedAt > takeover.knownUntil - BEAT_MS
      return !this.hasTold(process, Math.max(takeover.at, when), at, isNew ? TELL_MS : 2 * WAY_MS)
    })
  }

  /** A process that is stopped for a moment uses what has just become due when it wakes. */
  isLate({ process, at }: Send): boolean {
    return process.away.some(({ to, isStopped }) => isStopped && at >= to && at <= to + 1)
  }

  /**
   * Until when its slots have to be counted: dead, they are free; silent for two leases, they are given back.
   * A writer that has not heard it itself goes by the memory.
   */
  countedUntil({ process, at, endedAt }: Send): number {
    const longest = (this.#world.hadLoss ? LEASE_MS : 2 * LEASE_MS) - BEAT_MS - 2 * WAY_MS
    const lost = process.away.flatMap(({ from, to: back }) => {
      // It pings so often.
      const to = back + BEAT_MS + 2 * WAY_MS
      const writers = this.#world.takeovers.filter((one) => one.at > from - WAY_MS && one.at < to)
      // A writer that was away itself heard nobody meanwhile.
      const deaf = this.#world
        .wrote(from, to)
        .flatMap((writer) => writer.away.filter((one) => one.from < to && one.to > from - LEASE_MS))
      const heardAt = Math.min(
        from,
        ...writers.map(({ knownUntil }) => knownUntil),
        ...deaf.map((one) => one.from),
      )
      return to > at && from < endedAt && to - heardAt > longest ? [Math.max(heardAt + longest, from)] : []
    })
    return Math.min(endedAt, process.diedAt, ...lost)
  }
}

function problemsOf(world: World, all: readonly Send[]): string[] {
  const problems: string[] = []
  const windows = new Windows(world)
  const of = (scope: string) => all.filter((send) => send.scopes.includes(scope))
  /** What counts for whoever decided on one of them. */
  const known = (sends: readonly Send[], { at }: Send) =>
    sends.filter((send) => send.at <= at && !windows.isUnknown(send.process, send.at, at))
  const gap = of('gap').filter((send) => !windows.isLate(send))
  for (const send of gap) {
    const before = known(gap, send)
    const last = before.at(-1) === send ? before.at(-2) : undefined
    if (last && send.at - last.at < 150 - 1)
      problems.push(`gap: ${send.at - last.at} ms at ${send.at} (${last.process.id}, ${send.process.id})`)
  }
  const slots = of('slots')
  for (const send of slots) {
    const flying = known(slots, send).filter((other) => windows.countedUntil(other) > send.at)
    if (flying.length > 3 && flying.includes(send))
      problems.push(`slots: ${flying.length} at ${send.at} (${flying.map((each) => each.process.id)})`)
  }
  const quota = of('quota')
  for (const send of quota) {
    const isWithin = (other: Send) => other.at > send.at - 3000 + 1
    const used = known(quota, send).filter(isWithin)
    if (used.length > 12 && used.includes(send)) problems.push(`quota: ${used.length} before ${send.at}`)
  }
  for (const { process, endedAt, heldMs } of all.filter((send) => send.heldMs > 0)) {
    const until = endedAt + heldMs - 1
    const early = of('held').find((send) => {
      if (send.at <= endedAt || send.at >= until || windows.isLate(send)) return false
      if (!windows.hasTold(process, endedAt, send.at)) return false
      if (windows.isUnknown(process, endedAt, send.at, { isNews: true })) return false
      // A writer that is cut off, or was asleep, has not heard it.
      return !world.wrote(endedAt, send.at).some((writer) => !windows.hasTold(writer, endedAt, send.at))
    })
    if (early) problems.push(`hold: ${early.at} by ${early.process.id}, held ${endedAt} to ${until}`)
  }
  return problems
}
