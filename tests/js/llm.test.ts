/** Budgets of language models: what a call is charged, what is learned, and what an SDK sees. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigError, createThrottle, type Throttle } from 'autothrottle'
import { llmFetch, llmMiddleware } from 'autothrottle/llm'
import { FakeClock } from 'autothrottle/testing'
import { limitsOf, refusalOf } from '../../js/llm/answer.js'
import { askedOf } from '../../js/llm/request.js'
import { load } from './model-server.js'
import { after, throttles } from './shared/world.js'

const CHAT = 'https://api.openai.com/v1/chat/completions'
const MESSAGES = 'https://api.anthropic.com/v1/messages'
const body = (more: object = {}) =>
  JSON.stringify({
    model: 'm-1',
    max_tokens: 100,
    messages: [{ role: 'user', content: 'a'.repeat(400) }],
    ...more,
  })
const post = (text = body(), headers: Record<string, string> = {}) => ({
  method: 'POST',
  body: text,
  headers,
})

function setUp(answers: ((url: string, init: RequestInit) => Response | Promise<Response>)[], options = {}) {
  const clock = new FakeClock()
  const calls: { url: string; init: RequestInit; at: number }[] = []
  const warned: [string, string][] = []
  const fetch = async (url: string | URL | Request, init: RequestInit = {}) => {
    calls.push({ url: String(url), init, at: clock.now() })
    const answer = answers[Math.min(calls.length, answers.length) - 1]!
    return answer(String(url), init)
  }
  const throttle = createThrottle({ clock, fetch, maxInFlight: 32, jitter: false, ...options })
  throttle.addEventListener('warning', ({ code, message }) => warned.push([code, message]))
  return { clock, calls, throttle, warned }
}

/** The result of a promise while the clock runs. */
async function within<T>(clock: FakeClock, promise: Promise<T>, ms = 600_000): Promise<T> {
  promise.catch(() => {})
  await clock.advance(ms)
  return promise
}

const json = (value: object, headers: Record<string, string> = {}, status = 200) =>
  new Response(JSON.stringify(value), { status, headers: { 'content-type': 'application/json', ...headers } })
const used = (input: number, output: number) =>
  json({ usage: { input_tokens: input, output_tokens: output } })

/** The quick ones; the others are in `tests/slow/llm.test.ts`. */
for (const [name, server, client, work] of [
  [
    'Anthropic, output is scarce',
    { style: 'anthropic', rpm: 200, itpm: 400_000, otpm: 8000 },
    {},
    { max: 4096 },
  ],
  [
    'Anthropic, no headers, not streamed',
    { style: 'anthropic', rpm: 500, itpm: 400_000, otpm: 8000, isHeaderless: true },
    { limits: { 'm-*': { rpm: 500, itpm: 400_000, otpm: 8000 } } },
    { max: 4096, stream: 0 },
  ],
] as const)
  test(`${name}: at least .97 of the tightest budget, at most .5 % refused`, async () => {
    const { share, refusedShare } = await load(server, client, { minutes: 20, ...work })
    assert.ok(share >= 0.97 && refusedShare <= 0.005, `${share} used, ${refusedShare} refused`)
  })

test('without limits that are known, calls leave one at a time until the first answer', async () => {
  const { clock, calls, throttle } = setUp([
    () => new Promise((resolve) => clock.setTimeout(() => resolve(used(100, 10)), 1000)),
  ])
  const llm = llmFetch(throttle)
  const all = [1, 2, 3].map(() => llm(CHAT, post()))
  await clock.advance(999)
  assert.equal(calls.length, 1)
  await clock.advance(1)
  assert.equal(calls.length, 3)
  await within(clock, Promise.all(all))
})

