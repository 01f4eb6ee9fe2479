/**
 * One limit for all Workers of a program: `npx wrangler dev` runs it on this machine.
 *
 * The object learns what the API bears; each request of the Worker asks it for leave. A cron trigger and a
 * queue consumer share the same limit, since they name the same object.
 */
import {
  type ObjectNamespace,
  ThrottleObject,
  throttleOf,
  WaitTooLongError,
} from 'autothrottle/durable-object'

interface Env {
  LIMITER: ObjectNamespace
}

export class Limiter extends ThrottleObject {
  override options = { defaults: { rampup: true }, retry: { limit: 2 } }
}

export default {
  /** A client waits: not for longer than ten seconds. If it goes, no request is sent for it. */
  async fetch(request: Request, env: Env): Promise<Response> {
    const throttle = throttleOf(env.LIMITER, { name: 'api.example' })
    try {
      return await throttle.fetch('https://api.example/items', { signal: request.signal })
    } catch (error) {
      if (!(error instanceof WaitTooLongError)) throw error
      const headers = { 'retry-after': String(Math.ceil(error.retryAfterMs / 1000)) }
      return new Response('busy, please come back', { status: 503, headers })
    }
  },

  /** No client waits: it may take a quarter of an hour. */
  async scheduled(_: unknown, env: Env): Promise<void> {
    const throttle = throttleOf(env.LIMITER, { name: 'api.example', maxWait: 800_000 })
    await throttle.fetch('https://api.example/sync', { throttle: { priority: -1 } })
  },

  /** A message that would wait for too long comes back when it may be sent. */
  async queue(batch: { messages: readonly Message[] }, env: Env): Promise<void> {
    const throttle = throttleOf(env.LIMITER, { name: 'api.example' })
    const send = async (message: Message) => {
      try {
        await throttle.fetch(message.body)
        message.ack()
      } catch (error) {
        const ms = error instanceof WaitTooLongError ? error.retryAfterMs : 30_000
        message.retry({ delaySeconds: Math.ceil(ms / 1000) })
      }
    }
    await Promise.all(batch.messages.map(send))
  },
}

interface Message {
  readonly body: string
  ack(): void
  retry(options: { delaySeconds: number }): void
}
