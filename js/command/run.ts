/**
 * The loop of `crawl` and `get`: takes from the frontier as fast as hosts have room, sends, keeps, notes, and
 * goes on until nothing is left or somebody stops it.
 */
import { createThrottle, type Throttle, type ThrottleOptions } from 'autothrottle'
import { Frontier, type Host } from './frontier.js'
import { type Job, Journal, keyOf } from './journal.js'
import { rules } from './parsers.js'
import { Series } from './series.js'
import type { Settings } from './settings.js'
import { type Entry, Store } from './store.js'
import { startView, type View } from './view.js'

/** An answer as a command sees it. */
export interface Answer {
  readonly response: Response
  readonly body: Buffer
  readonly type: string
}

/** What a command adds: how a job is sent, and what its answer leads to. */
export interface Task {
  readonly command: 'crawl' | 'get'
  init(job: Job): RequestInit
  /** Completes the entry; gives what was found. */
  onAnswer(job: Job, answer: Answer, entry: Entry): Iterable<Job>
  /** Feeds the frontier from outside, and resolves when there is nothing more. */
  feed(run: Run): Promise<void>
  /** Answers after which it is enough. */
  readonly most: number
}

/** How a run ended. */
export interface Totals {
  pages: number
  bytes: number
  refused: number
  failed: number
  disallowed: number
  /** URLs that were not fetched since their host had answered only badly for long. */
  stalled: number
  readonly statuses: Map<number, number>
}

/** Each attempt of a job, noted by the `fetch` that sends it. */
interface Sent {
  onSend: () => void
  firstAt: number
  lastAt: number
  latencyMs: number
  attempts: number
}
/** The most failures that are told one by one. */
const PROBLEMS_SHOWN = 3
const SENT: unique symbol = Symbol('sent')

