/**
 * My API: a server as its owner describes it, a number of requests, and what becomes of them: with autothrottle,
 * with `Promise.all`, with p-queue. All of them are played by the engine, in virtual time.
 *
 * p-queue comes twice, as most use it, and told the limit.
 */
import { preset, presetHosts } from 'autothrottle/presets'
import { createSimulation } from 'autothrottle/simulate'
import { count } from './figures.js'
import { span } from './words.js'

/** The APIs to choose from besides the presets. */
export const OTHERS = [
  { name: 'nginx', label: 'a server behind nginx (limit_req)' },
  { name: 'unknown', label: 'I don’t know its limit' },
]
export const LIMITS = [0.5, 1, 2, 5, 10, 20, 50, 100]
export const HOSTS = presetHosts
/** The parameters of a link, with their defaults. */
export const DEFAULT = { api: 'unknown', requests: 500, limit: 10 }

const NETWORK = { latency: 80, jitter: 20 }
/** An answer to a limit of some at a time takes so long, in milliseconds. */
const SERVICE = 200
const DAY = 86_400_000

/** Presets are this share of what is allowed. */
const SHARE = 0.95
/** Rules of an owner beside numbers of settings. */
const SPECIAL = {
  'api.airtable.com': { ban: 30_000 },
  'api.github.com': {
    ...{ model: 'concurrency', slots: 100, service: SERVICE, refusal: '429' },
    allowance: { limit: 900, window: 60_000 },
  },
  'discord.com': { model: 'token-bucket', rate: 50, depth: 50, says: 'rate-limit' },
}

/** The server as its owner describes it, as strict as the words allow. */
export function serverOf({ api, limit }) {
  if (api === 'nginx') return { model: 'nginx', rate: limit, burst: Math.ceil(limit) }
  if (api === 'unknown') return { model: 'token-bucket', rate: limit, depth: Math.max(1, limit) }
  const { rate, quota, concurrency = 1 } = preset(api).options
  const most = quota && { limit: quota.limit, window: quota.window ?? DAY }
  const server = rate
    ? { model: 'sliding-window', limit: Math.round(rate.limit / SHARE), window: rate.window ?? 1000 }
    : most && concurrency === 1
      ? { model: 'sliding-window', ...most }
      : { model: 'concurrency', slots: concurrency, service: SERVICE }
  const allowance = most && server.limit !== most.limit ? { allowance: most } : {}
  return SPECIAL[api]?.model ? SPECIAL[api] : { ...server, ...allowance, ...SPECIAL[api] }
}

/** The owner's rules that the simulated server does not have. */
export function missingOf({ api }) {
  if (!HOSTS.includes(api)) return ''
  if (api === 'api.github.com')
    return 'Not simulated: its 5,000 requests an hour (60 without a token), and 5 points for each write.'
  const { rate, concurrency } = preset(api).options
  return rate && concurrency ? `Not simulated: its limit of ${concurrency} at a time.` : ''
}

const PER = { 1000: 'a second', 60000: 'a minute', [DAY]: 'a day' }
const perOf = (window) => PER[window] ?? `in ${span(window)}`

/** The limit in words. */
export function limitInWords(server) {
  const { model, rate, limit, window, slots, allowance, ban } = server
  const of = rate
    ? `${rate} a second`
    : model === 'concurrency'
      ? `${slots} at a time`
      : `${count(limit)} ${perOf(window)}`
  const more = allowance ? `, ${count(allowance.limit)} ${perOf(allowance.window)}` : ''
  return `${of}${more}${ban ? `, and ${span(ban)} of refusals after one too many` : ''}`
}

/** Without a pace, and deaf to answers. */
const unthrottled = (concurrency) => ({
  maxInFlight: concurrency,
  defaults: { delay: 0, jitter: false, backoff: false, concurrency },
})

/** Settings of the scope that you type. */
export const settingsOf = ({ api }) => (HOSTS.includes(api) ? preset(api).options : { rampup: true })

