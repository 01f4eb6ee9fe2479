/**
 * The CPU of tasks that all wait at once, beside p-queue: `npm run bench:waiting`. A million by default
 * (`-- --tasks 100000`), each handed in, run and over.
 *
 * Four shapes: one scope or a thousand, that ten slots or a rate keeps waiting. Each has a process of its
 * own, which takes about a gigabyte, and half a minute on a quiet machine.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { createThrottle } from 'autothrottle'
import PQueue from 'p-queue'

const SCOPES = 1000
/** Microseconds a task, on a quiet machine. */
const AIM = 9
const WINDOW_MS = 100

const [shape, contender] = process.argv.slice(2)
const option = process.argv.indexOf('--tasks')
const tasks = option < 0 ? 1_000_000 : Number(process.argv[option + 1])
/** The tasks that a rate lets through in a window, all scopes together. */
const LIMIT = tasks / 10

/** Whether a thousand scopes share the tasks, and whether a rate keeps them. */
const SHAPES = {
  'one scope, ten slots': [1, false],
  'a thousand scopes, ten slots each': [SCOPES, false],
  'one scope, a rate': [1, true],
  'a thousand scopes, a rate each': [SCOPES, true],
}

const CONTENDERS = {
  'p-queue'(scopes, isRated) {
    const pace = isRated ? { interval: WINDOW_MS, intervalCap: LIMIT / scopes } : { concurrency: 10 }
    const queues = Array.from({ length: scopes }, () => new PQueue(pace))
    return (index, work) => queues[index % scopes].add(work)
  },
  autothrottle(scopes, isRated) {
    const rate = { limit: LIMIT / scopes, window: WINDOW_MS, burst: LIMIT / scopes }
    const pace = isRated ? { rate } : { delay: 0, slotDelay: 0, concurrency: 10 }
    const throttle = createThrottle({
      maxInFlight: 1e6,
      warnThreshold: 1e8,
      defaults: { jitter: isRated ? 0 : false, ...pace },
    })
    // A warning is no cost of a task.
    throttle.addEventListener('warning', () => {})
    const names = Array.from({ length: scopes }, (_, scope) => ({ scopes: `host-${scope}.example` }))
    return (index, work) => throttle.run(names[index % scopes], work)
  },
}

if (shape in SHAPES) {
  const add = CONTENDERS[contender](...SHAPES[shape])
  const work = async () => 1
  const before = process.cpuUsage()
  let left = tasks
  await new Promise((resolve) => {
    const over = () => --left === 0 && resolve()
    for (let index = 0; index < tasks; index++) add(index, work).then(over)
  })
  const { user, system } = process.cpuUsage(before)
  console.log((user + system) / tasks)
  process.exit(0)
}

console.log(`${tasks} tasks that wait at once: µs of CPU each`)
for (const name of Object.keys(SHAPES)) {
  const words = Object.keys(CONTENDERS).map((contender) => {
    const args = ['--max-old-space-size=6000', fileURLToPath(import.meta.url), name, contender]
    const { stdout, status } = spawnSync(process.execPath, [...args, '--tasks', String(tasks)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    if (status !== 0) throw new Error(`${name}, ${contender}: exit code ${status}`)
    return `${contender} ${Number(stdout).toFixed(1).padStart(5)}`
  })
  console.log(`  ${name.padEnd(34)} ${words.join('   ')}   aim ≤ ${AIM}`)
}
