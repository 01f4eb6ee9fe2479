/**
 * Many items through one throttle, as an async iterable: pulls from its source only as fast as it can send.
 *
 * It holds no more items than `buffer`, so a source may be endless and memory stays flat.
 */

import { notA } from '../base/checks.js'
import type { RunOptions } from './requests.js'

/** How {@link mapItems} works. */
export interface MapOptions {
  /** Results in the order of the items, or as they come. Default true. */
  ordered?: boolean
  /**
   * The most items that are held at a time: waiting, in flight, or done and not yet taken. A whole number
   * from 1, default 100.
   */
  buffer?: number
  /**
   * `throw` ends the iteration at the first error; `skip` leaves out what failed; `settle` gives what
   * `Promise.allSettled` gives. Default `throw`.
   */
  errors?: 'throw' | 'skip' | 'settle'
  /** Ends the iteration with `signal.reason`. */
  signal?: AbortSignal | null
  /** Whether the function is called again after a failure, as in `run`. */
  retry?: RunOptions['retry']
}

/** @throws {TypeError} for an `errors` that is none: a misspelt one would leave errors out. */
export function checkMapping({
  errors,
  ordered,
  target,
  buffer = 1,
}: MapOptions & { target?: unknown }): void {
  if (errors !== undefined && !['throw', 'skip', 'settle'].includes(errors))
    throw notA('map.errors', '"throw", "skip" or "settle"', errors)
  if (ordered !== undefined && typeof ordered !== 'boolean')
    throw notA('map.ordered', 'true or false', ordered)
  if (!(Number.isInteger(buffer) && buffer >= 1)) throw notA('map.buffer', 'a whole number from 1', buffer)
  if (target !== undefined && typeof target !== 'function')
    throw notA('map.target', 'a function of an item', target)
}

/** Runs `work` for each item; when the caller stops, so does everything. */
export async function* mapItems<I, T>(
  items: Iterable<I> | AsyncIterable<I>,
  work: (item: I, signal: AbortSignal, left: () => void) => Promise<T>,
  options: MapOptions,
  started: () => void = () => {},
  isFull: () => boolean = () => false,
): AsyncGenerator<T | PromiseSettledResult<T>, void, undefined> {
  started()
  const { ordered = true, buffer = 100, errors = 'throw', signal } = options
  signal?.throwIfAborted()
  const stop = new AbortController()
  const source = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]()
  const done = new Map<number, PromiseSettledResult<T>>()
  let [pulled, ended, taken] = [0, 0, 0]
  let isPulling = false
  let isOver = false
  let failure: { reason: unknown } | undefined
  // One promise at a time is waited for, made anew each time: reactions on a long-lived one would pile up.
  let wake = () => {}
  const woken = () =>
    new Promise<void>((resolve) => {
      wake = resolve
    })
  const fail = (reason: unknown) => {
    failure ??= { reason }
    stop.abort(reason)
    wake()
  }
  const onAbort = () => fail(signal?.reason)
  const end = (index: number, result: PromiseSettledResult<T>) => {
    done.set(index, result)
    ended++
    wake()
  }
  /** One pull at a time, and none while as many items are held as may be. */
  const pull = () => {
    if (isPulling || isOver || failure || pulled - taken >= buffer) return
    // The queue has room again when one of these ends; if none is on its way, no end will say so.
    if (pulled > ended && isFull()) return
    isPulling = true
    // A source may throw at once.
    new Promise<IteratorResult<I>>((resolve) => resolve(source.next())).then((next) => {
      isPulling = false
      if (next.done) isOver = true
      else {
        const index = pulled++
        work(next.value, stop.signal, pull).then(
          (value) => end(index, { status: 'fulfilled', value }),
          (reason) => end(index, { status: 'rejected', reason }),
        )
      }
      pull()
      wake()
    }, fail)
  }
  signal?.addEventListener('abort', onAbort)
  try {
    for (;;) {
      pull()
      if (failure) throw failure.reason
      const index = ordered ? taken : done.keys().next().value
      const result = index === undefined ? undefined : done.get(index)
      if (index === undefined || result === undefined) {
        if (isOver && taken === pulled) return
        await woken()
        continue
      }
      done.delete(index)
      taken++
      if (errors === 'settle') yield result
      else if (result.status === 'fulfilled') yield result.value
      else if (errors === 'throw') throw result.reason
    }
  } finally {
    signal?.removeEventListener('abort', onAbort)
    failure ??= { reason: undefined }
    stop.abort(new DOMException('the iteration ended', 'AbortError'))
    // No work of ours goes on after the caller has left the loop.
    while (ended < pulled) await woken()
    const returned = new Promise((resolve) => resolve(source.return?.()))
    // A source that sleeps ends when it wakes, which may be never.
    if (isPulling) returned.catch(() => {})
    else await returned
  }
}
