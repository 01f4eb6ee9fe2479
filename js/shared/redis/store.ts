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
  /** A cluster takes nodes and options. */
  duplicate(nodes?: never[], options?: { shardedSubscribers: true }): IoRedis
  subscribe(channel: string): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  ssubscribe?(channel: string): Promise<unknown>
  sunsubscribe?(channel: string): Promise<unknown>
  /** In a cluster whose version hears each channel at its own node. */
  readonly shardedSubscribers?: unknown
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
    const client = this.#client
    const connection = this.isCluster
      ? client.duplicate([], { shardedSubscribers: true })
      : client.duplicate()
    const ears = new Map<string, (text: string) => void>()
    const hear = (channel?: string, text?: string) => ears.get(channel!)?.(text!)
    connection.on('error', () => {})
    for (const event of ['message', 'smessage']) connection.on(event, hear)
    // It keeps no process alive, after a reconnection neither.
    connection.on('ready', () => connection.stream?.unref?.())
    const subscriber = {
      isSharded: connection.shardedSubscribers !== undefined,
      async subscribe(channel: string, hear: (text: string) => void) {
        ears.set(channel, hear)
        await connection.subscribe(channel)
        if (subscriber.isSharded) subscriber.isSharded = await works(connection.ssubscribe!(channel))
      },
      async unsubscribe(channel: string) {
        ears.delete(channel)
        await connection.unsubscribe(channel)
        if (subscriber.isSharded) await connection.sunsubscribe!(channel)
      },
      close: () => connection.disconnect(),
    }
    return subscriber
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
