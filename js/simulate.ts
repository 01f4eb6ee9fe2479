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
 * A function of its options: the same ones give the same figures, on every machine. `createSimulation` is the
 * same in steps: look at it, and change it, while it goes on. It has a module of its own, so that throttles
 * do not carry it.
 */
import { ConfigError, withProblems } from './base/errors.js'
import type { SimulationOptions } from './options/generated.js'
import { columns, type SimulationSummary, type SimulationTrace } from './simulate/live.js'
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
export {
  createSimulation,
  LiveSimulation,
  replaySimulation,
  type SimulatedScope,
  type SimulationChange,
  type SimulationEvent,
  type SimulationRecording,
  type SimulationState,
  type SimulationSummary,
  type SimulationTrace,
} from './simulate/live.js'
export { type PlayedAnswer, PlayedServer, playServer } from './simulate/server.js'

/** The result of a simulation. */
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
  const { simulate: run } = loadSimulator()
  const simulated = withProblems(ConfigError, () => run(options))
  const trace = columns(simulated)
  const summary = simulated.summary() as SimulationSummary
  simulated.free()
  return { summary, trace }
}
