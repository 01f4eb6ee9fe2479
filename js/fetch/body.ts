/**
 * Bodies: let go of, or watched to their end; and responses that say the same as before.
 *
 * A body may fail, or never answer, when it is let go of: no caller waits for that, and none hears of it. A
 * wrapper that callers notice has another `url`, no `clone`, or a stream that cannot be read twice where it
 * could. The copy is therefore a real `Response`, with properties of its own for fields that its constructor
 * cannot set, and its clones likewise. The bodies of node-fetch are streams of Node's: no `cancel`, no
 * `getReader`.
 */

interface Metadata {
  status?: number
  ok?: boolean
  url?: string
  redirected?: boolean
  type?: ResponseType
}

/** As much of Node's `Readable` as we need. */
interface NodeStream {
  readonly errored?: Error | null
  readonly destroyed?: boolean
  destroy(): void
  once(event: 'close' | 'end' | 'error', listener: (error?: unknown) => void): void
}

/**
 * Lets go of an unwanted body, unless a hook reads it already. No caller has to wait for it.
 */
export function discard(response: Response | undefined): void {
  try {
    const body = response?.body
    if (!body || response.bodyUsed || body.locked) return
    if (typeof body.cancel === 'function') body.cancel().then(undefined, () => {})
    else if (isNodeStream(body)) {
      body.once('error', () => {})
      body.destroy()
    }
  } catch {
    // A body of a custom `fetch`. It is not wanted, so its failure is no news.
  }
}

/** The response with these properties, which its clones have as well. */
export function withMetadata(response: Response, metadata: Metadata): Response {
  for (const [key, value] of Object.entries(metadata)) {
    Object.defineProperty(response, key, { value, configurable: true, enumerable: false })
  }
  const { clone } = response
  Object.defineProperty(response, 'clone', {
    value: () => withMetadata(clone.call(response), metadata),
    configurable: true,
    enumerable: false,
  })
  return response
}

/**
 * The same response, and `onEnd` when its body was read to the end, was cancelled, or failed; at once if it
 * has none, if a hook reads it already, or if it cannot be watched. A body that is collected as
 * garbage unread counts as cancelled. `onPart` hears each part as it is read; a stream of Node's is then read
 * as it is, unheard.
 */
export function watched(
  response: Response,
  onEnd: (error?: unknown, isWhole?: boolean) => void,
  onPart?: (bytes: Uint8Array) => void,
): Response {
  const { body, url, redirected, type, status, statusText, headers } = response
  if (isEmpty(response)) {
    onEnd(undefined, true)
    return response
  }
  if (isNodeStream(body) && !body.destroyed) {
    watchStream(body, onEnd)
    return response
  }
  if (!body || body.locked || status === 0 || typeof body.getReader !== 'function') {
    onEnd()
    return response
  }
  const reader = body.getReader()
  const end = (error?: unknown, isWhole = false) => {
    collected()?.unregister(reader)
    onEnd(error, isWhole)
  }
  const stream = new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      try {
        let { done, value } = await reader.read()
        while (!done && value?.length === 0) ({ done, value } = await reader.read())
        if (value !== undefined && !done) {
          onPart?.(value)
          return controller.enqueue(value as Uint8Array<ArrayBuffer>)
        }
        end(undefined, true)
        controller.close()
        // A reader with a buffer of its own waits for an answer also to the end.
        controller.byobRequest?.respond(0)
      } catch (error) {
        end(error)
        throw error
      }
    },
    async cancel(reason) {
      end()
      await reader.cancel(reason)
    },
  })
  collected()?.register(stream, { release: () => reader.cancel(), onEnd }, reader)
  const metadata: Metadata = { url, redirected, type }
  // Some servers invent statuses above 599, which no constructor takes.
  const isKnown = status >= 200 && status <= 599
  if (!isKnown) Object.assign(metadata, { status, ok: false })
  const init = { status: isKnown ? status : 200, statusText, headers }
  return withMetadata(new Response(stream as unknown as BodyInit, init), metadata)
}

/** Whether no byte of a body comes, and many read none. A custom `fetch` may have headers of any kind. */
function isEmpty({ status, headers }: Response): boolean {
  if (status === 204 || status === 205 || status === 304) return true
  return typeof headers?.get === 'function' && headers.get('content-length') === '0'
}

function watchStream(body: NodeStream, onEnd: (error?: unknown) => void): void {
  let isOver = false
  const end = (error?: unknown) => {
    if (!isOver) onEnd(error)
    isOver = true
  }
  body.once('error', end)
  body.once('end', () => end())
  body.once('close', () => end(body.errored ?? undefined))
  collected()?.register(body, { release: async () => {}, onEnd: end })
}

function isNodeStream(body: unknown): body is NodeStream {
  const { once, destroy, getReader } = (body ?? {}) as { [key in 'once' | 'destroy' | 'getReader']?: unknown }
  return typeof once === 'function' && typeof destroy === 'function' && typeof getReader !== 'function'
}

interface Unread {
  release: () => Promise<void>
  onEnd: () => void
}

let registry: FinalizationRegistry<Unread> | undefined

/** Made on first use: an import has no effects. Some runtimes have none. */
function collected(): FinalizationRegistry<Unread> | undefined {
  if (typeof FinalizationRegistry === 'undefined') return undefined
  registry ??= new FinalizationRegistry((unread: Unread) => {
    unread.onEnd()
    unread.release().catch(() => {})
  })
  return registry
}
