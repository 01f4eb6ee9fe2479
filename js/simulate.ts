/**
 * `autothrottle/simulate`: what would these settings do to that server? Simulated servers, in virtual time, with the very engine.
 *
 * ```ts
 * const { summary } = simulate({
 *   server: { model: 'nginx', rate: 10, burst: 5 },
 *   network: { latency: 200, jitter: 10 },
 *   throttle: { defaults: { rampup: true } },
 *   duration: 600_000,
 * })
 * console.log(summary.utilisation, summary.refusalsPerMinute)
 * ```
 *
 * A function of its options: the same ones give the same figures, on every machine. It has a module of its own, so that throttles
 * do not carry it.
 */
import { ConfigError, withProblems } from './core/errors.js'
import type { EngineOptions } from './options/options.js'
import { loadSimulator } from './wasm/load/simulator.js'

/** What to simulate. */
export interface SimulationOptions {
  /** The server: its `model` and what that takes. */
  server: SimulatedServer
  /** The way there and back. */
  network?: SimulatedNetwork
  /** What each client has to send. */
  load?: SimulatedLoad
  /** Options of the throttle. The one scope is called `server`. */
  throttle?: EngineOptions
  /** Clients, each with a throttle of its own. A whole number from 1 to 1000, default 1. */
  clients?: number
  /** Milliseconds of simulated time. Default 60000. */
  duration?: number
  /** Makes the network's jitter repeat exactly, and that of throttles without a seed. Default 1. */
  seed?: number
}

/** A server and its limit. What a model does not know is an error. */
export interface SimulatedServer {
  /** What kind of limit it has. */
  model: 'fixed-window' | 'sliding-window' | 'token-bucket' | 'nginx' | 'gcra' | 'concurrency' | 'queue'
  /** `token-bucket`, `nginx`, `gcra`: requests per second. */
  rate?: number
  /** `token-bucket`: the most tokens. Default 1. */
  depth?: number
  /** `nginx`, `gcra`: requests at once beyond the first. Default 0. */
  burst?: number
  /** `nginx`: whether what is above the rate is delayed; else it is `nodelay`. Default false. */
  delay?: boolean
  /** `fixed-window`, `sliding-window`: requests per window. */
  limit?: number
  /** `fixed-window`, `sliding-window`: milliseconds. Default 60000. */
  window?: number
  /** `concurrency`: requests at a time; one more is a 503. */
  slots?: number
  /** `queue`: requests at a time; more wait. */
  workers?: number
  /** `concurrency`, `queue`: milliseconds a request takes. */
  service?: number
  /** `concurrency`, `queue`: how far that strays, as a share to both sides. Default none. */
  spread?: number
  /** `queue`: places in it; beyond them 503. Default 1000000. */
  room?: number
  /** `queue`: milliseconds after which the gateway before it answers 504. Default 30000. */
  patience?: number
  /** Milliseconds for which a client that was refused is refused, anew with every request. Default none. */
  ban?: number
  /** The share of requests that fail at once whatever their pace, above 0 and below 1. Default none. */
  failing?: number
  /** With what status they do. Default 503. */
  failingStatus?: number
  /** The limit becomes another. Default none. */
  step?: SimulatedStep
  /** The limit moves up and down. Default none. */
  drift?: SimulatedDrift
  /** For a while everything is a 503. Default none. */
  outage?: SimulatedOutage
  /** Traffic of others on the same limit. Default none. */
  others?: SimulatedOthers
  /** So many behind a balancer, each with this limit; a request goes to one of them by chance. Default 1. */
  replicas?: number
  /** Milliseconds that a served request takes behind the limit; a refused one does not. Default 0. */
  upstream?: number
  /** How far that strays, as a share to both sides. Default none. */
  upstreamSpread?: number
  /** At most so many milliseconds before the server looks at a request, drawn for each. Default 0. */
  jitter?: number
  /** Milliseconds that `Retry-After` says on every refusal, whatever the truth. */
  retryAfter?: number
  /** Header fields: none, `Retry-After` on refusals, or `RateLimit-*` on every answer as well. Default nothing. */
  says?: 'nothing' | 'retry-after' | 'rate-limit'
}

