/** Real time: the gaps that a server sees, and the edge of a window. Each in a process of its own. */
import { inChild } from '../child.mjs'
import { able, contenders } from '../contenders.mjs'

export const title = 'Spacing in real time'
export const says =
  'Gaps between starts in milliseconds: least / median / 99th of a hundred. Early: gaps shorter than a millisecond below what was asked. Drift: time taken over time due. Edge: "10 per second", idle for 950 ms, then 30 at once: most starts in any 990 ms.'
export const columns = ['10 ms: gaps', 'early', 'drift', '100 ms: gaps', 'early', 'drift', 'edge']

export function run({ isQuick }) {
  const seconds = isQuick ? 1 : 10
  const names = [...new Set([...able('spaced'), ...able('capped')])]
  return names.map((name) => {
    const { spaced, capped } = contenders[name]
    const cells = [10, 100].flatMap((ms) => {
      if (!spaced) return ['–', '–', '–']
      const got = inChild(import.meta.url, [name, String(ms), String(seconds)])
      if (typeof got === 'string') return [got, '', '']
      return [got.gaps.map((gap) => gap.toFixed(1)).join(' / '), String(got.early), percent(got.drift)]
    })
    const edge = capped ? inChild(import.meta.url, [name, 'edge']) : '–'
    return [name, ...cells, String(edge)]
  })
}

const percent = (share) => `${(100 * share).toFixed(1)} %`

export async function child(name, what, seconds) {
  const starts = []
  const work = async () => void starts.push(performance.now())
  if (what === 'edge') {
    const limit = contenders[name].capped(10, 1000)
    await limit('host.example', work)
    await new Promise((resolve) => setTimeout(resolve, 950))
    await Promise.all(Array.from({ length: 30 }, () => limit('host.example', work)))
    return Math.max(...starts.map((at) => starts.filter((other) => other >= at && other < at + 990).length))
  }
  const ms = Number(what)
  const limit = contenders[name].spaced(ms)
  await limit('other.example', work)
  starts.length = 0
  const count = (Number(seconds) * 1000) / ms
  await Promise.all(Array.from({ length: count }, () => limit('host.example', work)))
  const gaps = starts.slice(1).map((at, index) => at - starts[index])
  const sorted = gaps.toSorted((a, b) => a - b)
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]
  return {
    gaps: [sorted[0], at(0.5), at(0.99)],
    early: gaps.filter((gap) => gap < ms - 1).length,
    drift: (starts.at(-1) - starts[0]) / (ms * (count - 1)) - 1,
  }
}
