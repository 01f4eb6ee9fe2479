/**
 * Redis and Valkey as the transport sees them: scripts, publishing, and a connection that hears.
 *
 * Two families of clients speak alike but write differently: ioredis with iovalkey, and node-redis. They are
 * known by their methods: no client is imported. The trap is an `error` event that nobody hears, which ends a
 * Node program: the connection that is made here has a listener.
 */

type Method = (...args: never[]) => unknown

/** A client of ioredis, iovalkey or node-redis, a single one or a cluster. */
export interface RedisClient {
  eval: Method
  publish: Method
  duplicate: Method
}

/** A connection that hears channels, also after it was broken. */
export interface Subscriber {
  /** Whether what is published to one node of a cluster is heard, beside what goes to all. */
  readonly isSharded: boolean
  subscribe(channel: string, hear: (text: string) => void): Promise<void>
  unsubscribe(channel: string): Promise<void>
  close(): void
}

export interface Store {
  /** Runs a script. All keys are in one slot. */
  run(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown>
  /** How many heard it: in a cluster only those at one node. */
  publish(channel: string, text: string): Promise<number>
  readonly isCluster: boolean
  subscriber(): Promise<Subscriber>
}

interface IoRedis {
  eval(script: string, count: number, ...rest: string[]): Promise<unknown>
  publish(channel: string, text: string): Promise<number>
  duplicate(): IoRedis
  subscribe(channel: string): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  on(event: string, listener: (...args: string[]) => void): unknown
  disconnect(): void
  readonly isCluster?: boolean
  readonly stream?: { unref?(): void }
}

interface NodeRedis {
  eval(script: string, options: { keys: string[]; arguments: string[] }): Promise<unknown>
  publish(channel: string, text: string): Promise<number>
  duplicate(): NodeRedis
  connect(): Promise<unknown>
  subscribe(channel: string, hear: (text: string) => void): Promise<void>
  unsubscribe(channel: string): Promise<void>
  sSubscribe?(channel: string, hear: (text: string) => void): Promise<void>
  sUnsubscribe?(channel: string): Promise<void>
  on(event: string, listener: () => void): unknown
  unref?(): void
  destroy?(): void
  disconnect?(): unknown
  readonly masters?: unknown
}

/** The client behind one face; `undefined` for what is no client. */
export function storeOf(client: unknown): Store | undefined {
  if (typeof client !== 'object' || client === null) return undefined
  const has = (...names: string[]) =>
    names.every((name) => typeof (client as Record<string, unknown>)[name] === 'function')
  if (!has('eval', 'publish', 'duplicate')) return undefined
  if (has('evalSha')) return new NodeRedisStore(client as NodeRedis)
  if (has('evalsha')) return new IoRedisStore(client as IoRedis)
  return undefined
}

class IoRedisStore implements Store {
  readonly isCluster: boolean
  readonly #client: IoRedis

  constructor(client: IoRedis) {
    this.#client = client
    this.isCluster = client.isCluster === true
  }

  run(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#client.eval(script, keys.length, ...keys, ...args)
  }

  publish(channel: string, text: string): Promise<number> {
    return this.#client.publish(channel, text)
  }

  async subscriber(): Promise<Subscriber> {
    const connection = this.#client.duplicate()
    const ears = new Map<string, (text: string) => void>()
    connection.on('error', () => {})
    connection.on('message', (channel, text) => ears.get(channel!)?.(text!))
    // It keeps no process alive, after a reconnection neither.
    connection.on('ready', () => connection.stream?.unref?.())
    return {
      // ioredis 6 can, but then leaves timers behind that keep its process alive after `disconnect`.
      isSharded: false,
      async subscribe(channel, hear) {
        ears.set(channel, hear)
        await connection.subscribe(channel)
      },
      async unsubscribe(channel) {
        ears.delete(channel)
        await connection.unsubscribe(channel)
      },
      close: () => connection.disconnect(),
    }
  }
}

class NodeRedisStore implements Store {
  readonly isCluster: boolean
  readonly #client: NodeRedis

  constructor(client: NodeRedis) {
    this.#client = client
    this.isCluster = client.masters !== undefined
  }

  run(script: string, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#client.eval(script, { keys: [...keys], arguments: [...args] })
  }

  publish(channel: string, text: string): Promise<number> {
    return this.#client.publish(channel, text)
  }

  async subscriber(): Promise<Subscriber> {
    const connection = this.#client.duplicate()
    connection.on('error', () => {})
    connection.on('ready', () => connection.unref?.())
    await connection.connect()
    connection.unref?.()
    const subscriber = {
      isSharded: this.isCluster && connection.sSubscribe !== undefined,
      async subscribe(channel: string, hear: (text: string) => void) {
        await connection.subscribe(channel, hear)
        if (subscriber.isSharded) subscriber.isSharded = await works(connection.sSubscribe!(channel, hear))
      },
      async unsubscribe(channel: string) {
        await connection.unsubscribe(channel)
        if (subscriber.isSharded) await connection.sUnsubscribe?.(channel)
      },
      close: () => void (connection.destroy ? connection.destroy() : connection.disconnect?.()),
    }
    return subscriber
  }
}

/** A server before Redis 7 does not know the command. */
const works = (command: Promise<unknown>): Promise<boolean> =>
  command.then(
    () => true,
    () => false,
  )
