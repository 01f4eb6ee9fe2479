/**
 * How far the store's clock is ahead of this process's, and how long the way takes.
 *
 * An answer tells the store's time at some instant between asking and hearing: the quicker it was, the better
 * is it known, so the quickest of the last sixteen counts (Cristian's algorithm; NTP's filter, RFC 5905 §10).
 * The trap is a clock that is set: a sample that cannot be true beside the others begins anew.
 */

const KEPT = 16
/** The least that a grant is made ahead, in milliseconds. */
const LEAST_LEAD_MS = 5
/** A trip of more than so many times the median, and so many milliseconds, was through a broken way. */
const [BROKEN, BROKEN_MS] = [4, 20]

interface Sample {
  readonly offsetMs: number
  readonly tripMs: number
}

export class StoreClock {
  #samples: Sample[] = []
  /** The store's clock less this process's, in milliseconds; `undefined` before it was asked. */
  offsetMs: number | undefined
  /**
   * How far ahead a grant is made: a message takes two ways, and its lateness should be rare, so one and a
   * half times a slow one of the last round trips.
   */
  leadMs = LEAST_LEAD_MS
  /** The median of the last round trips. */
  tripMs: number | undefined

  /** Asked at `asked`, answered at `heard`, both of this process's clock; the store said `storeMs`. */
  sample(asked: number, heard: number, storeMs: number): void {
    const tripMs = Math.max(heard - asked, 0)
    const offsetMs = storeMs - (asked + heard) / 2
    const best = this.#best()
    // Each is off by half its way at most; a clock that drifts moves by less than a millisecond meanwhile.
    if (best && Math.abs(offsetMs - best.offsetMs) > (tripMs + best.tripMs) / 2 + 5) this.#samples = []
    this.#samples.push({ offsetMs, tripMs })
    if (this.#samples.length > KEPT) this.#samples.shift()
    this.offsetMs = this.#best()?.offsetMs
    this.leadMs = Math.max(LEAST_LEAD_MS, 1.5 * this.#slowTrip())
  }

  /** A command that waited for a connection says nothing about the way: it took much longer than most. */
  #slowTrip(): number {
    const trips = this.#samples.map(({ tripMs }) => tripMs).sort((a, b) => a - b)
    this.tripMs = trips[(trips.length - 1) >> 1]!
    const most = BROKEN * this.tripMs + BROKEN_MS
    const usual = trips.filter((trip) => trip <= most)
    return usual[Math.floor(usual.length * 0.9)]!
  }

  #best(): Sample | undefined {
    let best = this.#samples[0]
    for (const sample of this.#samples) if (best && sample.tripMs < best.tripMs) best = sample
    return best
  }
}
