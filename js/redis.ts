/**
 * One limit for many processes of many machines, through Redis or Valkey:
 *
 * ```ts
 * import { createThrottle } from 'autothrottle'
 * import { redis } from 'autothrottle/redis'
 * import Redis from 'ioredis' // or iovalkey, or `createClient` of node-redis
 *
 * const throttle = createThrottle({ rampup: true, shared: redis(new Redis(), { name: 'crawl' }) })
 * ```
 *
 * One process decides, the others ask it; the store elects it, fences it and carries the messages. It
 * does not ask the store before the first request. `docs/shared.md` says what happens when something breaks.
 */
import type { Shared } from './core/host.js'
import { SharedHost } from './shared/host.js'
import { type RedisClient, storeOf } from './shared/redis/store.js'
import { RedisTransport } from './shared/redis/transport.js'
import { checkShared, type SharedOptions } from './shared/transport.js'

export type { Shared } from './core/host.js'
export type { RedisClient } from './shared/redis/store.js'
export { type Offline, SharedError, type SharedOptions } from './shared/transport.js'

/**
 * The group by Redis, for `createThrottle({ shared })`.
 *
 * @param client of ioredis, iovalkey or node-redis (connected), a single one or a cluster. It stays yours:
 *   another connection, which hears the messages, is made from it by `duplicate()`. Redis 6 or newer, or
 *   Valkey.
 * @throws {ConfigError} for another client, a name that is none, or an unknown `offline`.
 */
export function redis(client: RedisClient, options: SharedOptions): Shared {
  const store = storeOf(client)
  checkShared(options, [], (wrong) => {
    if (!store) wrong('.client', 'a client of ioredis, iovalkey or node-redis', client)
  })
  const { name } = options
  return { open: (context) => new SharedHost(new RedisTransport(store!, name), context, options) }
}
