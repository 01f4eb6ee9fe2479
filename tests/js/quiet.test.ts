/**
 * Healthy programs say no word on the console: the README's rows and what newcomers wrote at first try. Each
 * runs for minutes of virtual time against a server of its kind. (Programs of the pages: `docs.test.ts`.)
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mock, test } from 'node:test'
import {
  addScope,
  byDomainHierarchy,
  byEndpoint,
  byHost,
  createThrottle,
  fromScrapySettings,
  type Throttle,
  type ThrottleOptions,
} from 'autothrottle'
import { throttleAdapter } from 'autothrottle/axios'
import { llmFetch, llmMiddleware } from 'autothrottle/llm'
import { preset, presets } from 'autothrottle/presets'
import { rules } from 'autothrottle/robots'
import { FakeClock } from 'autothrottle/testing'
import axios, { AxiosHeaders, type InternalAxiosRequestConfig } from 'axios'
import ky from 'ky'
import { ofetch } from 'ofetch'
import OpenAI from 'openai'
import PQueue from 'p-queue'

type Server = (url: URL, init: RequestInit, at: number) => Response
type Job = (throttle: Throttle, world: World) => Promise<unknown>

interface World {
  readonly clock: FakeClock
  readonly fetch: typeof fetch
  sleep(ms: number): Promise<void>
}

const ok: Server = () => new Response('ok')

/** `limit` requests in a window, as express-rate-limit counts; `says` how it tells what is left. */
function windowed(limit: number, ms: number, says: 'draft-6' | 'draft-7' | 'draft-8' | 'nothing'): Server {
  const hosts = new Map<string, { until: number; used: number }>()
  return ({ hostname }, _, at) => {
    let host = hosts.get(hostname)
    if (!host || at >= host.until) host = { until: at + ms, used: 0 }
    hosts.set(hostname, host)
    const left = Math.max(0, limit - ++host.used)
    const reset = Math.ceil((host.until - at) / 1000)
    const seconds = ms / 1000
    const all: Record<typeof says, Record<string, string>> = {
      nothing: {},
      'draft-6': {
        'ratelimit-policy': `${limit};w=${seconds}`,
        'ratelimit-limit': `${limit}`,
        'ratelimit-remaining': `${left}`,
        'ratelimit-reset': `${reset}`,
      },
      'draft-7': {
        'ratelimit-policy': `${limit};w=${seconds}`,
        ratelimit: `limit=${limit}, remaining=${left}, reset=${reset}`,
      },
      'draft-8': {
        'ratelimit-policy': `"${limit}-in-${seconds}sec"; q=${limit}; w=${seconds}`,
        ratelimit: `"${limit}-in-${seconds}sec"; r=${left}; t=${reset}`,
      },
    }
    const headers = all[says]
    if (host.used <= limit) return new Response('ok', { headers })
    return new Response('', { status: 429, headers: { ...headers, 'retry-after': `${reset}` } })
  }
}

/** Answers of a model, streamed where that is asked for. */
const model: Server = (url, { body }) => {
  const { stream } = JSON.parse(String(body)) as { stream?: boolean }
  const usage = { prompt_tokens: 100, completion_tokens: 20, input_tokens: 100, output_tokens: 20 }
  const headers = {
    'x-ratelimit-limit-requests': '600',
    'x-ratelimit-remaining-requests': '590',
    'x-ratelimit-reset-requests': '1s',
    'x-ratelimit-limit-tokens': '200000',
    'x-ratelimit-remaining-tokens': '190000',
    'x-ratelimit-reset-tokens': '3s',
  }
  const choices = [{ index: 0, message: { role: 'assistant', content: 'yes' }, finish_reason: 'stop' }]
  if (!stream)
    return Response.json(
      url.pathname.endsWith('messages')
        ? { type: 'message', content: [{ type: 'text', text: 'yes' }], usage }
        : { choices, usage },
      { headers },
    )
  const part = (content: string) => ({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })
  const parts = [part('y'), part('es'), { choices: [], usage }]
  const text = [...parts.map((each) => JSON.stringify(each)), '[DONE]'].map((each) => `data: ${each}\n\n`)
  return new Response(
    new ReadableStream({
      start(controller) {
        for (const each of text) controller.enqueue(new TextEncoder().encode(each))
        controller.close()
      },
    }),
    { headers: { ...headers, 'content-type': 'text/event-stream' } },
  )
}

