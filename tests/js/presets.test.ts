/** Presets are options of `createThrottle`, and servers that keep to their owners' words refuse none. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createThrottle } from 'autothrottle'
import { type PresetHost, preset, presetHosts, presets } from 'autothrottle/presets'
import { type SimulationOptions, simulate } from 'autothrottle/simulate'

type Server = SimulationOptions['server']
const DAY = 86_400_000
/** As strict as the words allow: never more in any span. */
const inAny = (limit: number, window = 1000): Server => ({ model: 'sliding-window', limit, window })
const together = (slots: number): Server => ({ model: 'concurrency', slots, service: 200 })

/** What each owner's server bears, and of that the share that a client with enough to do should get. */
const SERVERS: Record<PresetHost, [Server, number]> = {
  'api.airtable.com': [inAny(5), 0.9],
  'api.attio.com': [inAny(25), 0.9],
  'api.cc.email': [inAny(4), 0.9],
  'api.github.com': [inAny(900, 60_000), 0.9],
  'api.notion.com': [inAny(180, 60_000), 0.9],
  'api.openalex.org': [inAny(100), 0.9],
  'api.smile.io': [inAny(10), 0.9],
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

test('what presets gives is what createThrottle takes, and yours comes on top', () => {
  const scopes = { ...presets(...presetHosts), 'api.stripe.com': { rate: 100 } }
  const throttle = createThrottle({ scopes })
  assert.equal(throttle.scope('api.stripe.com').stats.delayMs, 10)
  assert.equal(Math.round(throttle.scope('crates.io').stats.delayMs), 1053)
})

test('a host without a preset is a TypeError that names those that have one', () => {
  assert.throws(
    () => presets('api.example' as PresetHost),
    /no preset for "api.example"; there are api\.airtable/,
  )
  assert.throws(() => preset('toString' as PresetHost), TypeError)
})
