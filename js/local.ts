/**
 * `autothrottle/local`: one limit for several processes of one machine. Workers of Node's cluster, of pm2,
 * and programs that do not know each other share it, in Node, Deno and Bun.
 *
 * ```ts
 * import { createThrottle } from 'autothrottle'
 * import { local } from 'autothrottle/local'
 *
 * const throttle = createThrottle({ defaults: { rampup: true }, shared: local({ name: 'crawl' }) })
 * ```
 *
 * The first of them decides for all, by a socket that only the same user may open; when it ends, another one
 * goes on with what was learned. `docs/shared.md` says what happens when.
 */
import type { Shared } from './core/host.js'
import { SharedHost } from './shared/host.js'
import { SocketTransport } from './shared/socket.js'
import { checkShared, type SharedOptions } from './shared/transport.js'

export { type Offline, SharedError, type SharedOptions } from './shared/transport.js'
export type { Shared }

/** The options of `local`. */
export interface LocalOptions extends SharedOptions {
  /**
   * The folder of the socket, made if it is not there, for this user alone. Default: `autothrottle-` and the
   * user's number in `XDG_RUNTIME_DIR` or the system's folder for temporary files. Not used on Windows.
   */
  readonly folder?: string
}

/**
 * Shares a throttle's limits with all processes of this user that say the same `name`.
 *
 * @throws {ConfigError} for options that make no sense.
 */
export function local(options: LocalOptions): Shared {
  checkShared(options, ['folder'], (wrong) => {
    const folder = options?.folder
    if (folder !== undefined && typeof folder !== 'string') wrong('.folder', 'a path', folder)
  })
  return { open: (context) => new SharedHost(new SocketTransport(options), context, options) }
}
