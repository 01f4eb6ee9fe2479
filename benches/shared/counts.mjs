/** What a server's log says, and how long a permit takes. */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/**
 * Of lines of `[port, status, seconds, who]`: served ÷ allowed, what was refused, the longest silence in
 * seconds, and the least ÷ the most that one process got.
 */
export function countsOf(lines, { rate, seconds, from }) {
  const begun = Math.min(...lines.map(([, , at]) => Number(at)))
  const end = begun + seconds - 1
  const within = lines.filter(([, , at]) => Number(at) >= begun + from && Number(at) <= end)
  const served = within.filter(([, status]) => status === '200')
  const refused = within.filter(([, status]) => status === '429').length
  const times = served.map(([, , at]) => Number(at)).sort((a, b) => a - b)
  const silences = times.slice(1).map((at, index) => at - times[index])
  const by = new Map()
  for (const [, , , who] of served) by.set(who, (by.get(who) ?? 0) + 1)
  const round = (number) => Math.round(number * 1000) / 1000
  return {
    served: served.length,
    util: round(served.length / (rate * (seconds - 1 - from))),
    refused,
    refusedPct: round((100 * refused) / Math.max(within.length, 1)),
    silence: round(Math.max(0, ...silences)),
    fair: round(Math.min(...by.values()) / Math.max(...by.values())),
  }
}

/** A member that asks one at a time, and eight that ask 32 at a time. */
export async function median() {
  const file = fileURLToPath(new URL('asks.mjs', import.meta.url))
  const run = (count, atOnce) =>
    new Promise((resolve) => {
      const name = `asks-${process.pid}-${count}`
      const all = []
      let said = 0
      const children = Array.from({ length: count }, (_, index) => {
        const child = fork(file, [JSON.stringify({ name, index, atOnce, ms: 3000 })])
        child.on('message', (message) => {
          all.push(message)
          if (++said === count) {
            for (const each of children) each.kill()
            resolve(all)
          }
        })
        return child
      })
    })
  const [one] = (await run(2, 1)).filter(({ isWriter }) => !isWriter)
  const many = await run(8, 32)
  const permits = Math.round(many.reduce((sum, { count }) => sum + count, 0) / 3)
  return `median ${one?.medianMs.toFixed(3)} ms one at a time; ${permits} permits a second by 8 × 32`
}
