/** Presets are options of `createThrottle`, and servers that keep to their owners' words refuse none. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createThrottle } from 'autothrottle'
import { bodyHints, type PresetHost, preset, presetHosts, presets } from 'autothrottle/presets'
import { type SimulationOptions, simulate } from 'autothrottle/simulate'
import { FakeClock } from 'autothrottle/testing'
// @ts-expect-error: a script without types.
import { pythonOf } from '../../docs/presets.mjs'

type Server = SimulationOptions['server']
const DAY = 86_400_000
/** As strict as the words allow: never more in any span. */
const inAny = (limit: number, window = 1000): Server => ({ model: 'sliding-window', limit, window })
const together = (slots: number): Server => ({ model: 'concurrency', slots, service: 200 })

/** The limit of each owner's server, and the share of it that a client with enough to do should get. */
const SERVERS: Record<PresetHost, [Server, number]> = {
  'api.airtable.com': [inAny(5), 0.9],
  'api.attio.com': [inAny(25), 0.9],
  'api.cc.email': [inAny(4), 0.9],
  'api.github.com': [inAny(900, 60_000), 0.9],
  'api.notion.com': [inAny(180, 60_000), 0.9],
  'api.openalex.org': [inAny(100), 0.9],
  'api.smile.io': [inAny(10), 0.9],
  'api.stackexchange.com': [inAny(30), 0.9],
  'api.stripe.com': [inAny(25), 0.9],
  'commons.wikimedia.org': [together(1), 0],
  'crates.io': [inAny(1), 0.9],
  'data.sec.gov': [inAny(5), 0.9],
  'discord.com': [{ model: 'token-bucket', rate: 50, depth: 50, says: 'rate-limit' }, 0],
  'en.wikipedia.org': [together(1), 0],
  'eutils.ncbi.nlm.nih.gov': [inAny(3), 0.9],
  'export.arxiv.org': [inAny(1, 3000), 0.9],
  'musicbrainz.org': [inAny(1), 0.9],
  'nominatim.openstreetmap.org': [inAny(1), 0.9],
  'overpass-api.de': [together(2), 0],
  'www.anapioficeandfire.com': [inAny(20_000, DAY), 0],
  'www.sec.gov': [inAny(5), 0.9],
  'www.wikidata.org': [together(1), 0],
}

for (const host of presetHosts)
  test(`${host}: a server that keeps to its owner's words refuses no request`, () => {
    const [server, share] = SERVERS[host]
    const { options, sources } = preset(host)
    for (const seed of [1, 2, 3]) {
      const { summary } = simulate({
        seed,
        server,
        network: { latency: 80, jitter: 20 },
        throttle: { defaults: options },
        duration: 600_000,
      })
      assert.equal(summary.refused, 0)
      assert.ok(summary.served > 50 && summary.utilisation >= share, `${summary.utilisation} of the limit`)
    }
    for (const { sentence, url, read } of sources) {
      assert.ok(sentence.length > 20 && new URL(url).protocol === 'https:')
      assert.match(read, /^20\d\d-\d\d-\d\d$/)
    }
  })

test('createThrottle takes the scopes of presets, and yours come on top', () => {
  const scopes = { ...presets(...presetHosts), 'api.stripe.com': { rate: 100 } }
  const throttle = createThrottle({ scopes })
  assert.equal(throttle.scope('api.stripe.com').stats.delayMs, 10)
  assert.equal(Math.round(throttle.scope('crates.io').stats.delayMs), 1053)
})

test('a preset sets nothing that has no effect', async () => {
  for (const host of presetHosts) {
    const throttle = createThrottle({ clock: new FakeClock(), scopes: presets(host) })
    const warned: string[] = []
    throttle.addEventListener('warning', ({ message }) => warned.push(message))
    await Promise.resolve()
    assert.deepEqual(warned, [], host)
  }
})

test('GitHub: a write that counts as five points leaves', async () => {
  const throttle = createThrottle({ clock: new FakeClock(), scopes: presets('api.github.com') })
  const response = await throttle.run('https://api.github.com/', async () => new Response(), { cost: 5 })
  assert.equal(response.status, 200)
})

