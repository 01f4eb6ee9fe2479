/**
 * A backlog: n tasks at once over n/10 keys, each key one in 100 ms, in virtual time until the last is done.
 * Ten tasks a key, so a second of virtual time whatever n is.
 */

import { inChild } from '../child.mjs'
import { able, contenders } from '../contenders.mjs'

export const title = 'A backlog with spacing'
export const says =
  'CPU microseconds per task, enqueueing and dispatch, in virtual time; timers: the most that were live with 10⁴ tasks. Growth: 10⁶ (or the last that ended) over 10³.'
export const columns = ['10³', '10⁴', '10⁵', '10⁶', 'growth', 'to enqueue one of 10⁵', 'timers']

export function run({ isQuick }) {
  const sizes = isQuick ? [1e3, 1e4] : [1e3, 1e4, 1e5, 1e6]
  return able('spaced').map((name) => {
    // Who was too slow for one size is not asked for a larger one.
    const cells = []
    for (const size of sizes) {
      if (typeof cells.at(-1) === 'string') break
      const limit = isQuick ? 20_000 : 60_000
      cells.push(inChild(import.meta.url, [name, String(size)], limit, ['--import', CLOCK]))
    }
    const ended = cells.filter((cell) => typeof cell === 'object')
    const last = ended.at(-1)
    return [
      name,
      ...[0, 1, 2, 3].map((index) => cells[index]?.cpu?.toFixed(1) ?? cells[index] ?? ''),
      last ? (last.cpu / ended[0].cpu).toFixed(1) : '',
      cells[2]?.enqueue?.toFixed(1) ?? '',
      String(cells[1]?.timers ?? ''),
    ]
  })
}

const CLOCK = new URL('../clock.mjs', import.meta.url).href

export async function child(name, size) {
  const { mostTimers, play } = await import('../clock.mjs')
  const count = Number(size)
  const keys = Array.from({ length: count / 10 }, (_, index) => `host-${index}.example`)
  const limit = contenders[name].spaced(100)
  // Compiles what is compiled on first use.
  await play(limit('first.example', async () => 1))
  let ran = 0
  const work = async () => {
    ran++
  }
  const begin = process.cpuUsage()
  const all = []
  for (let index = 0; index < count; index++) all.push(limit(keys[index % keys.length], work))
  const middle = process.cpuUsage(begin)
  await play(Promise.all(all))
  const { user, system } = process.cpuUsage(begin)
  if (ran !== count) throw new Error(`${ran} of ${count} ran`)
  return {
    cpu: (user + system) / count,
    enqueue: (middle.user + middle.system) / count,
    timers: mostTimers(),
  }
}
