/**
 * A signal that is aborted by the caller or by us, also while the body is read.
 *
 * Runtimes before 2024 cannot join signals: there a listener at a caller's signal goes with the request. A
 * signal that lives as long as the program would keep each request that it was given to.
 */

/** Keeps a controller for as long as its signal may be read. */
const controllers = new WeakMap<AbortSignal, AbortController>()
let forgotten: FinalizationRegistry<() => void> | undefined

export function joined(signal: AbortSignal | null, controller: AbortController): AbortSignal {
  if (signal === null) return controller.signal
  if (typeof AbortSignal.any === 'function') return AbortSignal.any([signal, controller.signal])
  if (signal.aborted) {
    controller.abort(signal.reason)
    return controller.signal
  }
  controllers.set(controller.signal, controller)
  const kept = new WeakRef(controller)
  const abort = () => kept.deref()?.abort(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  forgotten ??= new FinalizationRegistry((forget) => forget())
  forgotten.register(controller.signal, () => signal.removeEventListener('abort', abort))
  return controller.signal
}

/** A signal that is aborted by either of two. */
export function both(one: AbortSignal, other: AbortSignal): AbortSignal {
  if (typeof AbortSignal.any === 'function') return AbortSignal.any([one, other])
  const controller = new AbortController()
  joined(one, controller)
  return joined(other, controller)
}
