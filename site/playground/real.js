/**
 * Real requests: `throttle.fetch` in the page, and a service worker that plays the server. It gives the charts
 * what a simulation gives them, in real time.
 *
 * The stage waits for a worker that does not control the page yet. Its time stands still while paused, but
 * not for the throttle: events are dated by the clock of this stage.
 */
import { createThrottle } from 'autothrottle'
import { Recorder } from './recorder.js'
import { base, startWorker } from './worker-of-page.js'

const BIN = 250
/** Requests that wait for each host where the load names no rate. */
const BACKLOG = 20

export class RealStage {
  /** `program` with what is in force now: it begins there. */
  static async open(program) {
    await startWorker()
    return new RealStage(program)
  }

  constructor(program) {
    this.program = program
    this.servers = { server: program.options.server, ...program.options.servers }
    this.network = program.options.network ?? {}
    this.limits = {}
    this.now = 0
    this.elapsed = 0
    this.since = performance.now()
    this.sampled = 0
    this.isOpen = true
    const key = `${Date.now().toString(36)}${Math.random().toString(36).slice(2, 6)}`
    this.runs = program.policies.map(({ throttle }, index) => this.run(`${key}-${index}`, throttle))
    this.recorders = this.runs.map(({ recorder }) => recorder)
    this.sample()
    for (const run of this.runs) this.pump(run)
  }

  run(key, options) {
    const getScopes = ({ url }) => decodeURIComponent(new URL(url).pathname.split('/').at(-1))
    const throttle = createThrottle({ ...options, getScopes })
    const recorder = new Recorder(Object.keys(this.servers), BIN, this.program.span)
    const run = { key, throttle, recorder, queued: new Map(), reasons: {}, waiting: {}, count: 0 }
    throttle.addEventListener('queued', ({ id }) => run.queued.set(id, this.clock()))
    throttle.addEventListener('send', ({ id, scopes: [scope] }) => {
      const queuedAt = run.queued.get(id) ?? this.clock()
      const reason = run.reasons[scope]
      recorder.hear([
        { kind: 'send', request: id, client: 0, scope, queuedAt, at: this.clock(), reason, cost: 1 },
      ])
    })
    throttle.addEventListener('settle', ({ id, scopes: [scope], status = 0, latencyMs = 0 }) => {
      run.queued.delete(id)
      recorder.hear([
        { kind: 'answer', request: id, scope, at: this.clock(), status, latencyMs, headers: '' },
      ])
    })
    for (const kind of ['backoff', 'recover', 'hold']) {
      throttle.addEventListener(kind, ({ scope, delayMs, step, holdUntil, askedMs }) => {
        const until = holdUntil === undefined ? undefined : this.clock() + holdUntil - throttle.now()
        recorder.hear([{ kind, at: this.clock(), scope, delayMs, step, holdUntil: until, askedMs }])
      })
    }
    throttle.addEventListener('warning', ({ scope = 'server', message: why }) => {
      recorder.hear([{ kind: 'warning', at: this.clock(), scope, why }])
    })
    return run
  }

  /** Keeps something waiting, or submits as the load says. */
  pump(run) {
    const { load = {} } = this.program.options
    const names = Object.keys(this.servers)
    const due = load.rate === undefined ? Number.POSITIVE_INFINITY : (this.clock() / 1000) * load.rate + 1
    for (const scope of names) {
      // Requests that are counted all wait from the start, as in a simulation.
      const isCounted = load.rate !== undefined || load.requests !== undefined
      const isFree = () => isCounted || (run.waiting[scope] ?? 0) < BACKLOG
      while (this.isOpen && run.count < Math.min(due, load.requests ?? due) && isFree()) {
        const cost = load.costs?.[run.count % load.costs.length]
        run.count++
        this.send(run, load.rate === undefined ? scope : names[run.count % names.length], cost)
      }
    }
  }

  async send(run, scope, cost) {
    run.waiting[scope] = (run.waiting[scope] ?? 0) + 1
    const query = new URLSearchParams({
      latency: String(this.network.latency ?? 100),
      server: JSON.stringify(this.servers[scope]),
    })
    const url = new URL(`${base()}simulated/${run.key}/${encodeURIComponent(scope)}?${query}`, location.href)
    try {
      const response = await run.throttle.fetch(url, cost === undefined ? {} : { throttle: { cost } })
      this.limits[scope] = Number(response.headers.get('x-limit'))
      await response.body?.cancel()
    } catch {
      // The stage was left, or the request failed: the recorder has heard it.
    }
    run.waiting[scope]--
    if (this.isOpen) this.pump(run)
  }

  /** Milliseconds since the start, without pauses. */
  clock() {
    return this.since === undefined ? this.elapsed : this.elapsed + performance.now() - this.since
  }

  /** Time passes by itself: this looks at it. */
  advance() {
    this.now = Math.floor(this.clock())
    for (const run of this.runs) this.pump(run)
    while (this.sampled + BIN <= this.now) {
      this.sampled += BIN
      this.sample(this.sampled)
    }
  }

  pause() {
    if (this.since === undefined) return
    this.elapsed = this.clock()
    this.since = undefined
    for (const { throttle } of this.runs) throttle.pause()
  }

  resume() {
    if (this.since !== undefined) return
    this.since = performance.now()
    for (const { throttle } of this.runs) throttle.resume()
  }

  close() {
    this.isOpen = false
    for (const { throttle } of this.runs) throttle.close()
  }

  change({ server, network, throttle, policy, scope = 'server' }) {
    if (server) this.servers[scope] = { ...this.servers[scope], ...server }
    if (network) this.network = { ...this.network, ...network }
    if (throttle) this.runs[policy].throttle.scope(scope).configure(throttle)
  }

  states() {
    return this.runs.map((run) => {
      const { scopes, waiting, inFlight } = run.throttle.stats()
      for (const [name, scope] of Object.entries(scopes)) scope.limit = this.limits[name]
      const held = Object.entries(scopes).find(([, { reason }]) => reason)
      for (const [name, { reason }] of Object.entries(scopes)) if (reason) run.reasons[name] = reason
      const next = held && { scope: held[0], reason: held[1].reason, at: this.next(run, held[0]) }
      return { now: this.now, waiting, inFlight, scopes, next }
    })
  }

  /** When the next request of a scope leaves, by the clock of this stage. */
  next({ throttle }, scope) {
    const { at } = throttle.peek({ scopes: scope })
    return Number.isFinite(at) ? this.now + Math.max(0, at - throttle.now()) : undefined
  }

  sample(at = 0) {
    this.states().forEach((state, index) => {
      this.recorders[index].sample(at, state)
    })
  }
}