export class Run {
  readonly settings: Settings
  readonly frontier = new Frontier()
  readonly throttle: Throttle
  readonly totals: Totals = {
    ...{ pages: 0, bytes: 0, refused: 0, failed: 0, disallowed: 0, stalled: 0 },
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
    this.#journal?.keep(this.throttle, Date.now(), true)
    this.#journal?.close()
    this.#store.close()
    if (this.#failure) throw this.#failure.error
  }

  /** Looks after what is kept now and then. */
  tick(now: number): void {
    this.#journal?.keep(this.throttle, now)
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
    const leave = () => {
      if (isLeft) return
      isLeft = true
      this.frontier.left(host)
      this.#pump()
    }
    const sent: Sent = { onSend: leave, firstAt: 0, lastAt: 0, latencyMs: 0, attempts: 0 }
    const entry: Entry = { url: job.url, key: job.key }
    try {
      const found = await this.#exchange(job, host, sent, entry)
      if (found === undefined) return
      // What was found is noted before the page that it was found on is done.
      this.add(found)
      await this.#store.commit(entry)
      if (!this.#store.hasIndex) this.#journal?.done(job)
      if (this.totals.pages >= this.#task.most) this.stop('enough')
    } finally {
      leave()
    }
  }

  /** Sends and keeps; `undefined` where it was stopped, and is still to do. */
  async #exchange(job: Job, host: Host, sent: Sent, entry: Entry): Promise<Job[] | undefined> {
    host.current = job.url
    const answer = await this.#answer(job, sent).catch((error) => this.#failed(error, host, entry))
    if (this.signal.aborted) return undefined
    if (host.isGivenUp && answer === undefined) {
      // It stays to be done: nothing was learned about it.
      this.totals.stalled++
      return undefined
    }
    Object.assign(entry, { depth: job.depth, ...timesOf(sent) })
    if (answer === undefined) return []
    const { response, body, type, isCut } = answer
    Object.assign(entry, {
      status: response.status,
      bytes: body.length,
      ...(isCut ? { truncated: true } : {}),
      headers: Object.fromEntries(response.headers),
    })
    const found = [...this.#task.onAnswer(job, answer, entry)]
    await this.#store.write(entry, { body, statusText: response.statusText, type })
    if (response.ok) this.totals.pages++
    this.totals.bytes += body.length
    host.done++
    return found
  }

  async #answer(job: Job, sent: Sent): Promise<Answer & { isCut: boolean }> {
    const marked = { ...this.#task.init(job), signal: this.signal, [SENT]: sent }
    const response = await this.throttle.fetch(job.url, marked)
    const type = response.headers.get('content-type') ?? ''
    return { response, type, ...(await read(response, this.settings.maxSize)) }
  }

  /** A URL without an answer is an entry, too; what is wrong with our options ends the run. */
  #failed(error: unknown, host: Host, entry: Entry): undefined {
    if (this.signal.aborted || host.isGivenUp) return
    const { code, cause } = error as { code?: unknown; cause?: unknown }
    if (code === 'ERR_CONFIG' || code === 'ERR_MANAGER') throw error
    entry.error = messageOf(error)
    if (typeof code === 'string') entry.code = code
    // A robots.txt that could not be had is a host that does not answer.
    if (code === 'ERR_DISALLOWED' && cause === undefined) this.totals.disallowed++
    else if (++this.totals.failed <= PROBLEMS_SHOWN) this.say(`${entry.url}: ${entry.error}`)
    host.failed++
  }

  /** A host that has answered only badly for long keeps nobody waiting; its URLs stay for another time. */
  giveUp(name: string, forMs: number): void {
    const host = this.frontier.hosts.get(name)
    if (host === undefined || host.isGivenUp) return
    this.totals.stalled += host.pending
    this.frontier.giveUp(host)
    this.say(`${name}: only bad answers for ${Math.round(forMs / 1000)} s, left alone`)
    this.#wake()
  }
}

/** Sets up what a run needs, runs it, and shows it meanwhile. */
export async function perform(settings: Settings, task: Task, prepare?: (run: Run) => void): Promise<Run> {
  const { state, throttle: options } = settings
  const snapshot = state === undefined ? undefined : Journal.pace(state)
  const throttle = createThrottle({
    redirects: 'throttle',
    ...options,
    ...(settings.isObeying ? { robots: { userAgent: settings.userAgent, rules } } : {}),
    ...(snapshot ? { snapshot } : {}),
    fetch: sender(options.fetch ?? fetch),
  } as ThrottleOptions)
  const done = new Set<string>()
  const store = await Store.open(settings, (key) => done.add(key))
  const found: Job[] = []
  const journal =
    state === undefined
      ? undefined
      : new Journal(
          state,
          task.command,
          (key) => done.add(key),
          (job) => {
            if (!done.has(keyOf(job))) found.push(job)
          },
        )
  const run = new Run(settings, task, throttle, store, journal)
  for (const key of done) run.frontier.markDone(key)
  for (const job of found) run.frontier.add(job)
  prepare?.(run)
  throttle.addEventListener('settle', ({ status }) => {
    if (status !== undefined) run.totals.statuses.set(status, (run.totals.statuses.get(status) ?? 0) + 1)
    const isRefused = status === 429 || status === 503
    if (isRefused) run.totals.refused++
    run.series.note(isRefused)
  })
  throttle.addEventListener('stall', (event) => {
    run.giveUp(event.scope, event.forMs)
    event.fail()
  })
  const view: View = startView(run)
  const onSignal = (signal: NodeJS.Signals) => run.stop(signal)
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  try {
    await run.go()
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
    view.end()
  }
  return run
}

/** Notes each attempt on its way out. */
function sender(send: typeof fetch): typeof fetch {
  return async (input, init) => {
    const sent = (init as { [SENT]?: Sent } | undefined)?.[SENT]
    if (sent === undefined) return send(input, init)
    sent.lastAt = Date.now()
    sent.firstAt ||= sent.lastAt
    sent.attempts++
    sent.onSend()
    const start = performance.now()
    try {
      return await send(input, init)
    } finally {
      sent.latencyMs = performance.now() - start
    }
  }
}

function timesOf({ firstAt, latencyMs, attempts }: Sent): Partial<Entry> {
  if (attempts === 0) return {}
  const totalMs = Date.now() - firstAt
  return { sentAt: new Date(firstAt).toISOString(), latencyMs: Math.round(latencyMs), totalMs, attempts }
}

/** A body, up to so many bytes. */
async function read(response: Response, most: number): Promise<{ body: Buffer; isCut: boolean }> {
  const parts: Uint8Array[] = []
  let length = 0
  const reader = response.body?.getReader()
  while (reader) {
    const { done, value } = await reader.read()
    if (done) break
    parts.push(value)
    length += value.length
    if (length > most) {
      await reader.cancel()
      return { body: Buffer.concat(parts).subarray(0, most), isCut: true }
    }
  }
  return { body: Buffer.concat(parts), isCut: false }
}

/** The error's words and those of its causes: `fetch failed` alone does not say that the host is down. */
export function messageOf(error: unknown): string {
  const words: string[] = []
  for (let at = error; at instanceof Error && words.length < 5; at = at.cause) {
    const { message, code } = at as NodeJS.ErrnoException
    words.push(message || code || at.name)
  }
  const [first = String(error), ...causes] = words
  return causes.length > 0 ? `${first} (${causes.join(': ')})` : first
}
