/**
 * Servers of language models, each by its vendor's rules, for twenty minutes of virtual time: how much of the
 * tightest budget is used, and how many calls are refused. Beside them a client with its own retries, and
 * p-queue that knows the numbers.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LlmOptions } from 'autothrottle/llm'
import type { FakeClock } from 'autothrottle/testing'
import { drive, load, type ModelServer, type ModelServerOptions, type Work } from '../js/model-server.js'

const typed = (limits: object): LlmOptions => ({ limits: { '*': limits } })
const ANTHROPIC = { style: 'anthropic', rpm: 500, itpm: 200_000, otpm: 80_000 } as const
const OPENAI = { style: 'openai', rpm: 500, tpm: 200_000 } as const

/** The server, the settings and the calls. */
const CASES: readonly (readonly [string, ModelServerOptions, LlmOptions, Work])[] = [
  ['OpenAI, requests are scarce', { ...OPENAI, rpm: 30 }, {}, {}],
  ['Anthropic, input is scarce', { ...ANTHROPIC, rpm: 200 }, {}, {}],
  ['requests by the second', { ...ANTHROPIC, rpm: 120, isBySecond: true, otpm: 1e6, itpm: 4e6 }, {}, {}],
  [
    'Azure, tokens',
    { style: 'azure', rpm: 300, tpm: 300_000 },
    typed({ rpm: 300, tpm: 300_000 }),
    { max: 800 },
  ],
  ['Azure, requests', { style: 'azure', rpm: 60, tpm: 3e6 }, typed({ rpm: 60, tpm: 3e6 }), { max: 800 }],
  ['Mistral', { style: 'mistral', rpm: 300, tpm: 100_000 }, {}, {}],
  ['Groq, tokens', { style: 'groq', rpd: 14_400, tpm: 60_000 }, {}, {}],
  [
    'Groq, a day of requests with 40 left',
    { style: 'groq', rpd: 10_000, tpm: 600_000, dayLeft: 40 },
    {},
    { minutes: 60, most: 2000 },
  ],
  ['Gemini', { style: 'gemini', rpm: 60, itpm: 1e6 }, typed({ rpm: 60, itpm: 1e6 }), {}],
  ['OpenAI, another client takes 30 %', { ...OPENAI, other: 0.3 }, {}, {}],
  ['Anthropic, another client takes 30 %', { ...ANTHROPIC, other: 0.3 }, {}, {}],
  ['529 in bursts', { ...ANTHROPIC, overloaded: 0.02 }, {}, {}],
  ['streams that break off', { ...ANTHROPIC, itpm: 1e6, otpm: 20_000, cut: 0.1, errorEvents: 0.1 }, {}, {}],
  ['no usage in answers', { ...ANTHROPIC, itpm: 1e6, otpm: 20_000, isMute: true }, {}, {}],
  // The first calls cost a bucket until the share is learned.
  ['80 % of the input is cached', { ...ANTHROPIC, itpm: 100_000, cached: 0.8 }, {}, { minutes: 40 }],
  [
    '80 % of the input is cached, not streamed',
    { ...ANTHROPIC, itpm: 100_000, cached: 0.8 },
    {},
    { minutes: 40, stream: 0 },
  ],
  ['95 % of the input is cached', { ...ANTHROPIC, itpm: 100_000, cached: 0.95 }, {}, { minutes: 40 }],
  ['OpenAI halves its limits', OPENAI, {}, { at: { 10: (server) => server.scale(0.5) } }],
  ['Anthropic halves its limits', ANTHROPIC, {}, { at: { 10: (server) => server.scale(0.5) } }],
  ['OpenAI without headers', { ...OPENAI, isHeaderless: true }, typed({ rpm: 500, tpm: 200_000 }), {}],
  [
    'Anthropic without headers, long answers',
    { ...ANTHROPIC, otpm: 8000, isHeaderless: true },
    typed({ rpm: 500, itpm: 200_000, otpm: 8000 }),
    { max: 4096 },
  ],
]

