/**
 * `autothrottle/presets`: what owners of public APIs say of their limits, as settings of scopes.
 *
 * ```ts
 * import { presets } from 'autothrottle/presets'
 *
 * const throttle = createThrottle({ scopes: presets('api.github.com', 'nominatim.openstreetmap.org') })
 * ```
 *
 * Data, and one hook for what owners say in bodies: `bodyHints`. Each number has the owner's sentence, where
 * it stands, and the day it was read. Paces are 5 % below what is allowed: requests that leave evenly do not
 * arrive evenly.
 */
import type { SomeHints } from './answers/headers.js'
import type { ScopeOptions } from './options/options.js'

/** A limit in its owner's words. */
export interface PresetSource {
  /** The sentence. */
  readonly sentence: string
  /** Where the owner says it. */
  readonly url: string
  /** When it was read: a day. */
  readonly read: string
  /** It was read in this copy, not at the owner's address. */
  readonly copy?: string
}

/** One host. */
export interface Preset {
  /** Settings of its scope. */
  readonly options: ScopeOptions
  readonly sources: readonly PresetSource[]
  /** The value that the owner wants in `User-Agent`; requests without it may be refused. */
  readonly userAgent?: string
}

const READ = '2026-11-22'
const DAY = 86_400_000
const says = (sentence: string, url: string, copy?: string): PresetSource => ({
  sentence,
  url,
  read: READ,
  ...(copy === undefined ? {} : { copy }),
})
/** A pace 5 % below `limit` in `window` milliseconds. */
const below = (limit: number, window = 1000): ScopeOptions => ({
  rate: { limit: Math.round(limit * 95) / 100, window },
})

const CONTACT = 'the name of your application and a contact (URL or mail)'

const wikimedia: Preset = {
  options: { concurrency: 1, delay: 0 },
  userAgent: 'name/version (contact) library/version',
  sources: [
    says(
      'Making your requests in series rather than in parallel, by waiting for one request to finish before sending a new request, should result in a safe request rate.',
      'https://www.mediawiki.org/wiki/API:Etiquette',
      'https://www.mediawiki.org/wiki/API:Etiquette/cs',
    ),
    says(
      'The API requires an HTTP User-Agent header for all requests.',
      'https://www.mediawiki.org/wiki/Wikimedia_APIs/Access_policy',
    ),
  ],
}

const edgar: Preset = {
  // Both hosts of EDGAR count together.
  options: below(5),
  userAgent: 'your company and a mail address',
  sources: [
    says(
      'Current guidelines limit users to a total of no more than 10 requests per second, regardless of the number of machines used to submit requests.',
      'https://www.sec.gov/privacy.htm#security',
      'https://proteuscyber.com/privacy-database/news/9417-secgov-request-rate-threshold-exceeded',
    ),
  ],
}

