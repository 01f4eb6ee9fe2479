/**
 * The loop of `crawl` and `get`: takes from the frontier as fast as hosts have room, sends, keeps and notes.
 * It goes on until no URL is left or a signal stops it.
 */
import type { Throttle } from 'autothrottle'
import { joined } from '../base/joined.js'
import { toUrl } from '../scopes/names.js'
import { type Body, receive, type Within } from './body.js'
import { codeOf, isOfDisk, isOfNetwork, LateError, messageOf } from './failures.js'
import { type Failure, Frontier, type Host } from './frontier.js'
import type { Job, Journal } from './journal.js'
import { Series } from './series.js'
import type { HeadersKept, Settings } from './settings.js'
import { isAgain, isRefused, type Store } from './store.js'
import type { Entry } from './warc.js'

/** Reads an answer while its body arrives. */
export interface Reader {
  /** Whether the body is read once more, at its end. */
  readonly isReadingAgain?: boolean
  onPart?(part: Uint8Array): void
  /** Completes the entry; gives what was found. */
  end(body: Body): Iterable<Job>
}

/** The parts of a command: how a job is sent, and what its answer leads to. */
export interface Task {
  readonly command: 'crawl' | 'get'
  init(job: Job): RequestInit
  read(job: Job, response: Response, entry: Entry): Reader
  /** Hears of what an earlier run had found. */
  recall?(job: Job): void
  /** A word about a failure of the network. */
  hint?(job: Job): string
  /** Feeds the frontier from outside, and resolves when there is no more. */
  feed(run: Run): Promise<void>
  /** Answers after which it is enough. */
  readonly most: number
}

/** How a run ended. */
export interface Totals {
  pages: number
  bytes: number
  /** Everything that was sent: URLs, robots.txt, all attempts. */
  requests: number
  /** Answers 429 and 503, those of attempts that were sent again as well. */
  refused: number
  failed: number
  disallowed: number
  /** URLs that were not fetched since their host is left alone. */
  stalled: number
  /** Of URLs: the status of each one's last answer. */
  readonly statuses: Map<number, number>
}

/** The most failures that are printed one by one. */
const PROBLEMS_SHOWN = 3
/** Response headers that identify a user. */
const COOKIES = new Set(['set-cookie', 'set-cookie2'])

export class Run {
  readonly settings: Settings
  readonly frontier = new Frontier()
  readonly throttle: Throttle
  readonly totals: Totals = {
    ...{ pages: 0, bytes: 0, requests: 0, refused: 0, failed: 0, disallowed: 0, stalled: 0 },
    statuses: new Map(),
  }
  /** Tells a problem where it can be seen. */
  say: (problem: string) => void = () => {}
  readonly series: Series
  readonly startedAt = Date.now()
  readonly #task: Task
  readonly #store: Store
  readonly #journal: Journal | undefined
  readonly #stop = new AbortController()
  #active = 0
  #isFed = false
  #failure: { error: unknown } | undefined
  #wakes: (() => void)[] = []

  constructor(settings: Settings, task: Task, throttle: Throttle, store: Store, state: Journal | undefined) {
    this.settings = settings
    this.throttle = throttle
    this.series = new Series(this.startedAt)
    this.#task = task
    this.#store = store
    this.#journal = state
  }

  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** Sent, and not yet done with. */
  get inFlight(): number {
    return this.#active - this.frontier.waiting
  }

