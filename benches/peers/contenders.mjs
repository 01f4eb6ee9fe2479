/**
 * Ours, and what people would pick instead, each as its own README says to use it.
 *
 * - `open()` lets everything pass: what a call costs.
 * - `spaced(ms)` starts at most one task in this many milliseconds for each key.
 * - `capped(count, ms)` starts at most `count` in a window, all with one key.
 *
 * Each gives a function of a key and a task. None of the others but Effect has keys, so users keep a map of
 * limiters: so do we. What a library cannot do is left out: p-limit, cockatiel and semaphores know no time.
 */
import { RateLimit, Sema } from 'async-sema'
import Bottleneck from 'bottleneck'
import { bulkhead } from 'cockatiel'
import * as Effect from 'effect/Effect'
import * as Semaphore from 'effect/Semaphore'
import { RateLimiter } from 'limiter'
import pLimit from 'p-limit'
import PQueue from 'p-queue'
import pThrottle from 'p-throttle'
import { RateLimiterMemory, RateLimiterQueue } from 'rate-limiter-flexible'
import { createThrottle } from '../../dist/index.js'

const MANY = 1_000_000
/** Slots of an open limiter. A semaphore of async-sema takes memory for each. */
const TEN = 10

/** One limiter for each key, made when it is first needed. */
function byKey(make) {
  const limiters = new Map()
  return (key, task) => {
    let limiter = limiters.get(key)
    if (!limiter) {
      limiter = make()
      limiters.set(key, limiter)
    }
    return limiter(task)
  }
}

const ours = (options) => {
  const free = { delay: 0, slotDelay: 0, jitter: false, concurrency: 1000 }
  const throttle = createThrottle({
    concurrency: 1000,
    maxScopes: 1_000_000,
    warnThreshold: 1e8,
    ...options,
    defaults: { ...free, ...options?.defaults },
  })
  return (key, task) => throttle.run({ scopes: key }, task)
}

export const contenders = {
  autothrottle: {
    open: () => ours(),
    spaced: (ms) => ours({ defaults: { delay: ms } }),
    capped: (count, ms) => ours({ defaults: { quota: { limit: count, window: ms, strict: true } } }),
  },
  'p-limit': { open: () => byKey(() => pLimit(TEN)) },
  'p-queue': {
    open: () =>
      byKey(() => {
        const queue = new PQueue({ concurrency: TEN })
        return (task) => queue.add(task)
      }),
    spaced: (ms) => contenders['p-queue'].capped(1, ms),
    capped: (count, ms) =>
      byKey(() => {
        const queue = new PQueue({ interval: ms, intervalCap: count })
        return (task) => queue.add(task)
      }),
  },
  'p-throttle': {
    open: () => contenders['p-throttle'].capped(MANY, 1),
    spaced: (ms) => contenders['p-throttle'].capped(1, ms),
    capped: (count, ms) => byKey(() => pThrottle({ limit: count, interval: ms })((task) => task())),
  },
  bottleneck: {
    open: () =>
      byKey(() => {
        const limiter = new Bottleneck({ maxConcurrent: TEN })
        return (task) => limiter.schedule(task)
      }),
    spaced: (ms) =>
      byKey(() => {
        const limiter = new Bottleneck({ minTime: ms })
        return (task) => limiter.schedule(task)
      }),
    capped: (count, ms) =>
      byKey(() => {
        const reservoir = {
          reservoir: count,
          reservoirRefreshAmount: count,
          reservoirRefreshInterval: ms,
        }
        const limiter = new Bottleneck(reservoir)
        return (task) => limiter.schedule(task)
      }),
  },
  limiter: {
    open: () => contenders.limiter.capped(MANY, 1000),
    spaced: (ms) => contenders.limiter.capped(1, ms),
    capped: (count, ms) =>
      byKey(() => {
        const limiter = new RateLimiter({ tokensPerInterval: count, interval: ms })
        return async (task) => {
          await limiter.removeTokens(1)
          return await task()
        }
      }),
  },
  'rate-limiter-flexible': {
    open: () => contenders['rate-limiter-flexible'].capped(MANY, 1000),
    // Its windows are whole seconds: spacing below that is not to be had.
    capped: (count, ms) => {
      const limiter = new RateLimiterMemory({ points: count, duration: ms / 1000 })
      const queue = new RateLimiterQueue(limiter)
      return async (key, task) => {
        await queue.removeTokens(1, key)
        return await task()
      }
    },
  },
  'async-sema': {
    open: () =>
      byKey(() => {
        const sema = new Sema(TEN)
        return async (task) => {
          await sema.acquire()
          try {
            return await task()
          } finally {
            sema.release()
          }
        }
      }),
    spaced: (ms) => contenders['async-sema'].capped(1, ms),
    capped: (count, ms) =>
      byKey(() => {
        const limit = RateLimit(count, { timeUnit: ms })
        return async (task) => {
          await limit()
          return await task()
        }
      }),
  },
  cockatiel: {
    open: () =>
      byKey(() => {
        const policy = bulkhead(TEN, MANY)
        return (task) => policy.execute(task)
      }),
  },
  Effect: {
    open: () =>
      byKey(() => {
        const semaphore = Effect.runSync(Semaphore.make(TEN))
        return (task) => Effect.runPromise(semaphore.withPermits(1)(Effect.promise(task)))
      }),
  },
}

/** Those that can do this. */
export const able = (way) => Object.keys(contenders).filter((name) => contenders[name][way])