const url = 'https://api.example/items'
const urls = (count: number, host = 'api.example') =>
  Array.from({ length: count }, (_, page) => `https://${host}/items?page=${page}`)

/** As most do it: all at once. */
const all =
  (count = 200): Job =>
  (throttle) =>
    Promise.all(urls(count).map(async (page) => (await throttle.fetch(page)).text()))

/** As `map` does it. */
const mapped =
  (count = 200): Job =>
  async (throttle) => {
    let length = 0
    for await (const text of throttle.map(urls(count), async (page, { fetch }) => (await fetch(page)).text()))
      length += text.length
    return length
  }

/** One after another, with work between. */
const loop =
  (count = 60): Job =>
  async (throttle, { sleep }) => {
    for (const page of urls(count)) {
      await (await throttle.fetch(page)).text()
      await sleep(20)
    }
  }

const chat = (throttle: Throttle, options: Parameters<typeof llmFetch>[1] = {}) => {
  const llm = llmFetch(throttle, options)
  return new OpenAI({ apiKey: 'k', ...llm.client })
}
const ask = {
  model: 'gpt-5',
  messages: [{ role: 'user' as const, content: 'why?' }],
  max_completion_tokens: 50,
}

const PROGRAMS: Record<string, [options: ThrottleOptions, server: Server, job: Job]> = {
  'no options, all at once': [{}, ok, all(80)],
  'no options, one after another': [{}, ok, loop()],
  'no options, map': [{}, ok, mapped(80)],
  'nothing typed but delay 0 and slots, draft-6': [
    { delay: 0, defaults: { concurrency: 8 } },
    windowed(30, 10_000, 'draft-6'),
    mapped(),
  ],
  'the same, draft-7': [{ delay: 0, concurrency: 8 }, windowed(30, 10_000, 'draft-7'), mapped()],
  'the same, draft-8': [{ concurrency: 8 }, windowed(30, 10_000, 'draft-8'), all()],
  'followRateLimit and slots, as README had it': [
    { followRateLimit: true, defaults: { concurrency: 8 } },
    windowed(30, 10_000, 'draft-8'),
    mapped(),
  ],
  'followRateLimit alone': [{ followRateLimit: true }, windowed(30, 10_000, 'draft-6'), all()],
  'a quota': [{ quota: { limit: 30, window: 10_000 } }, windowed(30, 10_000, 'draft-8'), all()],
  'a rate at its limit': [{ rate: { limit: 30, window: 10_000 } }, windowed(30, 10_000, 'draft-8'), all()],
  'a rate with a burst': [
    { rate: { limit: 30, window: 10_000, burst: 30 } },
    windowed(30, 10_000, 'draft-8'),
    all(),
  ],
  'rampup beside headers': [{ rampup: true }, windowed(30, 10_000, 'draft-8'), all()],
  'a rate where no header says it': [{ rate: 5 }, windowed(5, 1000, 'nothing'), all(120)],
  'a rate below it': [{ rate: 4.75 }, windowed(5, 1000, 'nothing'), all(120)],
  'rampup where no header says it': [{ rampup: true }, windowed(5, 1000, 'nothing'), all(120)],
  'a rate beside slots, a fast server': [{ rate: 5, concurrency: 2 }, ok, all()],
  'a rate beside refusals that name a long hold': [
    { rate: '100/min', retry: { limit: 5 } },
    windowed(50, 60_000, 'draft-7'),
    all(200),
  ],
  'a rate and a retry beside failures': [
    { rate: 20, retry: { limit: 3 } },
    ({ searchParams }) =>
      new Response('', { status: Number(searchParams.get('page')) % 25 === 7 ? 503 : 200 }),
    mapped(),
  ],
  'autothrottle as in Scrapy': [
    fromScrapySettings({ AUTOTHROTTLE_ENABLED: true, DOWNLOAD_DELAY: 1 }),
    ok,
    all(60),
  ],
  'three APIs in one night': [
    {
      retry: { limit: 5 },
      concurrency: 4,
      scopes: { 'a.example': { rate: 10 }, 'b.example': { quota: { limit: 50, window: 10_000 } } },
    },
    windowed(100, 10_000, 'draft-7'),
    (throttle) =>
      Promise.all(
        ['a.example', 'b.example', 'c.example'].map(async (host) => {
          for await (const _ of throttle.map(urls(90, host), (page, { fetch }) => fetch(page)));
        }),
      ),
  ],
  'a backend: people before a batch, who leave when they are tired': [
    { rate: 10 },
    ok,
    async (throttle, { sleep }) => {
      const batch = Promise.all(urls(300).map((page) => throttle.fetch(page, { throttle: { priority: -1 } })))
      for (let person = 0; person < 60; person++) {
        const init = { throttle: { priority: 10, maxWait: 2000 }, signal: new AbortController().signal }
        await throttle.fetch(url, init)
        await sleep(300)
      }
      await batch
      await throttle.drain()
    },
  ],
  'a backend whose clients abort': [
    { rate: 5 },
    ok,
    async (throttle, { sleep }) => {
      for (let person = 0; person < 60; person++) {
        const left = new AbortController()
        const answer = throttle.fetch(url, { signal: left.signal }).catch((error) => error)
        if (person % 3 === 0) left.abort()
        await sleep(100)
        await answer
      }
    },
  ],
  'an SDK of OpenAI, no limit typed': [
    {},
    model,
    (throttle) => Promise.all(urls(80).map(() => chat(throttle).chat.completions.create(ask))),
  ],
  'the same, one client, limits typed': [
    {},
    model,
    (throttle) => {
      const client = chat(throttle, { limits: { 'gpt-*': { rpm: 500, tpm: 30_000 } } })
      return Promise.all(urls(120).map(() => client.chat.completions.create(ask)))
    },
  ],
  'the same, streamed': [
    { maxInFlight: 32 },
    model,
    (throttle) => {
      const client = chat(throttle)
      return Promise.all(
        urls(80).map(async () => {
          const options = { ...ask, stream: true as const, stream_options: { include_usage: true } }
          for await (const _ of await client.chat.completions.create(options));
        }),
      )
    },
  ],
  'a stream that one stops to read': [
    {},
    model,
    async (throttle) => {
      const client = chat(throttle)
      for (let call = 0; call < 10; call++)
        for await (const _ of await client.chat.completions.create({ ...ask, stream: true })) break
    },
  ],
  'a stream that one aborts': [
    {},
    model,
    async (throttle) => {
      const client = chat(throttle)
      for (let call = 0; call < 10; call++) {
        const stream = await client.chat.completions.create({ ...ask, stream: true })
        for await (const _ of stream) stream.controller.abort()
      }
    },
  ],
  'a middleware of Anthropic': [
    {},
    model,
    (throttle, { fetch }) => {
      const send = llmMiddleware(throttle)
      const body = JSON.stringify({ model: 'claude-5', max_tokens: 50, messages: [] })
      const request = { url: 'https://api.anthropic.com/v1/messages', method: 'POST', headers: {}, body }
      return Promise.all(
        urls(100).map(() => send(request, ({ url, ...init }) => fetch(url, init as RequestInit))),
      )
    },
  ],
  'GraphQL whose body says no': [
    {
      rate: 4,
      retry: { limit: 5, methods: ['POST'], when: async (response) => 'errors' in (await response.json()) },
    },
    (_, __, at) => Response.json(at % 3000 < 300 ? { errors: [{ message: 'THROTTLED' }] } : { data: {} }),
    (throttle) =>
      Promise.all(
        urls(45).map(async (page) => (await throttle.fetch(page, { method: 'POST', body: '{}' })).json()),
      ),
  ],
  'a crawler of five hosts that asks robots.txt': [
    { robots: { userAgent: 'bot', rules }, concurrency: 2, retry: { limit: 2 } },
    ({ pathname, hostname }) =>
      pathname === '/robots.txt'
        ? hostname === 'c.example'
          ? new Response('', { status: 404 })
          : new Response('User-agent: *\nCrawl-delay: 2\nDisallow: /secret\n')
        : new Response('<a href="/1">'),
    (throttle) =>
      Promise.all(
        ['a', 'b', 'c', 'd', 'e'].map((name) =>
          Promise.all(urls(14, `${name}.example`).map(async (page) => (await throttle.fetch(page)).text())),
        ),
      ),
  ],
  axios: [
    { rate: 5 },
    ok,
    (throttle, { sleep }) => {
      const sends = {
        ...axios,
        getAdapter: () => async (config: InternalAxiosRequestConfig) => {
          await sleep(100)
          return { data: 'ok', status: 200, statusText: 'OK', headers: new AxiosHeaders(), config }
        },
      } as unknown as typeof axios
      const client = axios.create({ adapter: throttleAdapter(throttle, sends) })
      return Promise.all(urls(60).map((page) => client.get(page)))
    },
  ],
  ky: [
    { rate: 5, retry: { limit: 2 } },
    ok,
    (throttle) => {
      const client = ky.create({ fetch: throttle.fetch, timeout: false, retry: 0 })
      return Promise.all(urls(60).map((page) => client(page).text()))
    },
  ],
  ofetch: [
    { rate: 5 },
    ok,
    (throttle) => {
      const client = ofetch.create({ retry: 2, timeout: 60_000 }, { fetch: throttle.fetch })
      return Promise.all(urls(60).map((page) => client(page)))
    },
  ],
  'p-queue around it': [
    { rate: 5 },
    ok,
    (throttle) => {
      const queue = new PQueue({ concurrency: 4 })
      return Promise.all(urls(60).map((page) => queue.add(() => throttle.fetch(page))))
    },
  ],
  'wrap in place of p-throttle': [
    { rate: { limit: 2, window: 1000, burst: 2 } },
    ok,
    (throttle, { fetch }) => {
      const get = throttle.wrap((page: string) => fetch(page))
      return Promise.all(urls(60).map((page) => get(page)))
    },
  ],
  'run with a client of one’s own that gives data': [
    { rate: 5 },
    ok,
    (throttle) =>
      Promise.all(
        urls(60).map((page) => throttle.run(page, async ({ fetch }) => (await fetch(page)).text())),
      ),
  ],
  'jobs that are no requests': [
    { concurrency: 3, backoff: false },
    ok,
    (throttle, { sleep }) =>
      Promise.all(urls(60).map(() => throttle.run({ scopes: 'jobs' }, () => sleep(500)))),
  ],
  'jobs that fail': [
    { concurrency: 3, backoff: false },
    ok,
    (throttle, { sleep }) =>
      Promise.allSettled(
        urls(60).map(() =>
          throttle.run({ scopes: 'jobs' }, async () => {
            await sleep(500)
            throw new Error('bad line')
          }),
        ),
      ),
  ],
  'bottleneck’s reservoir and minTime: two scopes': [
    {
      scopes: { shop: { quota: { limit: 40, window: 20_000 } }, spread: { delay: 50, jitter: false } },
    },
    ok,
    (throttle) =>
      Promise.all(
        urls(120).map((page) => throttle.fetch(page, { throttle: { scopes: ['shop', 'spread'] } })),
      ),
  ],
  'acquire, and settle by hand': [
    { rate: 10 },
    ok,
    (throttle, { fetch }) =>
      Promise.all(
        urls(60).map(async (page) => {
          const permit = await throttle.acquire(page)
          permit.settle(await fetch(page))
        }),
      ),
  ],
  'costs in points': [
    { scopes: { 'api.example': { quota: { limit: 1000, window: 60_000 } } } },
    ok,
    (throttle) => Promise.all(urls(100).map((page) => throttle.fetch(page, { throttle: { cost: 25 } }))),
  ],
  'scopes by endpoint and account': [
    {
      getScopes: (request) => addScope(byEndpoint('api.example')(request), 'account'),
      scopes: { account: { rate: 10 } },
      defaults: { rate: 5 },
    },
    ok,
    all(),
  ],
  'scopes by domain': [{ getScopes: byDomainHierarchy(), defaults: { rate: 5 } }, ok, all(60)],
  'scopes by host, said': [{ getScopes: byHost, rate: 5 }, ok, all(60)],
  'cursor pagination': [
    { rate: 5, retry: { limit: 3 } },
    ({ searchParams }) => Response.json({ next: Number(searchParams.get('page') ?? 0) + 1 }),
    async (throttle) => {
      for (let next = 0; next < 60; )
        next = ((await (await throttle.fetch(`${url}?page=${next}`)).json()) as { next: number }).next
    },
  ],
  'redirects hop by hop': [
    { rate: 5, redirects: 'throttle' },
    ({ pathname }) =>
      pathname === '/there' ? new Response('ok') : Response.redirect('https://other.example/there'),
    all(40),
  ],
  'slots until bodies are read': [{ release: 'body', concurrency: 4 }, ok, all(60)],
  'a snapshot that goes on': [
    { rampup: true },
    ok,
    async (throttle, { clock, fetch }) => {
      await all(60)(throttle, undefined as never)
      const next = createThrottle({ clock, fetch, rampup: true, snapshot: throttle.snapshot() })
      await all(60)(next, undefined as never)
    },
  ],
  'a pause, a hold and other settings meanwhile': [
    { rate: 5 },
    ok,
    async (throttle, { sleep }) => {
      const pages = all(100)(throttle, undefined as never)
      await sleep(1000)
      throttle.pause()
      await sleep(20_000)
      throttle.resume()
      throttle.scope('api.example').hold(90_000)
      await sleep(1000)
      throttle.scope('api.example').configure({ rate: 10 })
      await pages
    },
  ],
  presets: [
    { scopes: presets('nominatim.openstreetmap.org', 'api.github.com') },
    ok,
    (throttle) => Promise.all(urls(60, 'nominatim.openstreetmap.org').map((page) => throttle.fetch(page))),
  ],
  'a slow host of which one typed a rate': [
    { rate: 50 },
    ok,
    async (throttle, { sleep }) => {
      // Eight a second: no request waits for the rate, and none for another limit.
      for (let call = 0; call < 300; call++) {
        void throttle.fetch(url)
        await sleep(125)
      }
      await throttle.idle()
    },
  ],
  'a nap between two bursts': [
    { rate: 10, concurrency: 4 },
    ok,
    async (throttle, { sleep }) => {
      for (let burst = 0; burst < 5; burst++) {
        await all(20)(throttle, undefined as never)
        await sleep(300_000)
      }
    },
  ],
}

