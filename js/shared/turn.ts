/**
 * The end of a turn of the event loop: what came in it is known by then, so it is said in one message.
 *
 * The trap is a microtask, which is sooner than that: Node runs those between any two immediates, so 32
 * requests that were made in one turn would be 32 messages.
 */

/** Calls `done` when this turn is over; after its microtasks in a runtime that cannot say when that is. */
export function afterTurn(done: () => void): void {
  const { setImmediate = queueMicrotask } = globalThis as { setImmediate?: (done: () => void) => unknown }
  setImmediate(done)
}