const PRESETS = {
  'api.airtable.com': {
    options: { ...below(5), backoff: { minDelay: 30_000 } },
    sources: [
      says(
        'If you exceed this rate, you will receive a 429 status code and must wait 30 seconds before subsequent requests will succeed.',
        'https://support.airtable.com/docs/en/managing-api-call-limits-in-airtable',
      ),
    ],
  },
  'api.attio.com': {
    options: below(25),
    sources: [
      says(
        'Our rate limit across the whole API is 100 requests per second for read requests, 25 requests per second for write requests.',
        'https://docs.attio.com/rest-api/guides/rate-limiting',
      ),
    ],
  },
  'api.cc.email': {
    options: { ...below(4), quota: { limit: 10_000, window: DAY } },
    sources: [
      says(
        'You can use your API key to send up to 10,000 requests per day and 4 requests per second.',
        'https://developer.constantcontact.com/api_guide/rate_limits.html',
      ),
    ],
  },
  'api.github.com': {
    // Its 100 at a time are no setting: a throttle has 16 in all. A write is five points: the burst lets it.
    options: { rate: { limit: 855, window: 60_000, burst: 5 } },
    userAgent: 'any: requests without one are refused',
    sources: [
      says(
        'No more than 100 concurrent requests are allowed.',
        'https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api',
      ),
      says(
        'No more than 900 points per minute are allowed for REST API endpoints',
        'https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api',
      ),
      says(
        'Most REST API POST, PATCH, PUT, or DELETE requests: 5 [points]',
        'https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api',
      ),
      says(
        'All of these requests count towards your personal rate limit of 5,000 requests per hour.',
        'https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api',
      ),
      says(
        'The primary rate limit for unauthenticated requests is 60 requests per hour.',
        'https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api',
      ),
    ],
  },
  'api.notion.com': {
    options: below(3),
    sources: [
      says(
        'The rate limit for incoming requests per connection is an average of three requests per second.',
        'https://developers.notion.com/reference/request-limits.md',
      ),
    ],
  },
  'api.openalex.org': {
    options: {
      ...below(100),
      backoff: { statusCodes: [403, 429, 430, 502, 503, 504, 520, 521, 522, 523, 524, 529] },
    },
    sources: [
      says(
        'All users: max 100 requests per second',
        'https://docs.openalex.org/how-to-use-the-api/rate-limits-and-authentication',
      ),
      says(
        '403 Forbidden: Rate limit exceeded; slow down',
        'https://developers.openalex.org/api-reference/errors',
      ),
    ],
  },
  'api.smile.io': {
    options: below(10),
    sources: [
      says(
        'All API tokens are permitted to make up to 10 requests per second',
        'https://dev.smile.io/api/rate-limits',
      ),
    ],
  },
  'api.stackexchange.com': {
    // And the `backoff` in its bodies: `getHints: bodyHints`.
    options: below(30),
    sources: [
      says(
        'If a single IP is making more than 30 requests a second, new requests will be dropped.',
        'https://api.stackexchange.com/docs/throttle',
      ),
      says(
        'If an application receives a response with the backoff field set, it must wait that many seconds before hitting the same method again.',
        'https://api.stackexchange.com/docs/throttle',
      ),
    ],
  },
  'api.stripe.com': {
    options: below(25),
    sources: [
      says(
        'API endpoints have a default limit of 25 requests per second.',
        'https://docs.stripe.com/rate-limits',
      ),
    ],
  },
  'commons.wikimedia.org': wikimedia,
  'crates.io': {
    options: { ...below(1), concurrency: 1 },
    userAgent: CONTACT,
    sources: [
      says(
        'as long as they limit their request rate to 1 request per second or less',
        'https://crates.io/data-access',
        'https://github.com/rust-lang/crates.io/pull/1535',
      ),
    ],
  },
  'data.sec.gov': edgar,
  'discord.com': {
    // Its owner forbids numbers: what its headers say counts.
    options: { concurrency: 16, delay: 0 },
    sources: [
      says(
        'rate limits should not be hard coded into your app',
        'https://docs.discord.com/developers/topics/rate-limits',
      ),
    ],
  },
  'en.wikipedia.org': wikimedia,
  'eutils.ncbi.nlm.nih.gov': {
    options: below(3),
    sources: [
      says(
        'NCBI E-Utilities API service limits the number of requests per second (rps) to 3.',
        'https://support.nlm.nih.gov/knowledgebase/article/KA-05317/en-us',
      ),
      says(
        'You can increase the rate to 10 rps if you obtain and use an API Key.',
        'https://support.nlm.nih.gov/knowledgebase/article/KA-05317/en-us',
      ),
    ],
  },
  'export.arxiv.org': {
    options: { ...below(1, 3000), concurrency: 1 },
    sources: [
      says(
        'no more than one request every 3 seconds - no more than one connection at a time',
        'https://info.arxiv.org/help/api/tou.html#rate-limits',
        'https://the-obstacle-is-the-way.github.io/erdos-banger/vendor-docs/arxiv',
      ),
    ],
  },
  'musicbrainz.org': {
    options: below(1),
    userAgent: CONTACT,
    sources: [
      says(
        '1 request per second (on average) per IP address',
        'https://musicbrainz.org/doc/MusicBrainz_API/Rate_Limiting',
        'https://github.com/jelte1/SpotiFLAC-Command-Line-Interface/issues/10',
      ),
    ],
  },
  'nominatim.openstreetmap.org': {
    options: { ...below(1), concurrency: 1 },
    userAgent: 'the name of your application; those of HTTP libraries are refused',
    sources: [
      says(
        'No heavy uses (an absolute maximum of 1 request per second).',
        'https://operations.osmfoundation.org/policies/nominatim/',
        'https://www.cuch.org/nominatim-usage-policy-aka-geocoding-policy_394535',
      ),
    ],
  },
  'overpass-api.de': {
    options: { concurrency: 2, delay: 1000, quota: { limit: 10_000, window: DAY } },
    sources: [
      says(
        'users are expected to send a maximum of about 10000 requests per day',
        'https://dev.overpass-api.de/overpass-doc/en/preface/commons.html',
        'https://wiki.openstreetmap.org/wiki/Error_429',
      ),
    ],
  },
  'www.anapioficeandfire.com': {
    options: { quota: { limit: 20_000, window: DAY, strict: true } },
    sources: [
      says(
        'This limit is set to 20000 requests per day.',
        'https://github.com/joakimskoog/AnApiOfIceAndFire/wiki/Rate-limiting',
      ),
    ],
  },
  'www.sec.gov': edgar,
  'www.wikidata.org': wikimedia,
} as const satisfies Record<string, Preset>

