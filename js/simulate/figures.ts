/** What comes out of a simulation: figures, and every request as a number in each column. */

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
  /** Whose it was. */
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