test('limits are learned from headers, per model and key; GET /models spends none of them', async () => {
  const headers = {
    'x-ratelimit-limit-tokens': '1000',
    'x-ratelimit-remaining-tokens': '0',
    'x-ratelimit-reset-tokens': '1m0s',
  }
  const { clock, calls, throttle } = setUp([() => json({}, headers)])
  const llm = llmFetch(throttle)
  const keyed = (key: string, model = 'm-1') =>
    llm(CHAT, post(body({ model }), { authorization: `Bearer ${key}` }))
  await within(clock, keyed('one'), 0)
  const held = keyed('one')
  await within(
    clock,
    Promise.all([keyed('two'), keyed('one', 'm-2'), llm('https://api.openai.com/v1/models')]),
    0,
  )
  assert.equal(calls.length, 4)
  await clock.advance(5000)
  assert.equal(calls.length, 4, 'none left')
  await within(clock, held)
  const names = Object.keys(throttle.stats().scopes)
  assert.ok(
    names.some((name) => /^llm:api\.openai\.com\/[0-9a-f]{8}\/m-1#tokens$/.test(name)),
    names.join(),
  )
  assert.ok(!names.some((name) => name.includes('Bearer') || name.includes('one')))
})

test('a bucket of a day is known by the time until it is full; a minute where too little is missing', () => {
  const told = (limit: number, left: number, reset: string) =>
    limitsOf(
      new Headers({
        'x-ratelimit-limit-requests': String(limit),
        'x-ratelimit-remaining-requests': String(left),
        'x-ratelimit-reset-requests': reset,
      }),
      'openai',
    )
  assert.deepEqual(told(10_000, 9999, '8.64s'), [{ kind: 'day', limit: 10_000, left: 9999, per: 86_400_000 }])
  assert.deepEqual(told(500, 499, '120ms'), [{ kind: 'requests', limit: 500, left: 499, per: 60_000 }])
  assert.deepEqual(told(500, 500, '0s'), [{ kind: 'requests', limit: 500, left: 500, per: 60_000 }])
  assert.deepEqual(told(99_999_999_999_999, 1, '1m0s'), [], 'no limit is so large')
  const anthropic = new Headers({
    date: 'Thu, 01 Jan 2026 00:00:00 GMT',
    'anthropic-ratelimit-input-tokens-limit': '50000',
    'anthropic-ratelimit-input-tokens-remaining': '40000',
    'anthropic-ratelimit-input-tokens-reset': '2026-01-01T00:00:12Z',
    'anthropic-ratelimit-tokens-limit': '1',
    'anthropic-ratelimit-tokens-remaining': '0',
  })
  const input = [{ kind: 'input', limit: 50_000, left: 40_000, per: 60_000 }]
  assert.deepEqual(limitsOf(anthropic, 'anthropic'), input)
  const mistral = new Headers({
    'x-ratelimit-limit-tokens-minute': '9',
    'x-ratelimit-remaining-tokens-minute': '-1',
  })
  assert.deepEqual(limitsOf(mistral, 'mistral'), [{ kind: 'tokens', limit: 9, left: undefined, per: 60_000 }])
})

test('typed limits hold where they are lower, and the headers where those are', async () => {
  for (const [rpm, most] of [
    [6, 6],
    [600, 60],
  ] as const) {
    let left = 60
    const answer = async () => {
      const headers = { 'x-ratelimit-limit-requests': '60', 'x-ratelimit-remaining-requests': `${--left}` }
      await new Promise<void>((resolve) => clock.setTimeout(resolve, 20))
      return json({}, headers)
    }
    const { clock, calls, throttle } = setUp([answer], { maxInFlight: 100 })
    const llm = llmFetch(throttle, { limits: { 'm-?': { rpm } }, headroom: 1 })
    await within(clock, llm(CHAT, post()), 30)
    const all = Array.from({ length: 80 }, () => llm(CHAT, post()))
    await clock.advance(30)
    assert.ok(calls.length <= most + 1 && calls.length >= most * 0.7, `${calls.length} of ${most}`)
    left = 1000
    await within(clock, Promise.all(all), 3_600_000)
  }
})

test('Anthropic is charged what was written, OpenAI what it reserved', async () => {
  for (const [url, kind, left] of [
    [MESSAGES, 'tokens', 1000 - 120],
    [CHAT, 'tokens', 1000 - 500],
  ] as const) {
    const { clock, throttle } = setUp([() => used(100, 20)])
    const llm = llmFetch(throttle, { limits: { '*': { tpm: 1000 } }, account: 'a', headroom: 1 })
    await (await within(clock, llm(url, post(body({ max_tokens: 500 }))), 0)).text()
    const scope = `llm:${new URL(url).host}/a/m-1#${kind}`
    const { at } = throttle.peek({ scopes: scope }, { cost: 1000 })
    assert.equal(Math.round(1000 - ((at - clock.now()) * 1000) / 60_000), left, url)
  }
})

test('a refusal is sent again in time, a POST too; the last one tells the SDK to leave it', async () => {
  const refused = () =>
    json({ error: { message: 'slow down', type: 'tokens' } }, { 'retry-after-ms': '1500' }, 429)
  const { clock, calls, throttle } = setUp([refused, () => used(1, 1)])
  const answer = await within(clock, llmFetch(throttle)(CHAT, post()))
  assert.deepEqual([answer.status, calls.length, calls[1]!.at], [200, 2, 1500])
  assert.equal(calls[1]!.init.body, body())
  const hard = setUp([refused])
  const llm = llmFetch(hard.throttle, { retry: { limit: 2 } })
  const last = await within(hard.clock, llm(CHAT, post()))
  assert.deepEqual([last.status, last.headers.get('x-should-retry'), hard.calls.length], [429, 'false', 3])
  assert.equal(((await last.json()) as { error: { message: string } }).error.message, 'slow down')
  assert.deepEqual(llm.stats(), { sent: 3, refused: 3, estimated: 0, cut: 0, uncounted: 0 })
})

test('a refused call goes before calls of its own priority that wait', async () => {
  const refused = () => json({ error: { message: 'slow down' } }, { 'retry-after-ms': '1500' }, 429)
  const { clock, calls, throttle } = setUp([refused, () => used(1, 1)], { maxInFlight: 1 })
  const llm = llmFetch(throttle)
  const call = (name: string) =>
    llm(CHAT, { ...post(body({ name })), throttle: { priority: 5 } } as RequestInit)
  await within(clock, Promise.all(['a', 'b'].map(call)))
  const sent = calls.map(({ init }) => JSON.parse(init.body as string).name)
  assert.deepEqual(sent, ['a', 'a', 'b'])
})

test('a refusal that no wait helps is not sent again, and holds no other call', async () => {
  for (const [url, error, headers] of [
    [CHAT, { error: { code: 'insufficient_quota', type: 'insufficient_quota' } }, { 'retry-after': '5' }],
    [CHAT, { error: { message: 'Request too large for m-1: Limit 10, Requested 90', type: 'tokens' } }, {}],
    [MESSAGES, { type: 'error', error: { type: 'rate_limit_error', message: 'spend cap' } }, {}],
  ] as const) {
    const { clock, calls, throttle } = setUp([() => json(error, { ...headers }, 429), () => used(1, 1)])
    const llm = llmFetch(throttle)
    const answer = await within(clock, llm(url, post()), 0)
    assert.deepEqual([answer.status, answer.headers.get('x-should-retry')], [429, 'false'])
    assert.equal((await within(clock, llm(url, post()), 0)).status, 200)
    assert.equal(calls.length, 2)
  }
})

test('the number of a refused request names no budget', () => {
  const said = (message: string) => JSON.stringify({ error: { message }, request_id: 'req_1' })
  const kindOf = (text: string) => refusalOf(new Response('', { status: 429 }), text, true).kind
  const steep = 'would exceed your maximum usage increase rate for input tokens per minute'
  assert.deepEqual([kindOf(said(steep)), kindOf(said('50 requests'))], [undefined, 'requests'])
})

test('errors of ours are answers that no SDK sends again; in middleware they are thrown', async () => {
  const { clock, calls, throttle } = setUp([() => used(1, 1)])
  const llm = llmFetch(throttle, { limits: { '*': { tpm: 50 } } })
  const answer = await within(clock, llm(CHAT, post()), 0)
  assert.deepEqual(
    [
      answer.status,
      answer.headers.get('x-should-retry'),
      answer.headers.get('x-autothrottle-error'),
      calls.length,
    ],
    [429, 'false', 'ERR_COST_EXCEEDS_QUOTA', 0],
  )
  const { error } = (await answer.json()) as { error: { message: string; code: string } }
  assert.match(error.message, /costs more than .*#tokens/)
  throttle.close()
  const middleware = llmMiddleware(throttle)
  const sent = middleware({ url: MESSAGES, ...post() }, async () => used(1, 1))
  await assert.rejects(sent, { code: 'ERR_CLOSED' })
  const aborted = llmFetch(createThrottle({ clock }))(CHAT, {
    ...post(),
    signal: AbortSignal.abort(new Error('mine')),
  })
  await assert.rejects(aborted, /mine/)
})

test('middleware sends what it is given, and hears the answer', async () => {
  const { clock, throttle } = setUp([])
  const middleware = llmMiddleware(throttle, { account: 'a', limits: { '*': { itpm: 1000 } }, headroom: 1 })
  const seen: RequestInit[] = []
  const request = { url: MESSAGES, ...post(), extra: 7 }
  const answer = await within(
    clock,
    middleware(request, async (given) => {
      seen.push(given)
      return used(900, 5)
    }),
    0,
  )
  assert.equal((await answer.json()).usage.input_tokens, 900)
  assert.equal((seen[0] as typeof request).extra, 7)
  assert.equal(
    throttle.peek({ scopes: 'llm:api.anthropic.com/a/m-1#input' }, { cost: 200 }).at,
    clock.now() + 6000,
  )
})

/** A stream that writes when it is asked, and what it saw. */
function writer(parts: string[], end: 'close' | 'error' | 'open' = 'close') {
  const seen = { pulled: 0, cancelled: undefined as unknown }
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const part = parts[seen.pulled++]
        if (part !== undefined) controller.enqueue(new TextEncoder().encode(part))
        else if (end === 'close') controller.close()
        else if (end === 'error') controller.error(new TypeError('terminated'))
      },
      cancel: (reason) => {
        seen.cancelled = reason
      },
    },
    { highWaterMark: 0 },
  )
  return { seen, response: new Response(stream, { headers: { 'content-type': 'text/event-stream' } }) }
}
const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`
const START = event({ type: 'message_start', message: { usage: { input_tokens: 70, output_tokens: 1 } } })
const text = (length: number) =>
  event({ type: 'content_block_delta', delta: { type: 'text_delta', text: 'x'.repeat(length) } })
const OTPM = { limits: { '*': { otpm: 1000, itpm: 1000 } }, account: 'a', headroom: 1 } as const

/** The spent part of a budget. */
function gone({ throttle, clock }: ReturnType<typeof setUp>, kind: string): number {
  const scope = `llm:api.anthropic.com/a/m-1#${kind}`
  return Math.round(((throttle.peek({ scopes: scope }, { cost: 1000 }).at - clock.now()) * 1000) / 60_000)
}

