/** From import to the first task that was let through, CPU and time, by runtime. Processes take turns. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const title = 'Cold start'
export const says =
  'Milliseconds of CPU from before the import to the first task, least of nine processes. Deno and Bun where they are installed (`npm install --prefix tests/runtimes`).'

const here = (path) => fileURLToPath(new URL(path, import.meta.url))
const all = [
  ['Node', process.execPath, ['--input-type=module', '-e']],
  ['Node 24', here('../node_modules/node24/bin/node'), ['--input-type=module', '-e']],
  ['Deno', here('../../../tests/runtimes/node_modules/.bin/deno'), ['eval', '--unstable-bare-node-builtins']],
  ['Bun', here('../../../tests/runtimes/node_modules/.bin/bun'), ['-e']],
]
const runtimes = all.filter(([, command]) => existsSync(command))
export const columns = runtimes.map(([name]) => name)

// Ours is the file that all of these runtimes get: they take the condition `node` of the package's exports.
const programs = {
  autothrottle:
    "const { createThrottle } = await import('../../dist/node/index.js'); await createThrottle().run({ scopes: 'a' }, () => 1)",
  'p-limit': "const { default: limit } = await import('p-limit'); await limit(1)(() => 1)",
  'p-queue': "const { default: Queue } = await import('p-queue'); await new Queue().add(() => 1)",
  'p-throttle':
    "const { default: make } = await import('p-throttle'); await make({ limit: 1, interval: 1 })(() => 1)()",
  bottleneck:
    "const { default: Limiter } = await import('bottleneck'); await new Limiter().schedule(async () => 1)",
  limiter:
    "const { RateLimiter } = await import('limiter'); await new RateLimiter({ tokensPerInterval: 1, interval: 1 }).removeTokens(1)",
  'rate-limiter-flexible':
    "const { RateLimiterMemory, RateLimiterQueue } = await import('rate-limiter-flexible'); await new RateLimiterQueue(new RateLimiterMemory({ points: 1, duration: 1 })).removeTokens(1, 'a')",
  'async-sema': "const { Sema } = await import('async-sema'); await new Sema(1).acquire()",
  cockatiel: "const { bulkhead } = await import('cockatiel'); await bulkhead(1).execute(() => 1)",
  Effect:
    "const Effect = await import('effect/Effect'); const Semaphore = await import('effect/Semaphore'); await Effect.runPromise(Effect.runSync(Semaphore.make(1)).withPermits(1)(Effect.succeed(1)))",
}

export function run({ isQuick }) {
  const cpu = ([, command, flags], body) => {
    const program = `import process from 'node:process'; const before = process.cpuUsage(); ${body};
      const { user, system } = process.cpuUsage(before); console.log((user + system) / 1000); process.exit(0)`
    const { stdout } = spawnSync(command, [...flags, program], { cwd: here('..'), encoding: 'utf8' })
    return Number(stdout.trim().split('\n').at(-1) || Number.NaN)
  }
  const least = new Map()
  for (let round = 0; round < (isQuick ? 1 : 9); round++)
    for (const runtime of runtimes)
      for (const [name, body] of Object.entries(programs)) {
        const key = `${runtime[0]} ${name}`
        least.set(key, Math.min(least.get(key) ?? Number.POSITIVE_INFINITY, cpu(runtime, body)))
      }
  return Object.keys(programs).map((name) => [
    name,
    ...runtimes.map(([runtime]) => least.get(`${runtime} ${name}`).toFixed(1)),
  ])
}