test('a host without a preset is a TypeError that names those that have one', () => {
  assert.throws(
    () => presets('api.example' as PresetHost),
    /no preset for "api.example"; there are api\.airtable/,
  )
  assert.throws(() => preset('toString' as PresetHost), TypeError)
})

test('the table of docs/presets.md has each host with its numbers', () => {
  const page = readFileSync(new URL('../../docs/presets.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^([\w.-]+\.\w+) +(.+?) +([.\d–]+)$/gm)]
  assert.deepEqual(rows.map(([, host]) => host).sort(), [...presetHosts].sort())
  for (const [, host, words, share] of rows) {
    const { rate, quota } = preset(host as PresetHost).options
    const numbers = (words!.match(/[\d.]+/g) ?? []).map(Number)
    for (const each of [rate, quota])
      if (each) assert.ok(numbers.includes((each as { limit: number }).limit), `${host}: ${words}`)
    assert.ok(SERVERS[host as PresetHost][1] < Number(share) || SERVERS[host as PresetHost][1] === 0)
  }
})

test('Python has the same: node docs/presets.mjs', () => {
  const file = new URL('../../python/src/autothrottle/_presets.py', import.meta.url)
  assert.equal(readFileSync(file, 'utf8'), pythonOf(presetHosts, preset))
})

/** An answer of this URL, as `fetch` gives it. */
function answered(url: string, body: string | ReadableStream, headers = {}): Response {
  const response = new Response(body, { headers: { 'content-type': 'application/json', ...headers } })
  return Object.defineProperty(response, 'url', { value: url })
}

const STACK = 'https://api.stackexchange.com/2.3/questions?site=stackoverflow'
const SHOP = 'https://a-shop.myshopify.com/admin/api/graphql.json'
const cost = (requestedQueryCost: number, currentlyAvailable: number) =>
  JSON.stringify({
    data: {},
    extensions: { cost: { requestedQueryCost, throttleStatus: { currentlyAvailable, restoreRate: 50 } } },
  })

for (const [what, url, body, want] of [
  ['a backoff', STACK, '{"items":[],"backoff":10}', { delayMs: 10_000 }],
  ['a write that failed', STACK, '{"error_id":407,"backoff":3}', { delayMs: 3000 }],
  ['none', STACK, '{"items":[]}', undefined],
  ['no number', STACK, '{"backoff":"soon"}', undefined],
  ['no JSON', STACK, '<html>', undefined],
  ['null', STACK, 'null', undefined],
  ['too few points', SHOP, cost(70, 66), { delayMs: 80 }],
  ['enough points', SHOP, cost(70, 900), undefined],
  ['an error without a cost', SHOP, '{"errors":[]}', undefined],
  ['another host', 'https://api.example/', '{"backoff":10}', undefined],
] as const)
  test(`bodies: ${what}`, async () => {
    const response = answered(url, body)
    assert.deepEqual(await bodyHints(response), want)
    assert.equal(await response.text(), body, 'the caller can read it')
  })

test('bodies: a long one is not kept', async () => {
  let pulled = 0
  const endless = new ReadableStream({
    pull(controller) {
      pulled++
      controller.enqueue(new TextEncoder().encode(' '.repeat(65_536)))
    },
  })
  const response = answered(STACK, endless)
  assert.equal(await bodyHints(response), undefined)
  assert.ok(pulled < 10, `${pulled} parts of 64 KiB`)
  await response.body?.cancel()
  const declared = answered(STACK, '{"backoff":10}', { 'content-length': '300000' })
  assert.equal(await bodyHints(declared), undefined)
})

test('bodies: a backoff holds its host', async () => {
  const fetch = async () => answered(STACK, '{"items":[],"backoff":10}')
  const clock = new FakeClock()
  const throttle = createThrottle({
    clock,
    fetch,
    getHints: bodyHints,
    scopes: presets('api.stackexchange.com'),
  })
  assert.deepEqual(await (await throttle.fetch(STACK)).json(), { items: [], backoff: 10 })
  assert.equal(throttle.peek(STACK).at, 10_000)
})