for (const [name, server, options, work] of CASES)
  for (const seed of [1, 2])
    test(`${name}, seed ${seed}`, async (t) => {
      const seen = await load({ ...server, seed }, options, { ...work, seed: seed + 6 })
      const { share, refusedShare } = seen
      t.diagnostic(`${share.toFixed(3)} used, ${(100 * refusedShare).toFixed(2)} % refused`)
      assert.ok(share >= 0.97, `${share} of the tightest budget: ${JSON.stringify(seen)}`)
      assert.ok(refusedShare <= 0.005, `${refusedShare} refused: ${JSON.stringify(seen)}`)
    })

for (const seed of [1, 2, 3])
  test(`Anthropic refuses a steep rise, seed ${seed}: it costs calls of the first minutes, and none later`, async () => {
    // 50,000 tokens in the first minute, then twice the minute before: of 21 buckets it bears .94 so.
    const server = { ...ANTHROPIC, accelerates: 50_000, seed }
    const first = await load(server, {}, { seed: seed + 6 })
    assert.ok(first.share >= 0.92 && first.refusedShare <= 0.01, JSON.stringify(first))
    const hour = await load(server, {}, { seed: seed + 6, minutes: 60 })
    assert.ok(hour.share >= 0.97 && hour.refusedShare <= 0.005, JSON.stringify(hour))
  })

/** The SDKs' own: two more tries after .5 s and 1 s, or after what the server asks for. */
const retrying =
  (clock: FakeClock, fetch: ModelServer['fetch']) => async (url: string, init: RequestInit) => {
    for (let tries = 0; ; tries++) {
      const response = await fetch(url, init)
      if (response.status < 429 || tries === 2) return response
      const ms = Number(
        response.headers.get('retry-after-ms') ?? Number(response.headers.get('retry-after')) * 1000,
      )
      await new Promise<void>((resolve) => clock.setTimeout(resolve, ms || 500 * 2 ** tries))
    }
  }

/** Runs with the program's timers and date on the fake clock, for those who cannot be given one. */
async function queued(server: ModelServerOptions, perMinute: number, work: Work) {
  const { default: PQueue } = await import('p-queue')
  const real = { setTimeout, setInterval, clearTimeout, clearInterval, now: Date.now }
  try {
    return await drive(server, work, (clock, fetch) => {
      const globals = globalThis as unknown as Record<string, unknown>
      const every = (wake: () => void, ms: number) => {
        const timer = { handle: undefined as unknown }
        const again = () => {
          timer.handle = clock.setTimeout(again, ms)
          wake()
        }
        timer.handle = clock.setTimeout(again, ms)
        return timer
      }
      globals.setTimeout = (wake: () => void, ms: number) => clock.setTimeout(wake, ms)
      globals.clearTimeout = (handle: unknown) => clock.clearTimeout(handle)
      globals.setInterval = every
      globals.clearInterval = (timer?: { handle: unknown }) => timer && clock.clearTimeout(timer.handle)
      Date.now = () => clock.wallNow()
      const queue = new PQueue({ intervalCap: perMinute, interval: 60_000 })
      const send = retrying(clock, fetch)
      return (url, init) => queue.add(() => send(url, init)) as Promise<Response>
    })
  } finally {
    Object.assign(globalThis, real)
    Date.now = real.now
  }
}

for (const [name, server, mean] of [
  ['OpenAI', OPENAI, 3900],
  ['Anthropic', ANTHROPIC, 3900],
] as const)
  test(`${name}, beside the SDKs' own retries and p-queue that is told the numbers`, async (t) => {
    const ours = await load(server, {}, {})
    const sdk = await drive(server, {}, retrying)
    const tokens = 'tpm' in server ? server.tpm : server.itpm
    const queue = await queued(server, Math.floor(tokens / mean), {})
    const shown = ({ share, refusedShare, failed }: typeof ours) =>
      `${share.toFixed(3)} used, ${(100 * refusedShare).toFixed(1)} % refused, ${JSON.stringify(failed)}`
    t.diagnostic(`ours: ${shown(ours)}`)
    t.diagnostic(`retries alone: ${shown(sdk)}`)
    t.diagnostic(`p-queue: ${shown(queue)}`)
    assert.deepEqual(ours.failed, {})
    assert.ok(ours.refusedShare < queue.refusedShare && ours.refusedShare < sdk.refusedShare)
    assert.ok(ours.share >= 0.97)
  })