test('a stream passes as it is pulled; its usage comes from the events, wherever they are cut', async () => {
  const events =
    START +
    text(400) +
    event({ type: 'message_delta', usage: { output_tokens: 150 } }) +
    event({ type: 'message_stop' })
  for (const size of [1, 7, 64, 10_000]) {
    const parts = events.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
    const { seen, response } = writer(parts)
    const made = setUp([() => response])
    const llm = llmFetch(made.throttle, OTPM)
    const answer = await within(made.clock, llm(MESSAGES, post(body({ stream: true }))), 0)
    assert.equal(seen.pulled, 0, 'no part is taken before the reader asks')
    assert.equal(await answer.text(), events)
    assert.deepEqual([gone(made, 'input'), gone(made, 'output')], [70, 150])
    assert.deepEqual([llm.stats().cut, llm.stats().estimated], [0, 0])
  }
})

for (const how of ['cancel', 'error', 'error event'] as const)
  test(`a stream that breaks off (${how}): what was written is charged, and said`, async () => {
    const failed =
      how === 'error event' ? [event({ type: 'error', error: { type: 'overloaded_error' } })] : []
    const { seen, response } = writer(
      [START, text(400), text(400), ...failed],
      how === 'error' ? 'error' : 'close',
    )
    const made = setUp([() => response])
    const llm = llmFetch(made.throttle, OTPM)
    const answer = await within(made.clock, llm(MESSAGES, post(body({ stream: true, max_tokens: 900 }))), 0)
    const reader = answer.body!.getReader()
    for (let part = 0; part < 3; part++) await reader.read()
    if (how === 'cancel') await reader.cancel('enough')
    else if (how === 'error') await assert.rejects(reader.read(), /terminated/)
    else while (!(await reader.read()).done);
    assert.equal(seen.cancelled, how === 'cancel' ? 'enough' : undefined)
    assert.deepEqual([gone(made, 'input'), gone(made, 'output')], [70, 200])
    assert.deepEqual(
      made.warned.map(([code]) => code),
      how === 'cancel' ? [] : ['stream-cut'],
    )
    assert.equal(llm.stats().cut, 1)
  })

