/**
 * Redis and Valkey as the transport sees them: scripts, publishing, and a connection that hears.
 *
 * Two families of clients speak alike but write differently: ioredis with iovalkey, and node-redis. They are
 * known by their methods: no client is imported. The trap is an `error` event without a listener, which ends
 * a Node program: the connection that is made here has a listener.
 */

type Method = (...args: never[]) => unknown

/** A client of ioredis, iovalkey or node-redis, a single one or a cluster. */
export interface RedisClient {
  eval: Method
  publish: Method
  duplicate: Method
}

/** Of a script: text, or bytes of a `Buffer`, which is what clients write as it is. */
export type Argument = string | Uint8Array

/** A connection that hears channels, also after it was broken. It can be closed before it is there. */
export interface Subscriber {
  /** Resolves when it is connected: where the port never answers, not at all. */
  readonly ready: Promise<unknown>
  /** Whether it listens to one node of a cluster, beside what goes to all. */
  readonly isSharded: boolean
  subscribe(channel: string, onMessage: (frame: Uint8Array) => void): Promise<void>
  unsubscribe(channel: string): Promise<void>
  close(): void
}

export interface Store {
  /** Runs a script. All keys are in one slot. */
  run(script: string, keys: readonly string[], args: readonly Argument[]): Promise<unknown>
  /** How many heard it: in a cluster only those at one node. */
  publish(channel: string, frame: Uint8Array): Promise<number>
  readonly isCluster: boolean
  /** Whether its connections are to use TLS. */
  readonly isSecure: boolean
  /** `broke` hears each error of its connection. */
  subscriber(broke: (error: Error) => void): Subscriber
  /** Another connection for commands, in place of the client's, which gives no answer. */
  reconnect(): void
  /** Closes a connection that was made here for commands. The client is its owner's. */
  close(): void
}

/** The methods of a client or of its connection, in the words of both families. */
interface Client {
  eval(script: string, ...keysAndArguments: unknown[]): Promise<unknown>
  publish(channel: string, frame: Uint8Array): Promise<number>
  /** A cluster of ioredis takes nodes and options. */
  duplicate(nodes?: never[], options?: { shardedSubscribers: true }): Client
  connect(): Promise<unknown>
  /** With node-redis each call says who hears. */
  subscribe(channel: string, ...onMessage: [] | [OnMessage, isBinary: true]): Promise<unknown>
  unsubscribe(channel: string): Promise<unknown>
  ssubscribe?(channel: string): Promise<unknown>
  sunsubscribe?(channel: string): Promise<unknown>
  sSubscribe?(channel: string, ...onMessage: [OnMessage, isBinary: true]): Promise<unknown>
  sUnsubscribe?(channel: string): Promise<unknown>
  on(event: string, listener: (...args: Uint8Array[]) => void): unknown
  unref?(): void
  destroy?(): void
  disconnect(): unknown
  /** In a cluster of ioredis whose version hears each channel at its own node. */
  readonly shardedSubscribers?: unknown
  readonly isCluster?: boolean
  /** Where TLS is said by: ioredis, its cluster, node-redis. */
  readonly options?: { tls?: unknown; redisOptions?: { tls?: unknown }; socket?: { tls?: unknown } }
  readonly stream?: { unref?(): void }
  readonly masters?: unknown
}

type OnMessage = (frame: Uint8Array, channel: Uint8Array) => void

/** The client behind one face; `undefined` for what is no client. */
export function storeOf(client: unknown): Store | undefined {
  const has = (name: string) => typeof (client as Record<string, unknown> | null)?.[name] === 'function'
  const isNode = has('evalSha')
  const isOne = ['eval', 'publish', 'duplicate'].every(has) && (isNode || has('evalsha'))
  return isOne ? new ClientStore(client as Client, isNode) : undefined
}

