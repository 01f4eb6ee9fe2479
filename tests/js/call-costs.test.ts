/**
 * The cost of a call, in numbers that do not depend on the machine: calls across the boundary, and bytes of a
 * request that waits. Times are in `npm run bench:calls`.
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mock, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createThrottle } from 'autothrottle'
import { Engine } from 'autothrottle/engine'

const free = { delay: 0, slotDelay: 0, jitter: false, concurrency: 1000 } as const
const page = 'https://a.example/page'

test('a call that does not wait crosses the boundary to enter and to settle, and no more', async () => {
  const fetch = async () => new Response('ok')
  const throttle = createThrottle({ maxInFlight: 1000, defaults: free, fetch })
  await throttle.run(page, () => 1)
  const ends = ['settle', 'settleQuietly'] as const
  const methods = ['sendOne', 'submit', 'poll', ...ends, 'stats', 'takeNotices', 'intern', 'watch'] as const
  const spies = methods.map((name) => mock.method(Engine.prototype, name as 'poll'))
  for (let call = 0; call < 10; call++) await throttle.run(page, () => 1)
  for (let call = 0; call < 10; call++) await throttle.fetch(page)
  const counts = Object.fromEntries(methods.map((name, index) => [name, spies[index]!.mock.callCount()]))
  mock.restoreAll()
  const none = { submit: 0, poll: 0, stats: 0, takeNotices: 0, intern: 0, watch: 0 }
  assert.deepEqual(counts, { sendOne: 20, settle: 0, settleQuietly: 20, ...none })
})

test('a request behind another that waits crosses the boundary to wait, and no more', async () => {
  const throttle = createThrottle({ maxInFlight: 1, defaults: free })
  const order: string[] = []
  const run = (name: string, priority = 0) =>
    throttle.run(page, async () => void order.push(name), { priority })
  const all = [run('first'), run('second')]
  const methods = ['sendOne', 'submit', 'poll', 'keepAlive'] as const
  const spies = methods.map((name) => mock.method(Engine.prototype, name as 'poll'))
  for (let call = 0; call < 10; call++) all.push(run('behind'))
  const counts = Object.fromEntries(methods.map((name, index) => [name, spies[index]!.mock.callCount()]))
  mock.restoreAll()
  assert.deepEqual(counts, { sendOne: 0, submit: 10, poll: 0, keepAlive: 0 })
  all.push(run('before', 1))
  await Promise.all(all)
  assert.deepEqual(order, ['first', 'before', 'second', ...Array(10).fill('behind')])
})

test('a request that waits takes less than 680 bytes of JavaScript, of acquire 800, of fetch 1100', () => {
  const program = `
    import { createThrottle } from 'autothrottle'
    const bytes = () => (gc(), gc(), process.memoryUsage().heapUsed)
    const never = () => new Promise(() => {})
    const size = async (call) => {
      const options = { maxInFlight: 1, defaults: ${JSON.stringify(free)}, warnThreshold: 1e6, fetch: never }
      const throttle = createThrottle(options)
      call(throttle)
      const before = bytes()
      const kept = Array.from({ length: 20_000 }, () => call(throttle))
      await new Promise((resolve) => setImmediate(resolve))
      return (bytes() - before) / kept.length
    }
    const run = await size((throttle) => throttle.run('${page}', never))
    const acquire = await size((throttle) => throttle.acquire('${page}'))
    const fetch = await size((throttle) => throttle.fetch('${page}'))
    console.log(JSON.stringify({ run, acquire, fetch }))
    process.exit()`
  const cwd = fileURLToPath(new URL('../..', import.meta.url))
  const { stdout } = spawnSync(process.execPath, ['--expose-gc', '--input-type=module', '-e', program], {
    cwd,
  })
  const { run, acquire, fetch } = JSON.parse(String(stdout))
  assert.ok(run < 680 && acquire < 800 && fetch < 1100, `run ${run}, acquire ${acquire}, fetch ${fetch}`)
})

test('the memory of WebAssembly grows by an eighth of itself: each growth is a reason to collect garbage', () => {
  const program = `
    const { Instance } = WebAssembly
    let memory
    WebAssembly.Instance = function (...args) {
      const made = new Instance(...args)
      memory ??= Object.values(made.exports).find((each) => each instanceof WebAssembly.Memory)
      return made
    }
    const { createThrottle } = await import('autothrottle')
    const throttle = createThrottle({ warnThreshold: 1e6, maxScopes: 1e6, defaults: { delay: 1000 } })
    let growths = 0
    let last = 0
    for (let index = 0; index < 60_000; index++) {
      void throttle.acquire({ scopes: 'host-' + (index % 30_000) })
      const size = memory.buffer.byteLength
      if (last > 2 ** 22 && size > last) growths++
      last = size
    }
    console.log(JSON.stringify({ growths, size: last }))
    process.exit()`
  const cwd = fileURLToPath(new URL('../..', import.meta.url))
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { cwd })
  const { growths, size } = JSON.parse(String(stdout))
  assert.ok(size > 2 ** 24, `${size} bytes: enough to see it`)
  assert.ok(growths < 50, `${growths} times; by the page it would be hundreds`)
})
