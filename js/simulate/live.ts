/**
 * A simulation in steps: advance it, look at it, change it while it goes on.
 *
 * The changes and their times are part of the simulation. It therefore keeps a recording, and a replay of
 * that gives the same figures to the last bit.
 */
import { ConfigError, withProblems } from '../base/errors.js'
import type {
  ScopeOptions,
  SimulatedNetwork,
  SimulatedServer,
  SimulationOptions,
} from '../options/generated.js'
import type { Notice, Reason, ScopeStats } from '../wasm/engine.js'
import { loadSimulator } from '../wasm/load/simulator.js'

/** An event of a request, or of an engine. Times are milliseconds since the start. */
export type SimulationEvent =
  | (RequestHappening & {
      readonly kind: 'send'
      /** Since when it waited. */
      readonly queuedAt: number
      /** The reason why the head of the line waited; absent if it did not wait. */
      readonly reason?: Reason
      /** The cost in a quota. */
      readonly cost: number
    })
  | (RequestHappening & { readonly kind: 'arrive' })
  | (RequestHappening & {
      readonly kind: 'answer'
      /** 0: the client gave up. */
      readonly status: number
      /** From send to answer. */
      readonly latencyMs: number
      /** Header fields as `name: value` lines. */
      readonly headers: string
    })
  | (Exclude<Notice, { kind: 'answer' }> & {
      /** When. */
      readonly at: number
      /** The client whose engine reports the event. */
      readonly client: number
    })

interface RequestHappening {
  /** When. */
  readonly at: number
  /** The request's place in the trace. */
  readonly request: number
  /** The client that sent the request. */
  readonly client: number
  /** The server that it goes to. */
  readonly scope: string
}

/** One scope of one client, and the server behind it. */
export interface SimulatedScope extends ScopeStats {
  /** Requests per second that the server bears now. */
  limit: number
}

/** One client at one instant, and what the servers are like. */
export interface SimulationState {
  /** When, in milliseconds since the start. */
  readonly now: number
  /** Requests that wait. */
  readonly waiting: number
  /** Requests in flight. */
  readonly inFlight: number
  /** Requests sent since the start. */
  readonly sent: number
  /** Requests that ended since the start. */
  readonly settled: number
  /** Each server's scope, by name. */
  readonly scopes: Readonly<Record<string, SimulatedScope>>
  /** Why the next request waits; absent if none does. */
  readonly next?: {
    /** Until when; absent where that depends on an answer. */
    readonly at?: number
    /** Why. */
    readonly reason: Reason
    /** The scope of the limit; absent for that of the whole throttle. */
    readonly scope?: string
  }
}

/** Something that was changed on the way. */
export type SimulationChange =
  | { readonly at: number; readonly scope: string; readonly throttle: ScopeOptions }
  | { readonly at: number; readonly scope: string; readonly server: Partial<SimulatedServer> }
  | { readonly at: number; readonly network: SimulatedNetwork }

/** All that a simulation is a function of: plain data, fit for JSON. */
export interface SimulationRecording {
  /** The options at the start. */
  readonly options: SimulationOptions
  /** The changes, in order. */
  readonly changes: readonly SimulationChange[]
  /** How far it went, in milliseconds. */
  readonly now: number
}

type Wasm = InstanceType<ReturnType<typeof loadSimulator>['LiveSimulation']>

/** A simulation under way: see `createSimulation`. */
export class LiveSimulation {
  readonly #wasm: Wasm
  readonly #options: SimulationOptions
  readonly #changes: SimulationChange[] = []

  constructor(options: SimulationOptions) {
    const { LiveSimulation } = loadSimulator()
    this.#wasm = withProblems(ConfigError, () => new LiveSimulation(options))
    this.#options = copy(options)
  }

  /** How far it went, in milliseconds. */
  get now(): number {
    return this.#wasm.now()
  }

  /** Whether its `duration` is over; without one it never is. */
  get isDone(): boolean {
    return this.#wasm.is_done()
  }

