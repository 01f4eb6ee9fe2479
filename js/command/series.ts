/**
 * Rate, delay and refusals over time, in as many points as fit on a screen: when they become too many, two
 * become one, so that a run of weeks costs what a run of minutes does.
 */

/** The sums of a span. */
export interface Point {
  /** Seconds since the start, at its end. */
  at: number
  /** Answers a second. */
  rate: number
  /** Refusals a second. */
  refused: number
  /** Milliseconds between sends at the busiest host. */
  delayMs: number
}

const MOST = 600
const RECENT = 60

export class Series {
  readonly #start: number
  #points: Point[] = []
  /** The last minute, a point a second. */
  #recent: Point[] = []
  #everyMs = 1000
  #span = { answers: 0, refused: 0, from: 0 }
  #second = { answers: 0, refused: 0, from: 0 }

  constructor(start: number) {
    this.#start = start
    this.#span.from = start
    this.#second.from = start
  }

  get points(): readonly Point[] {
    return this.#points
  }

  get recent(): readonly Point[] {
    return this.#recent
  }

  /** An answer, or a failure. */
  note(isRefused: boolean): void {
    for (const span of [this.#span, this.#second]) {
      span.answers++
      if (isRefused) span.refused++
    }
  }

  /** Closes spans that are over; `delayMs` as it is now. */
  sample(now: number, delayMs: number): void {
    if (now - this.#second.from >= 1000) {
      this.#recent.push(this.#close(this.#second, now, delayMs))
      this.#recent = this.#recent.slice(-RECENT)
      this.#second = { answers: 0, refused: 0, from: now }
    }
    if (now - this.#span.from < this.#everyMs) return
    this.#points.push(this.#close(this.#span, now, delayMs))
    this.#span = { answers: 0, refused: 0, from: now }
    if (this.#points.length < MOST) return
    this.#everyMs *= 2
    const halved: Point[] = []
    for (let index = 0; index + 1 < this.#points.length; index += 2)
      halved.push(together(this.#points[index]!, this.#points[index + 1]!))
    this.#points = halved
  }

  #close(span: { answers: number; refused: number; from: number }, now: number, delayMs: number): Point {
    const seconds = Math.max(0.001, (now - span.from) / 1000)
    const at = (now - this.#start) / 1000
    return { at, rate: span.answers / seconds, refused: span.refused / seconds, delayMs }
  }
}

const together = (a: Point, b: Point): Point => ({
  at: b.at,
  rate: (a.rate + b.rate) / 2,
  refused: (a.refused + b.refused) / 2,
  delayMs: (a.delayMs + b.delayMs) / 2,
})