test("Gemini's streams name no end: one that is read is whole, and one that tells an error is cut", async () => {
  const url = 'https://generativelanguage.googleapis.com/v1beta/models/m-1:streamGenerateContent'
  for (const [told, cut] of [
    [[], 0],
    [[event({ error: { code: 503 } })], 1],
  ] as const) {
    const part = event({ candidates: [{ content: { parts: [{ text: 'x' }] } }] })
    const made = setUp([() => writer([part, ...told]).response])
    const llm = llmFetch(made.throttle)
    await (await within(made.clock, llm(url, post()), 0)).text()
    assert.equal(llm.stats().cut, cut)
    assert.deepEqual(
      made.warned.map(([code]) => code),
      cut ? ['stream-cut'] : [],
    )
  }
})

test('an answer without usage: the estimate stands, and is said once', async () => {
  const stream = () =>
    writer([event({ choices: [{ delta: { content: 'x'.repeat(40) } }] }), 'data: [DONE]\n\n']).response
  const made = setUp([stream])
  const llm = llmFetch(made.throttle, { ...OTPM, vendor: 'mistral', limits: { '*': { tpm: 1000 } } })
  for (let call = 0; call < 2; call++)
    await (
      await within(
        made.clock,
        llm('https://api.mistral.ai/v1/chat/completions', post(body({ stream: true }))),
        0,
      )
    ).text()
  assert.deepEqual(
    made.warned.map(([code]) => code),
    ['usage-estimated'],
  )
  assert.equal(llm.stats().estimated, 2)
})

