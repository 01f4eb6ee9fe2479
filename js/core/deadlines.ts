/**
 * A heap of deadlines beside the engine's own times, so that one timer serves both.
 *
 * The deadline of a request that was sent is struck out and stays. When more than half of the heap is struck
 * out, the heap is made anew.
 */

/** A deadline. `isDone` strikes it out. */
export interface Deadline {
  readonly at: number
  isDone: boolean
  readonly expire: () => void
}

export class Deadlines {
  #heap: Deadline[] = []
  #done = 0

  /** The earliest instant at which a caller gives up. */
  get next(): number {
    while (this.#heap[0]?.isDone) {
      this.#pop()
      this.#done--
    }
    return this.#heap[0]?.at ?? Number.POSITIVE_INFINITY
  }

  add(at: number, expire: () => void): Deadline {
    const deadline = { at, expire, isDone: false }
    this.#push(deadline)
    return deadline
  }

  strike(deadline: Deadline): void {
    if (deadline.isDone) return
    deadline.isDone = true
    if (++this.#done <= 32 || this.#done * 2 < this.#heap.length) return
    const left = this.#heap.filter(({ isDone }) => !isDone)
    this.#heap = []
    this.#done = 0
    for (const each of left) this.#push(each)
  }

  /** Takes out those who give up at `now` or before. */
  takeDue(now: number): Deadline | undefined {
    if (this.next > now) return undefined
    const due = this.#pop()
    due.isDone = true
    return due
  }

  #push(deadline: Deadline): void {
    const heap = this.#heap
    let at = heap.push(deadline) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (heap[parent]!.at <= deadline.at) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = deadline
  }

  #pop(): Deadline {
    const heap = this.#heap
    const first = heap[0]!
    const last = heap.pop()!
    if (heap.length === 0) return first
    let at = 0
    for (;;) {
      let child = at * 2 + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && heap[child + 1]!.at < heap[child]!.at) child++
      if (heap[child]!.at >= last.at) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
    return first
  }
}