/** A number in a window: what p-queue takes. */
const pacedOf = ({ limit, window, slots, allowance }) =>
  limit ? { limit, window } : slots && allowance?.window <= 60_000 ? allowance : undefined

/** The runners, in the order in which they are shown. */
function runnersOf(choice, server) {
  const { requests } = choice
  const isKnown = HOSTS.includes(choice.api)
  const { slots } = server
  const told = isKnown && pacedOf(server)
  const atOnce = slots ?? requests
  return [
    {
      name: 'autothrottle',
      told: isKnown ? 'by its preset' : 'without a limit (rampup)',
      throttle: { defaults: settingsOf(choice) },
    },
    ...(told
      ? [
          {
            name: 'p-queue',
            told: `${slots ? `concurrency: ${slots}, ` : ''}intervalCap: ${told.limit}, interval: ${told.window}`,
            throttle: { maxInFlight: atOnce, defaults: { ...unthrottled(atOnce).defaults, quota: told } },
          },
        ]
      : []),
    { name: 'p-queue', told: 'concurrency: 10', throttle: unthrottled(10) },
    { name: 'Promise.all', told: 'all at once', throttle: unthrottled(requests) },
  ]
}

/** How fast the server serves, in requests per second: to know how long to simulate. */
function paceOf(server) {
  const { rate, slots, service } = server
  const told = pacedOf(server)
  return rate ?? (told ? (told.limit * 1000) / told.window : (slots * 1000) / (service + NETWORK.latency))
}

/**
 * The requests of each runner, as they are played: `{ name, told, served, refused, left, seconds }`. It
 * yields now and then, so that a page can do something else.
 */
export function* playing(choice) {
  const server = serverOf(choice)
  const { requests } = choice
  const pace = paceOf(server)
  const longest = 600_000 + (requests / pace) * 4000 + requests * 2000
  const runs = []
  for (const { name, told, throttle } of runnersOf(choice, server)) {
    // Rivals read no headers: to them the server is one that sends none.
    const shown = runs.length === 0 ? server : { ...server, says: 'nothing' }
    const simulation = createSimulation({
      ...{ seed: 1, server: shown, network: NETWORK, throttle, load: { requests } },
    })
    while (simulation.now < longest && simulation.state().settled < requests) {
      simulation.advance(Math.max(1000, 20_000 / pace))
      yield
    }
    runs.push({ name, told, ...counted(simulation.trace(), requests) })
  }
  return runs
}

/** The same at once. */
export function play(choice) {
  const runs = playing(choice)
  for (;;) {
    const { done, value } = runs.next()
    if (done) return value
  }
}

function counted({ status, answered }, requests) {
  let [served, refused, last] = [0, 0, 0]
  status.forEach((each, index) => {
    const at = answered[index]
    if (Number.isNaN(at)) return
    if (each === 200) served++
    else refused++
    last = Math.max(last, at)
  })
  return { served, refused, left: requests - served - refused, seconds: last / 1000 }
}

/** The result, in a sentence that can be quoted. */
export function answer(choice, runs) {
  const { requests } = choice
  const [ours] = runs
  const all = runs.at(-1)
  const refused =
    ours.refused === 0 ? 'none refused' : `${count(ours.refused)} refused on the way to the limit`
  const left = ours.left > 0 ? `, ${count(ours.left)} not sent after ${long(ours.seconds)}` : ''
  // No praise for who breaks a rule that is not simulated.
  const missing = missingOf(choice)
  const others =
    all.refused > 0
      ? ` Promise.all gets ${count(all.served)}, and ${count(all.refused)} refusals.`
      : missing
        ? ''
        : ` Promise.all gets all of them, too: ${long(all.seconds)}.`
  return `${count(requests)} requests take ${long(ours.seconds)}, ${refused}${left}.${others}${missing && ` ${missing}`}`
}

/** A time in words, from seconds. */
export function long(seconds) {
  if (seconds < 100) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`
  const whole = Math.round(seconds)
  if (seconds < 600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86_400).toFixed(1)} days`
}