/** A limit that becomes another. */
export interface SimulatedStep {
  /** When, in milliseconds. */
  at: number
  /** What the limit is multiplied by. */
  factor: number
}

/** A limit that moves up and down. */
export interface SimulatedDrift {
  /** There and back, in milliseconds. */
  period: number
  /** What the limit is multiplied by at the far end. */
  factor: number
}

/** A time in which everything is a 503. */
export interface SimulatedOutage {
  /** When it begins, in milliseconds. */
  at: number
  /** How long it lasts, in milliseconds. */
  length: number
}

/** Traffic of others, who take what they get. */
export interface SimulatedOthers {
  /** Their requests per second while they are there, at times by chance (Poisson). */
  rate: number
  /** They come once in so many milliseconds. Default 60000. */
  period?: number
  /** The share of the period for which they stay, at its end. Default 0.5. */
  share?: number
}

/** The way between clients and server. */
export interface SimulatedNetwork {
  /** Milliseconds there and back, without the server's own time. Default 100. */
  latency?: number
  /** At most so many more, each way, drawn for each request: they may overtake each other. Default 0. */
  jitter?: number
  /** The share of requests that are late by `slowBy` more: a packet was lost. Default none. */
  slow?: number
  /** How late those are, in milliseconds. Default 200. */
  slowBy?: number
  /** Milliseconds by which a client's timers fire late. Default 0. */
  timerLag?: number
  /** At most so many more, drawn for each timer. Default 0. */
  timerJitter?: number
  /** Milliseconds after which a client gives up. Default 60000. */
  timeout?: number
}

/** What a client has to send. */
export interface SimulatedLoad {
  /** New requests per second, evenly. Default none: something always waits. */
  rate?: number
  /** So many in all. Default none: there is no end. */
  requests?: number
}

/** The figures. *Settled* is the second half of the time. */
export interface SimulationSummary {
  /** Requests that reached the server. */
  readonly sent: number
  /** Served. */
  readonly served: number
  /** 429 and 503. */
  readonly refused: number
  /** Any other bad end. */
  readonly failed: number
  /** Served ÷ what the limit allows, settled. */
  readonly utilisation: number
  /** Refused ÷ sent, in the whole. */
  readonly shareRefused: number
  /** Bad ends per minute, settled. */
  readonly refusalsPerMinute: number
  /** Requests that failed by chance (`failing`, `outage`): at another pace they would have failed as well. */
  readonly background: number
  /** The same per minute, settled: part of `refusalsPerMinute`. */
  readonly backgroundPerMinute: number
  /** Milliseconds until 90 % of the limit were kept up for five seconds or ten requests; `null` for never. */
  readonly reachedMs: number | null
  /** The same after the limit stepped; `null` where it does not, and for never. */
  readonly regainedMs: number | null
  /** The depth of a token bucket at the limit's own rate through which one client's sends would fit. */
  readonly burst: number
  /** Jain's index between clients, settled: 1 is even. */
  readonly fairness: number
  /** The mean of what was served, in milliseconds. */
  readonly latencyMs: number
}

/** Every request, in the order in which they were sent, as columns. */
export interface SimulationTrace {
  /** Whose it was. */
  readonly client: Uint32Array
  /** When it left, in milliseconds. */
  readonly sent: Float64Array
  /** When the client knew; NaN if that was after the end. */
  readonly answered: Float64Array
  /** 0: the client gave up. */
  readonly status: Uint16Array
}

/** What came of it. */
export interface Simulation {
  readonly summary: SimulationSummary
  readonly trace: SimulationTrace
}

/**
 * Simulates, at once and synchronously: a million requests take about two seconds.
 *
 * @throws {ConfigError} listing every problem of the options; also where more than four million requests would be sent.
 */
export function simulate(options: SimulationOptions): Simulation {
  const run = loadSimulator()
  const simulated = withProblems(ConfigError, () => run(options))
  const trace = {
    client: simulated.client(),
    sent: simulated.sent(),
    answered: simulated.answered(),
    status: simulated.status(),
  }
  const summary = simulated.summary() as SimulationSummary
  simulated.free()
  return { summary, trace }
}
