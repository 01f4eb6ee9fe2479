/** The simulator through WebAssembly: the figures of the native tests, and errors that name their path. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ConfigError } from '../../js/index.js'
import { type SimulationOptions, simulate } from '../../js/simulate.js'

const golden = readFileSync(new URL('../golden/simulate.md', import.meta.url), 'utf8')
const rampup = golden.slice(golden.indexOf('\n## rampup'))

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
  assert.equal(statuses.filter((status) => status === 429).length, summary.refused)
  assert.ok(trace.sent.every((at, index) => index === 0 || at >= trace.sent[index - 1]!))
  assert.deepEqual(simulate(options).summary, summary, 'twice the same')
})

test('a load of so many requests ends, and clients are told apart', () => {
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

test('what makes no sense is a ConfigError with every path', () => {
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