  /**
   * Lets `ms` milliseconds pass, up to `duration` at most. Events at the very end of them belong to the next
   * step.
   *
   * @throws {ConfigError} where it is no time, or more than four million requests were sent.
   */
  advance(ms: number): void {
    withProblems(ConfigError, () => this.#wasm.advance(ms))
  }

  /** The events of the last step, in order. Each is given once. */
  events(): SimulationEvent[] {
    return this.#wasm.take_events() as SimulationEvent[]
  }

  /** The state of the servers and of a client, the first one by default. */
  state(client = 0): SimulationState {
    const state = this.#wasm.state(client) as SimulationState | null
    if (state === null) throw new RangeError(`there is no client ${client}`)
    return state
  }

  /** The figures up to now. */
  summary(): SimulationSummary {
    return this.#wasm.summary() as SimulationSummary
  }

  /** Every request so far, in the order in which they were sent. */
  trace(): SimulationTrace {
    return columns(this.#wasm)
  }

  /**
   * Changes settings of a scope now, in every client's throttle, as `throttle.scope(name).configure` does.
   *
   * @throws {ConfigError} listing every problem; then no setting has changed.
   */
  configure(settings: ScopeOptions, scope = 'server'): void {
    withProblems(ConfigError, () => this.#wasm.configure(scope, settings))
    this.#changes.push({ at: this.now, scope, throttle: copy(settings) })
  }

  /**
   * Puts another server in place of one, untouched: its buckets are full and its windows empty. Fields that
   * are left out stay as they were; with another `model` you give all of it.
   *
   * @throws {ConfigError} listing every problem; then no setting has changed.
   */
  configureServer(server: Partial<SimulatedServer>, scope = 'server'): void {
    withProblems(ConfigError, () => this.#wasm.configure_server(scope, server))
    this.#changes.push({ at: this.now, scope, server: copy(server) })
  }

  /**
   * Changes the way there and back, for requests that leave from now on. Fields that are left out stay.
   *
   * @throws {ConfigError} listing every problem; then no setting has changed.
   */
  configureNetwork(network: SimulatedNetwork): void {
    withProblems(ConfigError, () => this.#wasm.configure_network(network))
    this.#changes.push({ at: this.now, network: copy(network) })
  }

  /** All that it is a function of, for `replaySimulation`, here or elsewhere. */
  recording(): SimulationRecording {
    return { options: copy(this.#options), changes: copy(this.#changes), now: this.now }
  }
}

/**
 * A simulation that goes on while it is asked to, and can be changed on the way. Advanced to the end, in
 * whatever steps, it is what `simulate` gives. Without a `duration` it has no end.
 *
 * ```ts
 * const simulation = createSimulation({ server: { model: 'nginx', rate: 10 }, throttle: { rampup: true } })
 * simulation.advance(60_000)
 * simulation.configureServer({ rate: 3 })
 * simulation.advance(60_000)
 * console.log(simulation.state().next, simulation.summary().refused)
 * ```
 *
 * @throws {ConfigError} listing every problem of the options.
 */
export function createSimulation(options: SimulationOptions): LiveSimulation {
  return new LiveSimulation(options)
}

/**
 * A simulation as it stood when it was recorded: same figures, same trace.
 *
 * @throws {ConfigError} where the recording holds what makes no sense.
 */
export function replaySimulation({ options, changes, now }: SimulationRecording): LiveSimulation {
  const simulation = createSimulation(options)
  for (const change of changes) {
    simulation.advance(change.at - simulation.now)
    if ('throttle' in change) simulation.configure(change.throttle, change.scope)
    else if ('server' in change) simulation.configureServer(change.server, change.scope)
    else simulation.configureNetwork(change.network)
  }
  simulation.advance(now - simulation.now)
  return simulation
}

/** A copy of the options as they were then: options are plain data. */
const copy = <T>(of: T): T => JSON.parse(JSON.stringify(of))

// The output of a simulation: figures, and every request as a number in each column.

/** The figures. *Settled* is the second half of the time. */
export interface SimulationSummary {
  /** Requests that reached the server. */
  readonly sent: number
  /** Served. */
  readonly served: number
  /** Refused by the limit, whatever it said. */
  readonly refused: number
  /** Any other bad end: by chance, by a gateway, or the client gave up. */
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
  /** The client of each request. */
  readonly client: Uint32Array
  /** Where it went: 0 is `server`, then come those of `servers`, in their order. */
  readonly server: Uint32Array
  /** When it left, in milliseconds. */
  readonly sent: Float64Array
  /** When the client knew; NaN if that was after the end. */
  readonly answered: Float64Array
  /** 0: the client gave up, or the server closed the connection. */
  readonly status: Uint16Array
}

/** The columns of a trace, taken out of the module. */
export function columns(of: { [key in keyof SimulationTrace]: () => SimulationTrace[key] }): SimulationTrace {
  return {
    client: of.client(),
    server: of.server(),
    sent: of.sent(),
    answered: of.answered(),
    status: of.status(),
  }
}