/** Options that are milliseconds here and seconds in Python. */
const TIMES = new Set(['window', 'delay', 'slotDelay', 'minDelay', 'maxDelay'])

/** The lines that do it, by language. */
export function codeOf({ api }) {
  const isKnown = HOSTS.includes(api)
  const host = isKnown ? api : 'api.example'
  const settings = settingsOf({ api })
  const npm = isKnown
    ? `import { createThrottle } from 'autothrottle'
import { presets } from 'autothrottle/presets'

const throttle = createThrottle({ scopes: presets('${host}'), retry: { limit: 3 } })
const response = await throttle.fetch('https://${host}/')`
    : `import { createThrottle } from 'autothrottle'

const throttle = createThrottle({ rampup: true, retry: { limit: 3 } })
const response = await throttle.fetch('https://${host}/')`
  const scopes = isKnown ? { scopes: { [host]: settings } } : settings
  const python = `import requests
from autothrottle import ThreadThrottle
from autothrottle.requests import ThrottleAdapter

session = requests.Session()
throttle = ThreadThrottle(${keywords({ ...scopes, retry: { limit: 3 } })})
session.mount("https://", ThrottleAdapter(throttle))
response = session.get("https://${host}/")`
  const rust = `use autothrottle_tower::Throttle;
use reqwest_middleware::ClientBuilder;
use serde_json::json;

let throttle = Throttle::new(json!(${toJson(scopes)}))?;
let client = ClientBuilder::new(reqwest::Client::new()).with(throttle).build();
let response = client.get("https://${host}/").send().await?;`
  return [
    { name: 'JavaScript, TypeScript', code: npm },
    { name: 'Python', code: python },
    { name: 'Rust', code: rust, also: 'cargo add reqwest reqwest-middleware serde_json' },
  ]
}

const keywords = (options) =>
  Object.entries(options)
    .map(([key, value]) => `${snake(key)}=${toPython(value)}`)
    .join(', ')

function toPython(value, key) {
  if (Array.isArray(value)) return `[${value.map((each) => toPython(each)).join(', ')}]`
  if (typeof value === 'number') return String(TIMES.has(key) ? value / 1000 : value)
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value !== 'object') return JSON.stringify(value)
  const entries = Object.entries(value).map(([name, inner]) => `"${snake(name)}": ${toPython(inner, name)}`)
  return `{${entries.join(', ')}}`
}

/** Names of options; hosts stay as they are. */
const snake = (name) =>
  name.includes('.') ? name : name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

function toJson(value) {
  if (Array.isArray(value)) return `[${value.map(toJson).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value).map(([name, inner]) => `"${name}": ${toJson(inner)}`)
  return `{ ${entries.join(', ')} }`
}

/** The same server and policies for the playground, as a program. */
export function programOf(choice) {
  const server = serverOf(choice)
  const seconds = (choice.requests / paceOf(server)) * 1.5 + 10
  return {
    ...{ now: 0, seed: 1, clients: 1, changes: [] },
    options: { server, network: NETWORK, load: { requests: choice.requests } },
    policies: [
      { kind: 'custom', name: 'autothrottle', throttle: { defaults: settingsOf(choice) } },
      { kind: 'custom', name: 'p-queue', throttle: unthrottled(10) },
    ],
    span: Math.min(3_600_000, Math.ceil(seconds) * 1000),
    speed: 10,
  }
}

/** The choice as the text after `#`, and back; what makes no sense is left out. */
export const toHash = ({ api, requests, limit }) =>
  [api, requests, ...(HOSTS.includes(api) ? [] : [limit])].join(',')

export function fromHash(hash) {
  const [api, requests, limit] = hash.replace(/^#/, '').split(',')
  const whole = Math.round(Number(requests))
  const rate = Number(limit)
  return {
    api: HOSTS.includes(api) || OTHERS.some(({ name }) => name === api) ? api : DEFAULT.api,
    requests: whole >= 1 && whole <= 10_000 ? whole : DEFAULT.requests,
    limit: LIMITS.includes(rate) ? rate : DEFAULT.limit,
  }
}
