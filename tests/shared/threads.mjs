/**
 * Three worker threads of one program that share one slot by `autothrottle/local`: `threads.mjs FOLDER`. The
 * one that decides is ended, and the others go on. Says how many were in flight at a time and whether all
 * were served.
 */
import { isMainThread, Worker, workerData } from 'node:worker_threads'

const COUNT = 3
/** In flight by thread, how often each was served, and the most at a time. */
const cells = new Int32Array(isMainThread ? new SharedArrayBuffer(4 * (2 * COUNT + 1)) : workerData.buffer)
const served = (index) => Atomics.load(cells, COUNT + index)
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function ask({ index, folder }) {
  const { createThrottle } = await import('../../dist/node/index.js')
  const { local } = await import('../../dist/local.js')
  const one = { defaults: { concurrency: 1, delay: 0, slotDelay: 0, jitter: false } }
  const throttle = createThrottle({ ...one, shared: local({ name: 'threads', folder }) })
  for (;;) {
    const permit = await throttle.acquire({ scopes: 'x' })
    Atomics.store(cells, index, 1)
    let now = 0
    for (let other = 0; other < COUNT; other++) now += Atomics.load(cells, other)
    if (now > Atomics.load(cells, 2 * COUNT)) Atomics.store(cells, 2 * COUNT, now)
    await sleep(3)
    Atomics.add(cells, COUNT + index, 1)
    Atomics.store(cells, index, 0)
    permit.settle({ status: 200 })
  }
}

async function until(isSo) {
  for (let turn = 0; turn < 400; turn++) {
    if (isSo()) return true
    await sleep(50)
  }
  return false
}

if (isMainThread) {
  const folder = process.argv[2]
  const start = (index) =>
    new Worker(new URL(import.meta.url), { workerData: { index, folder, buffer: cells.buffer } })
  const first = start(0)
  await until(() => served(0) > 5)
  const others = [start(1), start(2)]
  const areAll = await until(() => served(1) > 5 && served(2) > 5)
  const mostBefore = Atomics.load(cells, 2 * COUNT)
  await first.terminate()
  // Bun says so before the thread has ended. Its requests in flight are over then, and the group did not hear
  // of it.
  for (let last = -1; last !== served(0); await sleep(300)) last = served(0)
  Atomics.store(cells, 0, 0)
  await sleep(100)
  Atomics.store(cells, 2 * COUNT, 0)
  const before = [served(1), served(2)]
  const goOn = await until(() => served(1) > before[0] + 5 && served(2) > before[1] + 5)
  // Read before they end: a thread that ends with the slot leaves its cell at 1, and the next one has the
  // slot.
  const mostAfter = Atomics.load(cells, 2 * COUNT)
  for (const worker of others) await worker.terminate()
  console.log(JSON.stringify({ most: Math.max(mostBefore, mostAfter), areAll, goOn }))
  process.exit()
} else await ask(workerData)
