/** What is noted of the sends of one URL: when, how often, how long until the headers came, the body. */
import type { Body } from './body.js'
import type { Entry } from './warc.js'

const SENT: unique symbol = Symbol('sent')

/** The sends of one URL. */
export class Sends {
  readonly #onSend: (at: number) => void
  #firstAt = 0
  latencyMs = 0
  attempts = 0
  /** What came last, until its line is written. */
  body: Body | undefined

  constructor(onSend: (at: number) => void) {
    this.#onSend = onSend
  }

  /** Options of `fetch` by which `noted` knows whose send it is. */
  mark(init: RequestInit): RequestInit {
    return { ...init, [SENT]: this } as RequestInit
  }

  times(): Partial<Entry> {
    if (this.attempts === 0) return {}
    return {
      sentAt: new Date(this.#firstAt).toISOString(),
      latencyMs: Math.round(this.latencyMs),
      totalMs: Date.now() - this.#firstAt,
      attempts: this.attempts,
    }
  }

  async send(send: typeof fetch, input: Parameters<typeof fetch>[0], init?: RequestInit): Promise<Response> {
    const at = Date.now()
    this.#firstAt ||= at
    this.attempts++
    this.#onSend(at)
    const start = performance.now()
    try {
      return await send(input, init)
    } finally {
      this.latencyMs = performance.now() - start
    }
  }
}

/** A `fetch` that notes each send on its way out. */
export function noted(send: typeof fetch): typeof fetch {
  return async (input, init) => {
    const sends = (init as { [SENT]?: Sends } | undefined)?.[SENT]
    return sends === undefined ? send(input, init) : sends.send(send, input, init)
  }
}