test('a request to a model is read: model, bound, text; pictures by their pixels, lists of tokens as they are', () => {
  const asked = (path: string, json: object, count?: (text: string) => number) =>
    askedOf(new URL(`https://api.openai.com${path}`), 'POST', JSON.stringify(json), undefined, count)
  const chat = asked('/v1/chat/completions', { model: 'm', n: 3, max_completion_tokens: 50, messages: [] })
  assert.deepEqual([chat.model, chat.bound, chat.vendor], ['m', 150, 'openai'])
  assert.equal(asked('/v1/responses', { prompt: { id: 'p' } }).model, '*')
  assert.equal(asked('/v1/embeddings', { model: 'e', input: [1, 2, 3] }).tokens, 3)
  assert.equal(asked('/v1/messages', { model: 'm' }).vendor, 'anthropic')
  assert.equal(asked('/v1/messages/batches', { requests: [] }).model, undefined)
  assert.equal(asked('/openai/deployments/mine/chat/completions', {}).model, 'mine')
  const { bytes, characters } = asked('/v1/chat/completions', { messages: [{ content: 'žluť' }] })
  assert.deepEqual([bytes, characters], [6, 4])
  const png = Buffer.from(`\x89PNG\r\n\x1a\n0000IHDR\0\0\x03\0\0\0\x02\0`, 'latin1').toString('base64')
  const picture = (url: string) => ({ messages: [{ content: [{ type: 'image_url', image_url: { url } }] }] })
  assert.equal(
    asked('/v1/chat/completions', picture(`data:image/png;base64,${png}`)).tokens,
    Math.ceil((768 * 512) / 750),
  )
  assert.equal(asked('/v1/chat/completions', picture('https://a.example/x.png')).tokens, 1600)
  const source = {
    type: 'base64',
    media_type: 'image/gif',
    data: Buffer.from('GIF89a\x64\0\x64\0', 'latin1').toString('base64'),
  }
  assert.equal(
    asked('/v1/messages', { content: [{ type: 'image', source }] }).tokens,
    Math.ceil(10_000 / 750),
  )
  const jpeg = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0, 0xff, 0xc0, 0, 17, 8, 1, 0, 2, 0]).toString(
    'base64',
  )
  assert.equal(
    asked('/v1/messages', { data: [{ ...source, media_type: 'image/jpeg', data: jpeg }] }).tokens,
    Math.ceil((512 * 256) / 750),
  )
  const file = asked('/v1/chat/completions', { messages: [{ file: { file_data: 'A'.repeat(9_000_000) } }] })
  assert.deepEqual([file.isUncounted, file.tokens, file.bytes < 10], [true, 1600, true])
  assert.equal(
    asked('/v1/chat/completions', { messages: [{ content: 'one two' }] }, (words) => words.split(' ').length)
      .tokens,
    2,
  )
  const form = new FormData()
  form.set('model', 'whisper')
  const audio = askedOf(
    new URL(`${CHAT.replace('chat/completions', 'audio/transcriptions')}`),
    'POST',
    form,
    undefined,
    undefined,
  )
  assert.deepEqual([audio.model, audio.bound], ['whisper', 0])
})

test('a ratio is learned where traffic is uniform', async () => {
  const made = setUp([() => used(200, 1)])
  const llm = llmFetch(made.throttle, OTPM)
  const input = async () => {
    const call = llm(MESSAGES, post())
    await made.clock.advance(0)
    const cost = gone(made, 'input')
    await (await call).text()
    await made.clock.advance(60_000)
    return cost
  }
  const [first] = [await input()]
  for (let call = 0; call < 8; call++) await input()
  const last = await input()
  assert.ok(first < 130 && last >= 200 && last < 230, `${first} → ${last}`)
})

