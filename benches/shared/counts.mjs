/** What a server's log says. */

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
