/**
 * What is still to fetch: a queue for each host, and hosts take turns.
 *
 * The traps: a million waiting requests, each with its promise; a slow host at the head of the line that
 * keeps all others out. So a host has at most two requests that wait in the throttle, and the next of them
 * goes there when one has left.
 */
import { type Job, keyOf } from './journal.js'

/** The most requests that wait in the throttle, of all hosts together. */
const MOST_WAITING = 2000
const WAITING_PER_HOST = 2

/** One host: what waits here and what came of it. */
export class Host {
  readonly name: string
  #jobs: Job[] = []
  #head = 0
  /** In the throttle, and not yet sent. */
  waiting = 0
  done = 0
  failed = 0
  /** What was sent last. */
  current = ''
  /** It has answered only badly for long: what is left of it stays for another time. */
  isGivenUp = false
  isListed = false

  constructor(name: string) {
    this.name = name
  }

  get pending(): number {
    return this.#jobs.length - this.#head
  }

  push(job: Job): void {
    this.#jobs.push(job)
  }

  shift(): Job | undefined {
    const job = this.#jobs[this.#head]
    if (job === undefined) return undefined
    this.#head++
    // What was taken is let go of now and then: at once would move all that follow.
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

  /** It is done already: it will not be taken in. */
  markDone(key: string): void {
    this.#seen.add(key)
  }

  /** Takes it in, unless it was seen. */
  add(job: Job): boolean {
    const key = keyOf(job)
    if (this.#seen.has(key)) return false
    this.#seen.add(key)
    const host = this.hostOf(job)
    host.push(job)
    if (!host.isGivenUp) this.#pending++
    this.#list(host)
    return true
  }

  /** Leaves a host alone; what waits there is not handed out any more. */
  giveUp(host: Host): void {
    if (host.isGivenUp) return
    host.isGivenUp = true
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
    if (host.isGivenUp || host.isListed || host.pending === 0 || host.waiting >= WAITING_PER_HOST) return
    host.isListed = true
    this.#ready.push(host)
  }
}