  /** Pages that are still to come, as far as is known. */
  get left(): number {
    return Math.max(0, Math.min(this.frontier.pending, this.#task.most - this.totals.pages))
  }

  /** Why it stopped before the end. */
  get stopped(): string | undefined {
    return this.#stop.signal.aborted ? String(this.#stop.signal.reason) : undefined
  }

  stop(why: string): void {
    this.#stop.abort(why)
    this.#wake()
  }

  /** Takes in what is new, and notes it. */
  add(jobs: Iterable<Job>): void {
    const found = [...jobs].filter((job) => this.frontier.add(job))
    this.#journal?.found(found)
    this.#pump()
  }

  /** Resolves when there is room for more: an endless list is not read into memory. */
  async room(): Promise<void> {
    while (this.frontier.pending > 50_000 && !this.signal.aborted) await this.#change()
  }

  /** Runs to the end. */
  async go(): Promise<void> {
    const fed = this.#task.feed(this).then(
      () => {
        this.#isFed = true
        this.#wake()
      },
      (error) => this.#fail(error),
    )
    this.#pump()
    for (;;) {
      const isEmpty = this.#isFed && this.frontier.pending === 0
      if (this.#active === 0 && (isEmpty || this.signal.aborted)) break
      await this.#change()
    }
    if (!this.signal.aborted) await fed
    await this.#leaveAlone()
    this.#journal?.savePace(this.throttle, Date.now(), true)
    this.#journal?.close()
    this.#store.close()
    if (this.#failure) throw this.#failure.error
  }

  /** Looks after what is kept now and then. */
  tick(now: number): void {
    this.#journal?.savePace(this.throttle, now)
  }

  #pump(): void {
    while (!this.signal.aborted) {
      const job = this.frontier.next()
      if (job === undefined) return
      this.#active++
      this.#one(job)
        .catch((error) => this.#fail(error))
        .finally(() => {
          this.#active--
          this.#pump()
          this.#wake()
        })
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= { error }
    this.stop('failed')
  }

  /** A promise for each wait: reactions on a long-lived one would pile up. */
  #change(): Promise<void> {
    return new Promise((resolve) => this.#wakes.push(resolve))
  }

  #wake(): void {
    for (const wake of this.#wakes.splice(0)) wake()
  }

  async #one(job: Job): Promise<void> {
    const host = this.frontier.hostOf(job)
    let isLeft = false
    const giveBack = () => {
      if (isLeft) return
      isLeft = true
      this.frontier.left(host)
      this.#pump()
    }
    const { timeout, clock } = this.settings
    const sends = new Sends({ ms: timeout, clock }, (at) => {
      host.sent(at)
      giveBack()
    })
    const entry: Entry = { url: job.url, key: job.key }
    try {
      const found = await this.#exchange(job, host, sends, entry)
      if (found === undefined) return
      // Links are noted before the page that they were found on is done.
      this.add(found)
      await this.#commit(entry)
      if (this.totals.pages >= this.#task.most) this.stop('enough')
    } finally {
      giveBack()
      await sends.body?.drop()
    }
  }

  /** The line of the index; without an index, the journal says that it is done. */
  async #commit(entry: Entry): Promise<void> {
    await this.#store.commit(entry)
    if (!this.#store.hasIndex && !isAgain(entry, false))
      this.#journal?.done(entry.key ?? entry.url, isRefused(entry))
  }

  /** Sends and keeps; `undefined` where it was stopped, and is still to do. */
  async #exchange(job: Job, host: Host, sends: Sends, entry: Entry): Promise<Job[] | undefined> {
    host.current = job.url
    try {
      const found = await this.#answer(job, host, sends, entry)
      if (!this.signal.aborted) this.#count(entry, host)
      return this.signal.aborted ? undefined : found
    } catch (error) {
      if (this.signal.aborted) return undefined
      return this.#failed(error, job, host, entry, sends) ? [] : undefined
    }
  }

  async #answer(job: Job, host: Host, sends: Sends, entry: Entry): Promise<Job[]> {
    const marked = sends.mark({ ...this.#task.init(job), signal: this.signal })
    const response = await this.throttle.fetch(job.url, marked)
    host.answered(sends.latencyMs)
    const { status, statusText, headers } = response
    const details: Partial<Entry> = {}
    const reader = this.#task.read(job, response, details as Entry)
    const place = await this.#store.place(job.url, headers.get('content-type') ?? '')
    const body = await receive(response, {
      most: this.settings.maxSize,
      within: { ms: this.settings.maxTime, clock: this.settings.clock },
      file: place?.path,
      isReadAgain: reader.isReadingAgain === true || this.#store.isArchive,
      spare: () => this.#store.spare(),
      onPart: (part) => reader.onPart?.(part),
    })
    sends.body = body
    const found = [...reader.end(body)]
    Object.assign(entry, {
      ...(job.depth === undefined ? {} : { depth: job.depth }),
      ...sends.times(),
      status,
      bytes: body.bytes,
      ...(body.isCut ? { truncated: true } : {}),
      ...this.#headersOf(headers),
      ...details,
      ...(place !== undefined && body.bytes > 0 ? { file: place.file } : {}),
    })
    await this.#store.archive(entry, { body, statusText, headers })
    return found
  }

  #count({ status = 0, bytes = 0 }: Entry, host: Host): void {
    const { totals } = this
    totals.statuses.set(status, (totals.statuses.get(status) ?? 0) + 1)
    if (status >= 200 && status < 300) totals.pages++
    totals.bytes += bytes
    host.done++
  }

  #headersOf(headers: Headers): Partial<Entry> {
    const { headersKept } = this.settings
    if (headersKept === undefined) return {}
    const kept = Object.fromEntries([...headers].filter(([name]) => wants(headersKept, name)))
    const cookies = headers.getSetCookie()
    return { headers: 'set-cookie' in kept ? { ...kept, 'set-cookie': cookies } : kept }
  }

  /**
   * A URL without an answer is an entry, too; what is wrong with our options or our disk ends the run. Gives
   * whether it is done: with a state, what a host that is left alone still has stays to be done.
   */
  #failed(error: unknown, job: Job, host: Host, entry: Entry, sends: Sends): boolean {
    const { code, isUnavailable } = error as { code?: unknown; isUnavailable?: boolean }
    if (code === 'ERR_CONFIG' || code === 'ERR_MANAGER') throw error
    if (isOfDisk(error)) throw new Error('the pages cannot be kept', { cause: error })
    const failure = this.#failureOf(error, job)
    if (isUnavailable) this.giveUp(host.name, failure)
    const isLeft = isUnavailable ? !isOfNetwork(failure.code) : host.givenUp !== undefined
    if (isLeft && this.#journal) {
      this.totals.stalled++
      return false
    }
    Object.assign(entry, { depth: job.depth, ...sends.times(), ...failure })
    host.failed++
    this.#record(entry)
    return true
  }

  #failureOf(error: unknown, job: Job): Failure {
    const of = codeOf(error)
    const hint = isOfNetwork(of) && of !== 'ERR_DNS' ? (this.#task.hint?.(job) ?? '') : ''
    return { error: `${messageOf(error)}${hint}`, code: of === 'ERR_DISALLOWED' ? 'ERR_ROBOTS' : of }
  }

  /** Counts what has no answer, and tells the first ones; what was said of the whole host is said once. */
  #record({ url, error, code }: Entry): void {
    const givenUp = this.frontier.hosts.get(toUrl(url)?.host ?? '')?.givenUp
    if (code === 'ERR_ROBOTS' && givenUp === undefined) this.totals.disallowed++
    else if (++this.totals.failed <= PROBLEMS_SHOWN && error !== givenUp?.error) this.say(`${url}: ${error}`)
  }