class ClientStore implements Store {
  readonly isCluster: boolean
  readonly isSecure: boolean
  readonly #client: Client
  /** Whether it speaks as node-redis does. */
  readonly #isNode: boolean
  /** In place of the client, where that gave no answer. */
  #own: { connection: Client; ready: Promise<unknown> } | undefined

  constructor(client: Client, isNode: boolean) {
    this.#client = client
    this.#isNode = isNode
    this.isCluster = isNode ? client.masters !== undefined : client.isCluster === true
    const { tls, redisOptions, socket } = client.options ?? {}
    this.isSecure = Boolean(tls ?? redisOptions?.tls ?? socket?.tls)
  }

  run(script: string, keys: readonly string[], args: readonly Argument[]): Promise<unknown> {
    return this.#ask((client) =>
      this.#isNode
        ? client.eval(script, { keys: [...keys], arguments: [...args] })
        : client.eval(script, keys.length, ...keys, ...args),
    )
  }

  publish(channel: string, frame: Uint8Array): Promise<number> {
    return this.#ask((client) => client.publish(channel, frame))
  }

  reconnect(): void {
    this.close()
    const connection = this.#client.duplicate()
    const own = { connection, ready: this.#connect(connection) }
    this.#own = own
    own.ready.catch(() => {
      if (this.#own === own) this.#own = undefined
    })
  }

  close(): void {
    if (this.#own) end(this.#own.connection)
    this.#own = undefined
  }

  #ask<T>(ask: (client: Client) => Promise<T>): Promise<T> {
    const own = this.#own
    return own ? own.ready.then(() => ask(own.connection)) : ask(this.#client)
  }

  /**
   * Connects what is made here. It keeps no process alive, after a reconnection neither.
   *
   * node-redis tries without end. It reaches a socket only when that is connected: until then `destroy`
   * leaves it to a timeout of five seconds. The socket therefore keeps no process alive from its birth on.
   */
  async #connect(connection: Client, broke: (error: Error) => void = () => {}): Promise<void> {
    connection.on('error', (error) => broke(error as unknown as Error))
    if (!this.#isNode) {
      connection.on('ready', () => connection.stream?.unref?.())
      return
    }
    connection.unref?.()
    await connection.connect()
  }

  subscriber(broke: (error: Error) => void): Subscriber {
    const isNode = this.#isNode
    const connection =
      this.isCluster && !isNode
        ? this.#client.duplicate([], { shardedSubscribers: true })
        : this.#client.duplicate()
    const handlers = new Map<string, (frame: Uint8Array) => void>()
    const onMessage: OnMessage = (frame, channel) => handlers.get(String(channel))?.(frame)
    const listener: [] | [OnMessage, true] = isNode ? [onMessage, true] : []
    for (const event of ['messageBuffer', 'smessageBuffer'])
      connection.on(event, (channel, frame) => onMessage(frame!, channel!))
    const subscriber = {
      ready: this.#connect(connection, broke),
      isSharded: this.isCluster && (connection.shardedSubscribers ?? connection.sSubscribe) !== undefined,
      async subscribe(channel: string, onMessage: (frame: Uint8Array) => void) {
        handlers.set(channel, onMessage)
        await connection.subscribe(channel, ...listener)
        if (!subscriber.isSharded) return
        const answer = isNode
          ? connection.sSubscribe!(channel, onMessage, true)
          : connection.ssubscribe!(channel)
        // A server before Redis 7 does not know the command.
        subscriber.isSharded = await answer.then(
          () => true,
          () => false,
        )
      },
      async unsubscribe(channel: string) {
        handlers.delete(channel)
        await connection.unsubscribe(channel)
        if (subscriber.isSharded)
          await (isNode ? connection.sUnsubscribe!(channel) : connection.sunsubscribe!(channel))
      },
      close: () => end(connection),
    }
    return subscriber
  }
}

/** Closes a connection that is made here, also before it is there. */
async function end(connection: Client): Promise<void> {
  try {
    await (connection.destroy ? connection.destroy() : connection.disconnect())
  } catch {
    // It has ended already, which node-redis calls an error.
  }
}
