/**
 * The jobs that are still to fetch: a queue for each host, and hosts take turns.
 *
 * A host has at most two requests that wait in the throttle, and the next of them goes there when one has
 * left. A million jobs therefore wait without promises, and a slow host at the head of the line keeps no
 * other out.
 */
import { type Job, keyOf } from './journal.js'

/** The most requests that wait in the throttle, of all hosts together. */
const MOST_WAITING = 2000
const WAITING_PER_HOST = 2
/** Sends that a host's gap is taken from. */
const GAPS = 8

/** Why there is no answer. */
export interface Failure {
  readonly error: string
  readonly code: string
}

/** One host: what waits here and what came of it. */
export class Host {
  readonly name: string
  #jobs: Job[] = []
  #head = 0
  /** In the throttle, and not yet sent. */
  waiting = 0
  done = 0
  failed = 0
  /** The URL that was sent last. */
  current = ''
  /** Why it is left alone, with what is left of it. */
  givenUp: Failure | undefined
  /** From a send to its headers, in milliseconds: a mean of the last answers. */
  latencyMs = 0
  #sentAt: number[] = []
  isListed = false

  constructor(name: string) {
    this.name = name
  }

  get pending(): number {
    return this.#jobs.length - this.#head
  }

  /** Milliseconds between its last sends. */
  get gapMs(): number {
    const [first, last] = [this.#sentAt[0], this.#sentAt.at(-1)]
    return first === undefined || last === undefined
      ? 0
      : (last - first) / Math.max(1, this.#sentAt.length - 1)
  }

  sent(at: number): void {
    this.#sentAt.push(at)
    if (this.#sentAt.length > GAPS) this.#sentAt.shift()
  }

  answered(latencyMs: number): void {
    this.latencyMs += (latencyMs - this.latencyMs) * (this.latencyMs === 0 ? 1 : 0.2)
  }

  push(job: Job): void {
    this.#jobs.push(job)
  }

  shift(): Job | undefined {
    const job = this.#jobs[this.#head]
    if (job === undefined) return undefined
    this.#head++
    // Taken jobs are removed in batches: one at a time would move all that follow.
    if (this.#head > 1000 || this.#head === this.#jobs.length) {
      this.#jobs = this.#jobs.slice(this.#head)
      this.#head = 0
    }
    return job
  }
}

export class Frontier {
  readonly hosts = new Map<string, Host>()
  readonly #seen = new Set<string>()
  #ready: Host[] = []
  #waiting = 0
  #pending = 0

  /** In the throttle, and not yet sent. */
  get waiting(): number {
    return this.#waiting
  }

  /** How many were not handed out. */
  get pending(): number {
    return this.#pending
  }

  /** It is done already: it will not be taken in. Gives whether that is news. */
  markDone(key: string): boolean {
    const isNew = !this.#seen.has(key)
    this.#seen.add(key)
    return isNew
  }

  /** Takes it in, unless it was seen. */
  add(job: Job): boolean {
    const key = keyOf(job)
    if (this.#seen.has(key)) return false
    this.#seen.add(key)
    const host = this.hostOf(job)
    host.push(job)
    if (!host.givenUp) this.#pending++
    this.#list(host)
    return true
  }

  /** Leaves a host alone; what waits there is not handed out any more. */
  giveUp(host: Host, why: Failure): void {
    if (host.givenUp) return
    host.givenUp = why
    this.#pending -= host.pending
    this.#ready = this.#ready.filter((each) => each !== host)
  }

  /** The next one whose host has room, hosts in turn. */
  next(): Job | undefined {
    if (this.#waiting >= MOST_WAITING) return undefined
    const host = this.#ready.shift()
    const job = host?.shift()
    if (host === undefined || job === undefined) return undefined
    host.isListed = false
    host.waiting++
    this.#waiting++
    this.#pending--
    this.#list(host)
    return job
  }

  /** It has left the throttle: sent, or over without that. */
  left(host: Host): void {
    host.waiting--
    this.#waiting--
    this.#list(host)
  }

  hostOf({ url }: Job): Host {
    const { host: name } = new URL(url)
    let host = this.hosts.get(name)
    if (host === undefined) {
      host = new Host(name)
      this.hosts.set(name, host)
    }
    return host
  }

  #list(host: Host): void {
    if (host.givenUp || host.isListed || host.pending === 0 || host.waiting >= WAITING_PER_HOST) return
    host.isListed = true
    this.#ready.push(host)
  }
}
