/**
 * What was set while it ran, as the writer keeps it: for all processes, and for whoever writes next.
 *
 * The trap is an order that comes late: a hold has become shorter meanwhile.
 */
import type { ScopeOptions } from '../options/options.js'
import type { Engine } from '../wasm/engine.js'
import type { Order, State } from './messages.js'

export class Orders {
  readonly #engine: Engine
  readonly #now: () => number
  readonly #settings = new Map<string, ScopeOptions>()
  #isPaused = false

  constructor(engine: Engine, now: () => number) {
    this.#engine = engine
    this.#now = now
  }

  /** For the next writer. */
  get state(): Pick<State, 'settings' | 'isPaused'> {
    return { settings: [...this.#settings], isPaused: this.#isPaused }
  }

  /** What the writer before this one had. */
  restore({ settings, isPaused }: State): void {
    for (const [name, partial] of settings) this.#configure(name, partial)
    if (isPaused) this.apply(['pause', null])
  }

  /** An order that was given `ago` milliseconds ago. What a member wants to hear is not for the engine. */
  apply(order: Order, ago = 0): void {
    const [what, name, value, charged, cost] = order
    const [engine, now] = [this.#engine, this.#now()]
    if (what === 'watch') return
    if (what === 'adjust') engine.adjust(now, engine.intern(name), now - value - ago, charged, cost)
    else if (what === 'configure') this.#configure(name, value)
    else if (name === null) {
      this.#isPaused = what === 'pause'
      engine[what](now)
    } else {
      const scope = engine.intern(name)
      if (what === 'crawl') engine.crawlDelay(now, scope, value ?? undefined)
      else if (what === 'hold') engine.hold(now, scope, Math.max(value - ago, 0))
      else engine[what](now, scope)
    }
  }

  #configure(name: string, partial: ScopeOptions): void {
    this.#settings.set(name, { ...this.#settings.get(name), ...partial })
    try {
      // Kept: what was set while it ran is not in the options.
      this.#engine.configure(this.#now(), this.#engine.scope(name), partial)
    } catch {
      // Its process was told: the same settings are checked there.
    }
  }
}
