/**
 * The record of one policy, as the charts want it: columns of samples, and the requests of the last while.
 *
 * Both worlds feed it: a simulation in virtual time, and real requests through a service worker.
 */

/** Requests that are kept for drawing; beyond them the oldest go. */
const MOST_REQUESTS = 6000
/** The news and refusals that are kept for notes. */
const MOST_TOLD = 2000
/** Statuses that refuse; any other bad end is a failure. */
const REFUSED = new Set([401, 403, 429, 430, 503, 529])

/** Milliseconds over which a rate counts, in a chart of `span`: a hundredth of it, two seconds at least. */
export function rateSpan(span) {
  const wanted = Math.max(span / 100, Math.min(2000, span / 4))
  const ten = 10 ** Math.floor(Math.log10(wanted))
  return ([5, 2, 1].find((each) => each * ten <= wanted) ?? 1) * ten
}

const columns = () => ({
  rate: [],
  delay: [],
  inFlight: [],
  latency: [],
  waiting: [],
  limit: [],
  quota: [],
  refused: [],
})

export class Recorder {
  constructor(scopes, bin, span) {
    this.bin = bin
    this.keep = Math.ceil(span / bin) + 2
    /** A rate counts over this many samples: few requests would make it flicker. */
    this.width = Math.max(1, Math.round(rateSpan(span) / bin))
    this.times = []
    this.scopes = scopes
    this.lines = new Map(scopes.map((scope) => [scope, columns()]))
    this.counts = new Map(scopes.map((scope) => [scope, []]))
    this.tally = new Map(scopes.map((scope) => [scope, fresh()]))
    this.flights = new Map(scopes.map((scope) => [scope, { count: 0, since: 0, refused: 0 }]))
    this.totals = new Map(scopes.map((scope) => [scope, nothing()]))
    this.requests = []
    this.open = new Map()
    this.told = []
    this.refusals = []
    this.heard = 0
  }

  /** Takes in what happened. */
  hear(events) {
    for (const event of events) {
      const tally = this.tally.get(event.scope)
      if (event.kind === 'send') {
        const { request: id, client, scope, queuedAt, at, reason, cost } = event
        const request = { id, client, scope, queuedAt, sentAt: at, reason, cost }
        this.requests.push(request)
        this.open.set(id, request)
        if (tally) {
          tally.sent++
          this.totals.get(scope).sent++
        }
        this.fly(event.scope, at, 1)
        this.heard++
      } else if (event.kind === 'answer') {
        const request = this.open.get(event.request)
        this.open.delete(event.request)
        this.heard++
        this.fly(event.scope, event.at, -1)
        this.count(event, request)
        if (!request) continue
        const { at: answeredAt, status, headers } = event
        Object.assign(request, { answeredAt, status, headers })
        if (tally) tally.latencies.push(event.latencyMs)
      } else if (event.kind !== 'arrive' && event.kind !== 'delay') this.told.push(event)
    }
    if (this.requests.length > MOST_REQUESTS) this.requests.splice(0, this.requests.length - MOST_REQUESTS)
    if (this.told.length > MOST_TOLD) this.told.splice(0, this.told.length - MOST_TOLD)
    if (this.refusals.length > MOST_TOLD) this.refusals.splice(0, this.refusals.length - MOST_TOLD)
  }

  /** Adds an answer to the figures. */
  count({ at, scope, status, latencyMs }, request) {
    const totals = this.totals.get(scope)
    if (status >= 200 && status < 400) {
      totals.served++
      totals.latencyMs += latencyMs
      totals.waitedMs += request ? at - request.queuedAt : latencyMs
      return
    }
    this.flights.get(scope).refused++
    this.refusals.push({ at, scope, status })
    if (REFUSED.has(status)) totals.refused++
    else totals.failed++
  }

  /** A sample of what is in force now, at the end of a bin. */
  sample(now, { scopes }) {
    this.times.push(now / 1000)
    for (const scope of this.scopes) {
      const line = this.lines.get(scope)
      const tally = this.tally.get(scope)
      const counts = this.counts.get(scope)
      const { limit, delayMs = 0, backoffMs = 0, waiting = 0, quotaLeft } = scopes[scope] ?? {}
      this.fly(scope, now, 0)
      counts.push(tally)
      if (counts.length > this.width) counts.shift()
      const over = (key, bins) => counts.reduce((sum, count) => sum + count[key], 0) / (bins * this.bin)
      // As if no request had left before the beginning: one request in the first bin is no high rate.
      line.rate.push(over('sent', this.width) * 1000)
      line.inFlight.push(over('busy', counts.length))
      line.refused.push(this.flights.get(scope).refused)
      line.delay.push(Math.max(delayMs, backoffMs))
      line.waiting.push(waiting)
      line.limit.push(limit ?? null)
      const totals = this.totals.get(scope)
      totals.allowed += ((totals.limit ?? limit ?? 0) * (now - totals.at)) / 1000
      Object.assign(totals, { at: now, limit })
      line.quota.push(quotaLeft ?? null)
      line.latency.push(mean(tally.latencies))
      this.tally.set(scope, fresh())
    }
    if (this.times.length > this.keep * 2) this.forget(this.times.length - this.keep)
  }

  /**
   * One more in flight, or one less. The charts show how many there were on average: a count at the instant
   * of a sample would catch short requests now and then.
   */
  fly(scope, at, by) {
    const flight = this.flights.get(scope)
    if (!flight) return
    this.tally.get(scope).busy += (at - flight.since) * flight.count
    flight.since = at
    flight.count += by
  }

  /** The request to a scope that left nearest to an instant, within a distance. */
  near(at, within, scope) {
    let best
    for (const request of this.requests) {
      if (request.scope !== scope) continue
      const away = Math.abs(request.sentAt - at)
      if (away <= within && (!best || away < Math.abs(best.sentAt - at))) best = request
    }
    return best
  }

  forget(count) {
    this.times.splice(0, count)
    for (const line of this.lines.values()) for (const column of Object.values(line)) column.splice(0, count)
  }
}

/** The sums since the beginning. `allowed`: requests that the limit allowed in that time. */
const nothing = () => ({
  ...{ sent: 0, served: 0, refused: 0, failed: 0, latencyMs: 0, waitedMs: 0 },
  ...{ allowed: 0, limit: undefined, at: 0 },
})
const fresh = () => ({ sent: 0, busy: 0, latencies: [] })
const mean = (numbers) =>
  numbers.length === 0 ? null : numbers.reduce((sum, number) => sum + number, 0) / numbers.length
