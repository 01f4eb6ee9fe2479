/**
 * Scopes by name, as the engine's handles.
 *
 * The engine forgets idle scopes. A handle is therefore asked for before each use, and this keeps at most as
 * many names as the engine has scopes.
 */
import type { Host } from '../core/host.js'
import type { ScopeHandle } from '../wasm/engine.js'
import { checkedName } from './names.js'

/** A scope that is known by name. Its lists of one serve all of its requests. */
export interface Known {
  readonly names: readonly [string]
  readonly handle: ScopeHandle
  readonly handles: readonly [ScopeHandle]
}

export class Handles {
  readonly #engine: Host
  readonly #onMade: ((name: string, handle: ScopeHandle) => void) | undefined
  readonly #known = new Map<string, Known>()

  /** `onMade` is called for each scope that is made, or made anew. If it throws, there is none. */
  constructor(engine: Host, onMade: ((name: string, handle: ScopeHandle) => void) | undefined) {
    this.#engine = engine
    this.#onMade = onMade
  }

  /** The scope as it was known last: the engine may have forgotten it. Made if it was never known. */
  last(name: string): Known {
    return this.#known.get(name) ?? this.#make(checkedName(name))
  }

  /** The scope, made if it has to be. */
  of(name: string): Known {
    const known = this.#known.get(name)
    if (known !== undefined && this.#engine.keepAlive(known.handle)) return known
    return this.#make(checkedName(name))
  }

  /** The handles of scopes, made where they have to be. */
  all(names: readonly string[]): ScopeHandle[] {
    return names.map((name) => this.of(name).handle)
  }

  /** Looks at scopes. Unknown ones are made for this alone. */
  look<T>(names: readonly string[], look: (handles: readonly ScopeHandle[]) => T): T {
    const engine = this.#engine
    const made: ScopeHandle[] = []
    const handles = names.map((name) => {
      const known = engine.find(checkedName(name))
      if (known >= 0) return known
      made.push(engine.intern(name))
      return made.at(-1)!
    })
    try {
      return look(handles)
    } finally {
      for (const handle of made) engine.release(handle)
    }
  }

  #make(name: string): Known {
    if (this.#known.size > 1000 + 2 * this.#engine.scopes) this.#known.clear()
    const handle = this.#engine.intern(name)
    const made: Known = { names: [name], handle, handles: [handle] }
    this.#onMade?.(name, handle)
    this.#known.set(name, made)
    return made
  }
}
