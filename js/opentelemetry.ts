/**
 * `autothrottle/opentelemetry`: how long requests wait, for what, and what came of them, as metrics and spans
 * of OpenTelemetry. Install `@opentelemetry/api` beside this package.
 *
 * ```ts
 * import { instrument } from 'autothrottle/opentelemetry'
 *
 * const throttle = createThrottle({ rate: 5 })
 * instrument(throttle)
 * ```
 *
 * A metric that is not exported costs one counter for a request that leaves at once. A span that begins in
 * the throttle's timer would lose the caller's context.
 */

import {
  type Attributes,
  type Context,
  context,
  type Meter,
  metrics,
  type Span,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import type { RequestObserver } from './core/events.js'
import type { Throttle } from './throttle/throttle.js'

/** Where metrics and spans go, and their attributes. */
export interface InstrumentOptions {
  /** Makes the instruments; by default that of the global provider. `false`: no metrics. */
  meter?: Meter | false | undefined
  /** Makes the spans; by default that of the global provider. `false`: no spans. */
  tracer?: Tracer | false | undefined
  /** Attributes of every measurement and span, such as the throttle's name where there are several. */
  attributes?: Attributes | undefined
}

/** A request that waits: since when, in whose context, and its attributes. */
interface Waiting {
  readonly at: number
  readonly caller: Context
  attributes: Attributes
  span: Span | undefined
}

const NAME = 'autothrottle'
/** Seconds: from one frame of a page to ten minutes. */
const BUCKETS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600]

/**
 * Tells OpenTelemetry what a throttle does:
 *
 * | instrument | unit | attributes |
 * |---|---|---|
 * | histogram `autothrottle.wait.duration`: how long requests waited | s | scope, reason |
 * | counter `autothrottle.requests`: those that ended | | scope, `http.response.status_code` or `error.type` |
 * | gauges `autothrottle.waiting`, `autothrottle.in_flight` | | scope |
 * | gauge `autothrottle.delay`: the gap in force, learned or set | s | scope |
 * | span `throttle.wait` under the span of the caller, of requests that waited | | scope, reason |
 *
 * A request of several scopes counts once, in the scope that kept it waiting, else in its first. The
 * gauges read `throttle.stats()` when the exporter collects.
 *
 * @returns Ends it.
 * @throws {TypeError} if the throttle is none.
 */
export function instrument(throttle: Throttle, options: InstrumentOptions = {}): () => void {
  if (!throttle?.scheduler) throw new TypeError(`instrument wants a throttle; got ${typeof throttle}`)
  const { attributes = {} } = options
  const meter = options.meter === false ? undefined : (options.meter ?? metrics.getMeter(NAME))
  const tracer = options.tracer === false ? undefined : (options.tracer ?? trace.getTracer(NAME))
  const waits = meter?.createHistogram('autothrottle.wait.duration', {
    description: 'How long requests waited before they left',
    unit: 's',
    advice: { explicitBucketBoundaries: BUCKETS },
  })
  const requests = meter?.createCounter('autothrottle.requests', { description: 'Requests that ended' })
  const waiting = new Map<number, Waiting>()
  const attributesOf = (scope: string, more?: Attributes) => ({
    ...attributes,
    'autothrottle.scope': scope,
    ...more,
  })

  /** A request that did not leave at once waits: for what, and since when for the caller's trace. */
  const begin = (id: number, scopes: readonly string[]) => {
    const request = waiting.get(id)
    if (request === undefined) return
    for (const scope of scopes) {
      const { reason } = throttle.scope(scope).stats
      if (reason === undefined) continue
      request.attributes = attributesOf(scope, { 'autothrottle.reason': reason })
      break
    }
    request.span = tracer?.startSpan('throttle.wait', { attributes: request.attributes }, request.caller)
  }

  /** The wait is over: the request left, or gave up. */
  const end = (id: number, at: number, error: unknown) => {
    const request = waiting.get(id)
    if (request === undefined) return
    waiting.delete(id)
    const { span, attributes } = request
    if (at > request.at) waits?.record((at - request.at) / 1000, attributes)
    if (error !== undefined) span?.setStatus({ code: SpanStatusCode.ERROR, message: String(error) })
    span?.end()
  }

  const record: RequestObserver = (phase, { id, scopes }, at, { status, error }) => {
    if (phase === 'settle') return requests?.add(1, attributesOf(scopes[0] ?? '', outcomeOf(status, error)))
    if (phase !== 'queued') return end(id, at, error)
    const attributes = attributesOf(scopes[0] ?? '', { 'autothrottle.reason': 'unknown' })
    waiting.set(id, { at, caller: context.active(), attributes, span: undefined })
    queueMicrotask(() => begin(id, scopes))
  }
  // No request fails by what an exporter throws: the program gets it as from an event's listener.
  const safe: RequestObserver = (...args) => {
    try {
      record(...args)
    } catch (error) {
      queueMicrotask(() => {
        throw error
      })
    }
  }
  const { observers } = throttle.scheduler
  observers.push(safe)
  const forget = meter === undefined ? () => {} : observe(throttle, meter, attributesOf)
  return () => {
    if (observers.includes(safe)) observers.splice(observers.indexOf(safe), 1)
    forget()
  }
}

/** By the names of OpenTelemetry's conventions for HTTP. */
function outcomeOf(status: number | undefined, error: unknown): Attributes {
  if (status !== undefined) return { 'http.response.status_code': status }
  if (error === undefined) return {}
  return { 'error.type': error instanceof Error ? error.name : typeof error }
}

/** The values that the exporter collects. */
function observe(throttle: Throttle, meter: Meter, attributesOf: (scope: string) => Attributes): () => void {
  const gauge = (name: string, description: string, unit = '') =>
    meter.createObservableGauge(`autothrottle.${name}`, { description, unit })
  const waiting = gauge('waiting', 'Requests that wait')
  const inFlight = gauge('in_flight', 'Requests in flight')
  const delay = gauge('delay', 'The gap in force between two requests', 's')
  const all = [waiting, inFlight, delay]
  const read: Parameters<Meter['addBatchObservableCallback']>[0] = (result) => {
    for (const [scope, stats] of Object.entries(throttle.stats().scopes)) {
      const attributes = attributesOf(scope)
      result.observe(waiting, stats.waiting, attributes)
      result.observe(inFlight, stats.inFlight, attributes)
      result.observe(delay, stats.delayMs / 1000, attributes)
    }
  }
  meter.addBatchObservableCallback(read, all)
  return () => meter.removeBatchObservableCallback(read, all)
}
