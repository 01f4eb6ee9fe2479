/**
 * `autothrottle/simulate`: what would these settings do to that server? Simulated servers, in virtual time,
 * with the very engine.
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
 * A function of its options: the same ones give the same figures, on every machine. It has a module of its
 * own, so that throttles do not carry it.
 */
import { ConfigError, withProblems } from './core/errors.js'
import type { SimulationOptions } from './options/generated.js'
import { loadSimulator } from './wasm/load/simulator.js'

export type {
  SimulatedDrift,
  SimulatedLoad,
  SimulatedNetwork,
  SimulatedOthers,
  SimulatedOutage,
  SimulatedServer,
  SimulatedStep,
  SimulationOptions,
} from './options/generated.js'

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
 * @throws {ConfigError} listing every problem of the options; also where more than four million requests
 * would be sent.
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
