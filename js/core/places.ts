/**
 * Waiting requests by the place of their tickets: what a `Map` of small numbers is, where those are dense.
 *
 * The engine uses the place that was given back last, so no place is beyond the most tickets there were at
 * once. Of ten thousand entries a `Map` takes a microsecond for one that comes and goes; a list takes none.
 */
import type { Waiter } from './waiting.js'

/** The places that are kept where no request waits. */
const KEPT = 1024

/** The methods that a driver calls, of this class and of the map in its place. */
export interface Waiters {
  readonly size: number
  get(place: number): Waiter | undefined
  set(place: number, waiting: Waiter): unknown
  delete(place: number): boolean
  /** First come, first. */
  values(): Iterable<Waiter>
}

export class Places implements Waiters {
  #places: (Waiter | undefined)[] = []
  size = 0

  get(place: number): Waiter | undefined {
    return this.#places[place]
  }

  set(place: number, waiting: Waiter): void {
    while (this.#places.length <= place) this.#places.push(undefined)
    this.#places[place] = waiting
    this.size++
  }

  delete(place: number): boolean {
    if (this.#places[place] === undefined) return false
    this.#places[place] = undefined
    if (--this.size === 0 && this.#places.length > KEPT && place < this.#places.length / 4) this.#places = []
    return true
  }

  values(): Waiter[] {
    const all = this.#places.filter((waiting) => waiting !== undefined)
    return all.sort((one, other) => one.id - other.id)
  }
}
