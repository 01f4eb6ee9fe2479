/**
 * Responses that say the same as before: `url`, `redirected` and `type` cannot be given to the constructor.
 *
 * The trap is a wrapper that callers notice: another `url`, no `clone`, a stream that cannot be read twice where it could.
 * So what is made anew is a real `Response`, with what it lacks as properties of its own, and its clones likewise.
 */

interface Dress {
  url?: string
  redirected?: boolean
  type?: ResponseType
}

/** Lets go of a body that nobody wants, unless somebody (a hook) reads it already. */
export async function discard({ body }: Response): Promise<void> {
  if (body && !body.locked) await body.cancel()
}

/** The response with these properties, which its clones have as well. */
export function dressed(response: Response, dress: Dress): Response {
  for (const [key, value] of Object.entries(dress)) {
    Object.defineProperty(response, key, { value, configurable: true, enumerable: false })
  }
  const { clone } = response
  Object.defineProperty(response, 'clone', {
    value: () => dressed(clone.call(response), dress),
    configurable: true,
    enumerable: false,
  })
  return response
}

/**
 * The same response, and `onEnd` when its body was read to the end, was cancelled, or failed; at once if it has none, or if somebody
 * reads it already (a hook). A body that is collected as garbage unread counts as cancelled.
 */
export function watched(response: Response, onEnd: (error?: unknown) => void): Response {
  const { body, url, redirected, type, status, statusText, headers } = response
  if (body === null || body.locked || status === 0) {
    onEnd()
    return response
  }
  const reader = body.getReader()
  const end = (error?: unknown) => {
    collected()?.unregister(reader)
    onEnd(error)
  }
  const stream = new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      try {
        let { done, value } = await reader.read()
        while (!done && value?.length === 0) ({ done, value } = await reader.read())
        if (value !== undefined && !done) return controller.enqueue(value as Uint8Array<ArrayBuffer>)
        end()
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
  collected()?.register(stream, { reader, onEnd }, reader)
  const same = new Response(stream as unknown as BodyInit, { status, statusText, headers })
  return dressed(same, { url, redirected, type })
}

interface Unread {
  reader: ReadableStreamDefaultReader
  onEnd: () => void
}

let registry: FinalizationRegistry<Unread> | undefined

/** Made on first use: nothing happens at import. Some runtimes have none. */
function collected(): FinalizationRegistry<Unread> | undefined {
  if (typeof FinalizationRegistry === 'undefined') return undefined
  registry ??= new FinalizationRegistry(({ reader, onEnd }: Unread) => {
    onEnd()
    reader.cancel().catch(() => {})
  })
  return registry
}