test('input that comes from the cache is learned: calls reserve what is usually charged', async () => {
  const usage = { input_tokens: 10, cache_read_input_tokens: 90, output_tokens: 1 }
  const made = setUp([() => json({ usage })])
  const llm = llmFetch(made.throttle, OTPM)
  for (let call = 0; call < 30; call++) {
    await (await within(made.clock, llm(MESSAGES, post()), 0)).text()
    await made.clock.advance(60_000)
  }
  const call = llm(MESSAGES, post())
  await made.clock.advance(0)
  const reserved = gone(made, 'input')
  assert.ok(reserved >= 10 && reserved <= 20, `${reserved} of 100 tokens, of which 10 are charged`)
  await (await call).text()
})

test('calls that ask no model pass; a nested SDK is reported; forms and odd bodies pass', async () => {
  const { clock, calls, throttle, warned } = setUp([() => used(1, 1)])
  const llm = llmFetch(throttle)
  await llm('data:,')
  assert.deepEqual([calls.length, Object.keys(throttle.stats().scopes).length], [1, 0])
  await within(clock, llm(CHAT, { ...post('no json'), headers: { 'x-stainless-retry-count': '1' } }), 0)
  assert.match(warned[0]?.join(' ') ?? '', /nested .*maxRetries: 0/)
  await within(clock, llm(new Request(CHAT, post())), 0)
  assert.equal(calls.length, 3)
})

test('a lost connection concerns the host; what you break off concerns no server', async () => {
  const lost = Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } })
  const never = (_: string, { signal }: RequestInit) =>
    new Promise<Response>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
  for (const [how, steps, left] of [
    ['lost', 1, 1000],
    ['broken off', 0, 898],
  ] as const) {
    const { clock, throttle } = setUp([how === 'lost' ? () => Promise.reject(lost) : never])
    const llm = llmFetch(throttle, { limits: { '*': { tpm: 1000 } }, account: 'a', headroom: 1 })
    const controller = new AbortController()
    const call = llm(CHAT, { ...post(), signal: controller.signal })
    call.catch(() => {})
    await clock.advance(0)
    controller.abort(new Error('enough'))
    await assert.rejects(call, how === 'lost' ? /fetch failed/ : /enough/)
    assert.equal(throttle.scope('api.openai.com').stats.backoffStep, steps)
    const { at } = throttle.peek({ scopes: 'llm:api.openai.com/a/m-1#tokens' }, { cost: 1000 })
    assert.equal(Math.round(1000 - ((at - clock.now()) * 1000) / 60_000), left)
  }
})

test('wrong options are listed, each with its place', () => {
  const throttle = createThrottle()
  const options = {
    headrom: 1,
    headroom: 2,
    limits: { m: { tpm: -1, rps: 5 } },
    output: 'some',
    retry: 3,
  } as never
  assert.throws(
    () => llmFetch(throttle, options),
    (error: ConfigError) => {
      assert.ok(error instanceof ConfigError)
      const paths = error.problems.map(({ path }) => path)
      assert.deepEqual(paths.sort(), [
        'llm.headrom',
        'llm.headroom',
        'llm.limits."m".rps',
        'llm.limits."m".tpm',
        'llm.output',
        'llm.retry',
      ])
      return true
    },
  )
})

for (const [how, limits, headers] of [
  ['typed', { '*': { tpm: 12_000 } }, {}],
  ['learned', {}, { 'x-ratelimit-limit-tokens': '12000' }],
] as const)
  test(`processes that share a throttle share the limits of a model (${how})`, async () => {
    let sent = 0
    const fetch = async () => {
      sent++
      return json({}, headers)
    }
    const { world, all } = throttles(2, { maxInFlight: 64, fetch, warnings: false })
    const ask = (throttle: Throttle) => {
      const llm = llmFetch(throttle, { limits, account: 'a', headroom: 1 })
      return () => llm(CHAT, post(body({ max_tokens: 1000 })))
    }
    const asks = all.map(ask)
    for (const first of asks) await after(world, 1000, first())
    for (let call = 0; call < 30; call++) for (const each of asks) void each()
    await world.run(1000)
    assert.ok(sent >= 12 && sent <= 14, `${sent} of 12 calls of 1,000 tokens left at once`)
    await world.run(60_000)
    assert.ok(sent >= 22 && sent <= 26, `${sent} after a minute`)
  })