  /** A line of a list that is none: it comes back, once. */
  async reject(text: string, line: number, error: string): Promise<void> {
    if (!this.frontier.markDone(text)) return
    const entry: Entry = { url: text, line, error: `line ${line}: ${error}`, code: 'ERR_LINE' }
    this.#record(entry)
    await this.#commit(entry)
  }

  /** A host that has answered only badly for long, or whose robots.txt fails, keeps no other waiting. */
  giveUp(name: string, why: Failure): void {
    const host = this.frontier.hosts.get(name)
    if (host === undefined || host.givenUp) return
    this.frontier.giveUp(host, why)
    this.say(`${name} is left alone: ${why.error}`)
    this.#wake()
  }

  /** Ends the jobs of hosts that stalled: they stay in the state; without one, each has its line. */
  async #leaveAlone(): Promise<void> {
    for (const host of this.frontier.hosts.values()) {
      if (host.givenUp === undefined) continue
      if (this.#journal || this.signal.aborted) this.totals.stalled += host.pending
      else
        for (let job = host.shift(); job; job = host.shift()) {
          const entry = { url: job.url, key: job.key, depth: job.depth, ...host.givenUp }
          this.#record(entry)
          await this.#commit(entry)
        }
    }
  }
}

const wants = ({ isAll, names }: HeadersKept, name: string) =>
  names.has(name) || (isAll && !COOKIES.has(name))

// Notes on the sends of one URL: when, how often, how long until the headers came, the body. Redirects that
// the throttle follows have their time together.

const SENT: unique symbol = Symbol('sent')

/** The sends of one URL. */
export class Sends {
  readonly #within: Within
  readonly #onSend: (at: number) => void
  #firstAt = 0
  /** In flight since the last answer that was no redirect. */
  #redirectedMs = 0
  latencyMs = 0
  attempts = 0
  /** The last body, until its line is written. */
  body: Body | undefined

  constructor(within: Within, onSend: (at: number) => void) {
    this.#within = within
    this.#onSend = onSend
  }

  /** Options of `fetch` by which `noted` knows whose send it is. */
  mark(init: RequestInit): RequestInit {
    return { ...init, [SENT]: this } as RequestInit
  }

  times(): Partial<Entry> {
    if (this.attempts === 0) return {}
    return {
      sentAt: new Date(this.#firstAt).toISOString(),
      latencyMs: Math.round(this.latencyMs),
      totalMs: Date.now() - this.#firstAt,
      attempts: this.attempts,
    }
  }

  async send(send: typeof fetch, input: Parameters<typeof fetch>[0], init?: RequestInit): Promise<Response> {
    const at = Date.now()
    this.#firstAt ||= at
    this.attempts++
    this.#onSend(at)
    const { ms, clock } = this.#within
    const [start, clockStart] = [performance.now(), clock.now()]
    let isRedirect = false
    try {
      const sent = (signal?: AbortSignal) => send(input, signal ? { ...init, signal } : init)
      // The first has the throttle's own timeout.
      const response = this.#redirectedMs > 0 ? await this.#left(sent, init?.signal ?? null) : await sent()
      isRedirect = response.status >= 300 && response.status < 400
      return response
    } finally {
      this.latencyMs = performance.now() - start
      this.#redirectedMs = isRedirect ? Math.min(ms, this.#redirectedMs + clock.now() - clockStart) : 0
    }
  }

  /** Within the time that the redirects before have left. */
  #left(sent: (signal: AbortSignal) => Promise<Response>, signal: AbortSignal | null): Promise<Response> {
    const { ms, clock } = this.#within
    const controller = new AbortController()
    return new Promise((resolve, reject) => {
      const timer = clock.setTimeout(() => {
        const late = new LateError('the request, with its redirects,', ms)
        reject(late)
        controller.abort(late)
      }, ms - this.#redirectedMs)
      sent(joined(signal, controller))
        .finally(() => clock.clearTimeout(timer))
        .then(resolve, reject)
    })
  }
}

/** A `fetch` that notes each send on its way out. */
export function noted(send: typeof fetch): typeof fetch {
  return async (input, init) => {
    const sends = (init as { [SENT]?: Sends } | undefined)?.[SENT]
    return sends === undefined ? send(input, init) : sends.send(send, input, init)
  }
}
