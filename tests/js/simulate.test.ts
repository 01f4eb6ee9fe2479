/** The simulator through WebAssembly: the figures of the native tests, and errors that name their path. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ConfigError } from '../../js/index.js'
import {
  createSimulation,
  playServer,
  replaySimulation,
  type SimulationOptions,
  type SimulationRecording,
  simulate,
} from '../../js/simulate.js'

const rampup = readFileSync(new URL('../../tools/bench/rampup.md', import.meta.url), 'utf8')

test('the same scenario gives the figures of the native table', () => {
  const server = { model: 'nginx', rate: 10, jitter: 0.5 } as const
  const network = { latency: 5, jitter: 0.5, timerLag: 0.3, timerJitter: 1, slow: 0.001, slowBy: 250 }
  const throttle = { defaults: { rampup: true } }
  const options = { server, network, duration: 900_000, seed: 11, throttle }
  const { summary, trace } = simulate(options)
  const { utilisation, shareRefused, refusalsPerMinute, latencyMs } = summary
  const row = `| nginx 10/s | ${utilisation.toFixed(3)} | ${(shareRefused * 100).toFixed(2)} % | ${refusalsPerMinute.toFixed(2)} |`
  assert.ok(rampup.includes(row), row)
  assert.ok(latencyMs >= 5 && latencyMs < 8, String(latencyMs))
  assert.equal(trace.sent.length, trace.status.length)
  const statuses = [...trace.status]
  assert.equal(statuses.filter((status) => status === 503).length, summary.refused, "nginx's own status")
  assert.ok(trace.sent.every((at, index) => index === 0 || at >= trace.sent[index - 1]!))
  assert.deepEqual(simulate(options).summary, summary, 'twice the same')
})

test('a load of a number of requests ends, and clients are told apart', () => {
  const { summary, trace } = simulate({
    server: { model: 'queue', workers: 2, service: 100 },
    load: { requests: 30, rate: 10 },
    clients: 3,
    throttle: { defaults: { delay: 0, slotDelay: 0 } },
  })
  assert.equal(summary.served, 90)
  assert.equal(summary.reachedMs, null)
  assert.deepEqual([...new Set(trace.client)], [0, 1, 2])
  assert.equal(summary.fairness, 1)
})

test('options that make no sense are a ConfigError with every path', () => {
  const options = {
    server: { model: 'token-bucket', ratee: 5 },
    netwrk: {},
    throttle: { defaults: { delay: -1 } },
  } as unknown as SimulationOptions
  assert.throws(
    () => simulate(options),
    (error) => {
      assert.ok(error instanceof ConfigError)
      assert.deepEqual(error.problems.map(({ path }) => path).sort(), [
        'netwrk',
        'server.rate',
        'server.ratee',
        'throttle.defaults.delay',
      ])
      return true
    },
  )
  assert.throws(() => simulate(undefined as unknown as SimulationOptions), ConfigError)
  assert.throws(
    () => simulate({ server: { model: 'abacus' } } as unknown as SimulationOptions),
    /server\.model/,
  )
})

const LIVE: SimulationOptions = {
  server: { model: 'sliding-window', limit: 20, window: 10_000, says: 'retry-after' },
  servers: { bad: { model: 'token-bucket', rate: 1, failing: 0.3 } },
  network: { latency: 80, jitter: 40, timerJitter: 1 },
  load: { rate: 8, costs: [1, 3] },
  throttle: { rate: { limit: 4, burst: 3 }, quota: { limit: 300, window: 60_000 } },
  duration: 90_000,
}

test('in any steps it is what `simulate` gives, and each request is told once', () => {
  const whole = simulate(LIVE)
  for (const step of [16.7, 1000, 1e9]) {
    const simulation = createSimulation(LIVE)
    const sent: number[] = []
    while (!simulation.isDone) {
      simulation.advance(step)
      for (const event of simulation.events()) if (event.kind === 'send') sent.push(event.at)
    }
    assert.equal(simulation.now, 90_000)
    assert.deepEqual(simulation.summary(), whole.summary)
    assert.deepEqual(simulation.trace(), whole.trace)
    assert.deepEqual(sent, [...whole.trace.sent])
  }
})

test('changes on the way are in the recording, which replays to the last bit', () => {
  const { duration: _, ...endless } = LIVE
  const simulation = createSimulation(endless)
  simulation.advance(10_000)
  simulation.configure({ rate: { limit: 9, burst: 3 } }, 'bad')
  simulation.advance(5000.5)
  simulation.configureServer({ limit: 5 })
  simulation.configureNetwork({ latency: 500 })
  simulation.advance(20_000)
  const { next, scopes, now } = simulation.state()
  assert.equal(now, 35_000.5)
  assert.equal(scopes.server?.limit, 0.5)
  assert.equal(scopes.bad?.limit, 1)
  assert.ok(next?.reason && (next.at === undefined || next.at > now))
  const recording = JSON.parse(JSON.stringify(simulation.recording())) as SimulationRecording
  assert.deepEqual(
    recording.changes.map(({ at }) => at),
    [10_000, 15_000.5, 15_000.5],
  )
  const again = replaySimulation(recording)
  assert.deepEqual(again.summary(), simulation.summary())
  assert.deepEqual(again.trace(), simulation.trace())
  assert.deepEqual(again.state(), simulation.state())
  assert.deepEqual(again.recording(), recording)
})

test('a wrong change on the way changes no setting and names its path', () => {
  const simulation = createSimulation(LIVE)
  const wrong = (work: () => unknown, path: string) =>
    assert.throws(work, (error) => error instanceof ConfigError && error.path === path)
  wrong(() => simulation.configure({ delay: -1 }), 'delay')
  wrong(() => simulation.configure({}, 'good'), 'scope')
  wrong(() => simulation.configureServer({ limit: 0 }), 'server.limit')
  wrong(() => simulation.configureNetwork({ latency: -1 }), 'network.latency')
  wrong(() => simulation.advance(Number.NaN), 'ms')
  wrong(() => createSimulation({ ...LIVE, load: { costs: [301] } }), 'load.costs')
  wrong(() => createSimulation({ ...LIVE, servers: { server: LIVE.server } }), 'servers.server')
  assert.throws(() => simulation.state(7), RangeError)
  assert.deepEqual(simulation.recording().changes, [])
})

test('a server alone answers as in a simulation', () => {
  const server = playServer({ model: 'token-bucket', rate: 1, says: 'retry-after' })
  assert.deepEqual(server.answer(0), { status: 200, afterMs: 0, headers: {} })
  const refused = server.answer(100)
  assert.equal(refused.status, 429)
  assert.deepEqual(
    Object.entries(refused.headers).map(([name, value]) => [name.toLowerCase(), value]),
    [['retry-after', '1']],
  )
  assert.equal(server.answer(1200).status, 200)
  assert.equal(server.limit(0), 1)
  assert.throws(() => playServer({ model: 'nginx' }), ConfigError)
})

test('the code in docs/simulate.md runs, and says what its comments say', () => {
  const page = readFileSync(new URL('../../docs/simulate.md', import.meta.url), 'utf8')
  const blocks = [...page.matchAll(/```ts\n(.*?)```/gs)].map(([, block]) => block!)
  assert.equal(blocks.length, 3)
  const seen: unknown[] = []
  const body = blocks[2]!
    .replaceAll(/^import .*$/gm, '')
    .replaceAll('.next //', '.next, seen.push(simulation.state().next) //')
  new Function('createSimulation', 'replaySimulation', 'seen', body)(createSimulation, replaySimulation, seen)
  assert.deepEqual(seen, [{ at: 30_000, reason: 'rate', scope: 'server' }])
  const [summary, trace] = new Function(
    'simulate',
    `${blocks[0]!.replace(/^import.*$/m, '')}; return [summary, trace]`,
  )(simulate)
  assert.ok(summary.utilisation > 0.8 && trace.sent.length > 1000)
  const budgets = new Function('simulate', `${blocks[1]}; return summary`)(simulate)
  assert.deepEqual([budgets.refused, budgets.served], [0, 5000 + 60 * 30])
})