/** A host that has a preset. */
export type PresetHost = keyof typeof PRESETS

/** The hosts that have presets, in alphabetical order. */
export const presetHosts = Object.keys(PRESETS) as readonly PresetHost[]

/**
 * Settings for `scopes`, by host. Your own settings come on top: `{ ...presets('api.stripe.com'),
 * 'api.stripe.com': { rate: 100 } }`.
 *
 * @throws {TypeError} that names a host without a preset, and those that have one.
 */
export function presets(...hosts: readonly PresetHost[]): Record<string, ScopeOptions> {
  if (hosts.length === 0)
    throw new TypeError(`presets: want at least one host; there are ${presetHosts.join(', ')}`)
  return Object.fromEntries(hosts.map((host) => [host, { ...preset(host).options }]))
}

/**
 * One host's settings with their sources.
 *
 * @throws {TypeError} if it has no preset.
 */
export function preset(host: PresetHost): Preset {
  if (Object.hasOwn(PRESETS, host)) return PRESETS[host]
  throw new TypeError(`there is no preset for ${JSON.stringify(host)}; there are ${presetHosts.join(', ')}`)
}

/** A body that is longer is not read for a hint. */
const MOST_BODY = 262_144

/**
 * Limits that owners state in bodies, for `createThrottle({ getHints: bodyHints })`: the `backoff` of Stack
 * Exchange, and the `throttleStatus` of Shopify's GraphQL, where less is left than the query asked for.
 *
 * It reads JSON of these two owners alone, up to 256 KiB: for so long their answers arrive later (by the time
 * of their bodies), keep their slots, and are in memory once. The rest of a longer body is let go of, and its
 * hint is not heard. Answers of other hosts cost one look at their host.
 */
export async function bodyHints(response: Response): Promise<SomeHints | undefined> {
  const { hostname } = new URL(response.url || 'about:blank')
  const isShopify = hostname.endsWith('.myshopify.com')
  if (!isShopify && !hostname.startsWith('api.stack')) return undefined
  const { headers, body } = response
  const isJson = headers.get('content-type')?.includes('json') === true
  if (!isJson || !body || Number(headers.get('content-length') ?? 0) > MOST_BODY) return undefined
  const text = await textOf(response.clone())
  if (text === undefined) return undefined
  try {
    const body = JSON.parse(text)
    return isShopify ? shopify(body?.extensions?.cost) : stackExchange(body)
  } catch {
    return undefined // Not what the header says it is.
  }
}

/** The text of a body; `undefined` if it is too long, and then the rest is not kept. */
async function textOf(response: Response): Promise<string | undefined> {
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    text += decoder.decode(value, { stream: true })
    if (text.length <= MOST_BODY) continue
    // A branch of two is cancelled when both are: no caller waits for that.
    reader.cancel().catch(() => {})
    return undefined
  }
}

function stackExchange(body: { backoff?: unknown } | null): SomeHints | undefined {
  const seconds = Number(body?.backoff)
  return seconds > 0 ? { delayMs: 1000 * seconds } : undefined
}

interface ShopifyCost {
  requestedQueryCost?: number
  throttleStatus?: { currentlyAvailable?: number; restoreRate?: number }
}

/** Until another query like this one fits. */
function shopify(cost: ShopifyCost | undefined): SomeHints | undefined {
  const { currentlyAvailable, restoreRate } = cost?.throttleStatus ?? {}
  const missing = Number(cost?.requestedQueryCost) - Number(currentlyAvailable)
  return missing > 0 && Number(restoreRate) > 0
    ? { delayMs: Math.ceil((1000 * missing) / restoreRate!) }
    : undefined
}
