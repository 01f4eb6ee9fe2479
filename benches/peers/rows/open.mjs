/** A task through an open limiter: none waits. Rounds take turns; the least of each counts. */
import { able, contenders } from '../contenders.mjs'

export const title = 'A task through an open limiter'
export const says =
  'CPU per task, one after another; 100,000 keys in turn. Bytes: heap per task, before any collection. bottleneck waits for a timer at each task, so it has as many keys as fit in 10 s.'
export const columns = ['one key, ns', '× p-limit', '100,000 keys, ns', '× p-limit', 'bytes a task']

const KEYS = Array.from({ length: 100_000 }, (_, index) => `host-${index}.example`)
const work = async () => 1

/** Nanoseconds of CPU a call. One that waits for a timer each time (bottleneck) has as many calls as fit. */
async function cpu(call, count, limitMs) {
  const before = process.cpuUsage()
  const end = performance.now() + limitMs
  let done = 0
  while (done < count && (done % 64 !== 0 || performance.now() < end)) await call(done++)
  const { user, system } = process.cpuUsage(before)
  return { nanos: ((user + system) * 1000) / done, done }
}

export async function run({ isQuick }) {
  const rounds = isQuick ? 2 : 7
  const names = able('open')
  const least = {}
  const bytes = {}
  const limits = Object.fromEntries(names.map((name) => [name, contenders[name].open()]))
  for (let round = 0; round < rounds; round++)
    for (const name of names) {
      const heap = process.memoryUsage().heapUsed
      const { nanos, done } = await cpu(() => limits[name]('host.example', work), 20_000, 2000)
      const grown = (process.memoryUsage().heapUsed - heap) / done
      // A collection in between only makes it less.
      if (grown > 0) bytes[name] = Math.max(bytes[name] ?? 0, grown)
      least[name] = Math.min(least[name] ?? Number.POSITIVE_INFINITY, nanos)
    }
  const many = {}
  const keys = {}
  // The first round also makes each key's limiter, so it never is the least.
  for (let round = 0; round < (isQuick ? 1 : 3); round++)
    for (const name of names) {
      const count = keys[name] ?? KEYS.length
      const { nanos, done } = await cpu((index) => limits[name](KEYS[index], work), count, 10_000)
      keys[name] ??= done
      many[name] = Math.min(many[name] ?? Number.POSITIVE_INFINITY, nanos)
    }
  const beside = (of, name) => (of[name] / of['p-limit']).toFixed(2)
  return names.map((name) => [
    name,
    least[name].toFixed(0),
    beside(least, name),
    many[name].toFixed(0),
    beside(many, name),
    bytes[name]?.toFixed(0) ?? '',
  ])
}