/** The README's rows, as they stand there. */
const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
for (const [, row, code] of readme.matchAll(/^\| ([^|]+) \| `createThrottle\((.+?)\)` \| /gm)) {
  const options = new Function('fromScrapySettings', `return ${code}`)(fromScrapySettings) as ThrottleOptions
  PROGRAMS[`README: ${row}`] = [options, ok, all(150)]
  PROGRAMS[`README: ${row}, headers`] = [options, windowed(100, 60_000, 'draft-8'), mapped(150)]
}

for (const [name, [options, server, job]] of Object.entries(PROGRAMS))
  test(name, async () => {
    const said = mock.method(console, 'warn', () => {})
    const clock = new FakeClock()
    const sleep = (ms: number) => new Promise<void>((resolve) => void clock.setTimeout(resolve, ms))
    const send = async (input: string | URL | Request, init: RequestInit = {}) => {
      await sleep(100)
      return server(new URL(input instanceof Request ? input.url : input), init, clock.now())
    }
    const fetch = send as typeof globalThis.fetch
    try {
      const throttle = createThrottle({ clock, fetch, seed: 1, ...options })
      let isOver = false
      const done = job(throttle, { clock, fetch, sleep }).finally(() => {
        isOver = true
      })
      done.catch(() => {})
      for (let minute = 0; minute < 60 && !isOver; minute++) await clock.advance(60_000)
      assert.ok(isOver, 'it ends within an hour')
      await done
      throttle.close()
      await clock.advance(1000)
      assert.deepEqual(
        said.mock.calls.map(({ arguments: [words] }) => words),
        [],
      )
    } finally {
      said.mock.restore()
    }
  })

test('they are forty at least', () => {
  assert.ok(Object.keys(PROGRAMS).length >= 40)
  assert.ok(preset('api.github.com'))
})
