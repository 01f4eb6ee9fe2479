/**
 * Virtual time for any library: timers in a heap, and `Date.now` and `performance.now` that only move when
 * everybody has had their turn.
 *
 * A fake clock that looks through all its timers is slow for a client that has many, and the figure would be
 * the clock's. Here a timer costs a logarithm. Import this file first.
 */
const realImmediate = setImmediate
let now = 1_700_000_000_000
const origin = now
/** A heap by instant, then by order of arming. */
const heap = []
let order = 0
let live = 0
let most = 0

const before = (a, b) => a.at < b.at || (a.at === b.at && a.order < b.order)

function push(timer) {
  let index = heap.push(timer) - 1
  while (index > 0) {
    const parent = (index - 1) >> 1
    if (!before(timer, heap[parent])) break
    heap[index] = heap[parent]
    index = parent
  }
  heap[index] = timer
}

function pop() {
  const first = heap[0]
  const last = heap.pop()
  if (heap.length === 0) return first
  let index = 0
  for (;;) {
    let child = 2 * index + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && before(heap[child + 1], heap[child])) child++
    if (!before(heap[child], last)) break
    heap[index] = heap[child]
    index = child
  }
  heap[index] = last
  return first
}

class Timer {
  constructor(run, ms, every) {
    this.run = run
    this.every = every
    this.isLive = true
    this.arm(ms)
    live++
    most = Math.max(most, live)
  }
  arm(ms) {
    this.at = now + Math.max(1, Math.trunc(Number(ms) || 0))
    this.order = order++
    push(this)
  }
  end() {
    if (this.isLive) live--
    this.isLive = false
  }
  ref() {
    return this
  }
  unref() {
    return this
  }
  hasRef() {
    return true
  }
  refresh() {
    this.arm(this.at - now)
    return this
  }
}

globalThis.setTimeout = (run, ms, ...args) => new Timer(() => run(...args), ms)
globalThis.setInterval = (run, ms, ...args) => new Timer(() => run(...args), ms, ms)
globalThis.clearTimeout = (timer) => timer?.end?.()
globalThis.clearInterval = globalThis.clearTimeout
Date.now = () => now
performance.now = () => now - origin

/** Lets promises and immediates run. */
const settle = () => new Promise((resolve) => realImmediate(resolve))

/** Moves time on until `done` is over; gives what it gives. It stands still if no timer is left. */
export async function play(done) {
  let isOver = false
  const result = Promise.resolve(done).finally(() => {
    isOver = true
  })
  result.catch(() => {})
  await settle()
  while (!isOver) {
    while (heap.length > 0 && !heap[0].isLive) pop()
    if (heap.length === 0) {
      await settle()
      await settle()
      if (isOver || heap.length > 0) continue
      throw new Error('nothing is armed, and it is not over')
    }
    now = heap[0].at
    while (heap.length > 0 && heap[0].at === now) {
      const timer = pop()
      if (!timer.isLive) continue
      if (timer.every === undefined) timer.end()
      else timer.arm(timer.every)
      timer.run()
    }
    await settle()
  }
  return await result
}

/** Milliseconds since the beginning. */
export const elapsed = () => now - origin

/** The most timers that were live at one time. */
export const mostTimers = () => most

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
