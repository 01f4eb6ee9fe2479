/**
 * One simulated server alone, for clients of your own: a test's, a demonstration's. It has no clock: the
 * caller who plays it says what time it is, and waits as long as the answer takes.
 */
import { ConfigError, withProblems } from '../base/errors.js'
import type { SimulatedServer } from '../options/generated.js'
import { loadSimulator } from '../wasm/load/simulator.js'

/** A simulated server's answer to a request. */
export interface PlayedAnswer {
  /** Its status: 200, 429, 503, 504. */
  readonly status: number
  /** How long the server takes to say so, in milliseconds. */
  readonly afterMs: number
  /** The header fields of the answer: `Retry-After`, `RateLimit`. */
  readonly headers: Readonly<Record<string, string>>
}

type Wasm = InstanceType<ReturnType<typeof loadSimulator>['Played']>

/** A server with a limit: see `playServer`. */
export class PlayedServer {
  readonly #wasm: Wasm

  constructor(server: SimulatedServer, seed: number) {
    const { Played } = loadSimulator()
    this.#wasm = withProblems(ConfigError, () => new Played(server, seed))
  }

  /** A request arrives at `now`, in milliseconds since the start. A clock that goes back stands still. */
  answer(now: number): PlayedAnswer {
    const { headers, ...answer } = this.#wasm.answer(now) as {
      status: number
      afterMs: number
      headers: string
    }
    const fields = headers.split('\n').filter((line) => line !== '')
    const pair = (line: string) => [
      line.slice(0, line.indexOf(':')),
      line.slice(line.indexOf(':') + 1).trim(),
    ]
    return { ...answer, headers: Object.fromEntries(fields.map(pair)) }
  }

  /** Requests per second that it bears at `now`. */
  limit(now: number): number {
    return this.#wasm.limit(now)
  }
}

/**
 * A server of a simulation, alone.
 *
 * ```ts
 * const limiter = playServer({ model: 'sliding-window', limit: 10, window: 1000, says: 'retry-after' })
 * createServer((request, response) => {
 *   const { status, headers } = limiter.answer(performance.now())
 *   response.writeHead(status, headers).end()
 * })
 * ```
 *
 * @throws {ConfigError} listing every problem of the description.
 */
export function playServer(server: SimulatedServer, seed = 1): PlayedServer {
  return new PlayedServer(server, seed)
}
