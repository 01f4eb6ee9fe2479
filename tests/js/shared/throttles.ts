/**
 * Whole throttles of several processes that share a limit, in virtual time.
 */
import { createThrottle, type Throttle, type ThrottleOptions } from 'autothrottle'
import type { Offline } from '../../../js/shared/transport.js'
import { Process, World } from './world.js'

/** Throttles of several processes with the same options. */
export function throttles(
  count: number,
  options: ThrottleOptions,
  { offline = 'wait' as Offline } = {},
): { world: World; processes: Process[]; all: Throttle[] } {
  const world = new World(1)
  world.way = [2, 3]
  const processes = Array.from({ length: count }, (_, index) => new Process(world, index))
  const all = processes.map((process) =>
    createThrottle({ ...options, clock: process.clock, shared: process.shared(offline) }),
  )
  return { world, processes, all }
}

/** What became of a promise when the world has gone on for so long. */
export async function after<T>(world: World, ms: number, promise: Promise<T>): Promise<T | string> {
  let [state, value]: [string, unknown] = ['waits', undefined]
  promise.then(
    (given) => ([state, value] = ['given', given]),
    (error) => ([state, value] = ['failed', error]),
  )
  await world.run(ms)
  if (state === 'failed') throw value
  return state === 'given' ? (value as T) : state
}
