/**
 * What a key costs once it is idle, whether it is ever given back, and what a waiting task costs.
 *
 * Counted are the JavaScript heap and WebAssembly's memory, which V8 does not count. Each figure is taken in
 * a process of its own.
 */

import { inChild } from '../child.mjs'
import { able, contenders } from '../contenders.mjs'

export const title = 'Memory'
export const says =
  'Bytes, JavaScript and WebAssembly together. Idle: 100,000 keys used once; then 100,000 others (0: the first were given back). Waiting: tasks of one key.'
export const columns = ['an idle key', 'each further key', 'a waiting task of 10⁵', 'of 10⁶']

const work = async () => 1
const LIMIT = 60_000

export function run({ isQuick }) {
  return able('open').map((name) => {
    const idle = inChild(import.meta.url, [name, 'idle'], LIMIT)
    const waits = Boolean(contenders[name].spaced ?? contenders[name].capped)
    const waiting = (count) => (waits ? inChild(import.meta.url, [name, String(count)], LIMIT) : undefined)
    const cell = (value) => (value === undefined ? '–' : typeof value === 'string' ? value : value.toFixed(0))
    return [
      name,
      cell(idle.first ?? idle),
      cell(idle.second ?? idle),
      cell(waiting(100_000)),
      isQuick ? '' : cell(waiting(1_000_000)),
    ]
  })
}

export async function child(name, what) {
  const collect = globalThis.gc
  const bytes = () => {
    for (let turn = 0; turn < 3; turn++) collect()
    return process.memoryUsage().heapUsed + (globalThis.memories.at(-1)?.buffer.byteLength ?? 0)
  }
  if (what === 'idle') {
    const limit = contenders[name].open()
    await limit('first.example', work)
    const before = bytes()
    for (let index = 0; index < 100_000; index++) await limit(`host-${index}.example`, work)
    const between = bytes()
    for (let index = 0; index < 100_000; index++) await limit(`other-${index}.example`, work)
    const after = bytes()
    await limit('first.example', work)
    return { first: (between - before) / 1e5, second: (after - between) / 1e5 }
  }
  const count = Number(what)
  const { spaced, capped } = contenders[name]
  const limit = spaced ? spaced(1000) : capped(1, 1000)
  limit('host.example', work)
  const before = bytes()
  const kept = Array.from({ length: count }, () => limit('host.example', work))
  await new Promise((resolve) => setImmediate(resolve))
  const each = (bytes() - before) / count
  return kept.length === count ? each : undefined
}
