/**
 * The stories: a server, one or two policies, and what changes on the way. Each can be told in a sentence
 * before it is watched. When it is over, `moral` says what it showed, from the figures of its lines.
 */
import { count, percent } from './figures.js'
import { freshPolicy } from './policies.js'
import { span } from './words.js'

const with_ = (kind, more) => {
  const { throttle } = freshPolicy(kind)
  return { kind, throttle: { defaults: { ...throttle.defaults, ...more } } }
}
/** A client of another make: it reads no header, and a refusal does not make it slower. */
const deaf = (name, options) => ({
  ...{ kind: 'custom', name },
  throttle: { ...options, backoff: { statusCodes: [], errors: [], maxHold: 1 } },
})

export const STORIES = [
  {
    name: 'retry-after',
    title: '429 and Retry-After',
    about:
      'The server takes ten requests in ten seconds and answers the eleventh with 429 and Retry-After. Both clients send three a second. One waits as it was told and then goes slower; the other asks on.',
    moral: ([ours, other]) =>
      `The throttle was refused ${times(ours.refused)}, the client that does not listen ${times(other.refused)}. They got about the same: ${count(ours.served)} and ${count(other.served)} served.`,
    program: {
      options: {
        server: { model: 'fixed-window', limit: 10, window: 10_000, says: 'retry-after' },
        network: { latency: 120 },
      },
      policies: [
        { kind: 'custom', name: 'Throttle', throttle: { rate: 3, jitter: false, backoff: {} } },
        deaf('Does not listen', { rate: 3 }),
      ],
      changes: [],
      span: 60_000,
      speed: 5,
    },
  },
  {
    name: 'hidden-limit',
    title: 'Finding a hidden limit',
    about:
      'The server takes ten a second and tells no client. Rampup looks for the limit and stays just below; backoff alone steps far down and comes back a step a minute. After five minutes the limit halves.',
    moral: ([rampup, backoff]) =>
      `Without a setting, rampup used ${percent(rampup.share)} of the limit, backoff alone ${percent(backoff.share)}. It cost ${count(rampup.refused)} refusals among ${count(rampup.sent)} requests, and ${count(backoff.refused)} among ${count(backoff.sent)}.`,
    program: {
      options: {
        server: { model: 'nginx', rate: 10, burst: 2 },
        network: { latency: 80, jitter: 10 },
      },
      policies: [with_('rampup'), with_('backoff', { delay: 50 })],
      changes: [{ at: 300_000, server: { rate: 5 } }],
      span: 600_000,
      speed: 50,
    },
  },
  {
    name: 'autothrottle',
    title: 'A server slows down',
    about:
      'Four requests a second come in. From 30 to 60 seconds the server takes six times as long, and its gateway gives up after 10 seconds. AutoThrottle keeps what is too much here; a fixed rate sends it all.',
    moral: ([ours, fixed]) =>
      `AutoThrottle let requests wait here and lost ${ours.failed === 0 ? 'none' : count(ours.failed)}. The fixed rate filled the server’s queue: ${count(fixed.failed)} of ${count(fixed.sent)} ended with 504. What waits here is late, not lost: ${span(ours.meanMs)} from queued to answered, against ${span(fixed.meanMs)}.`,
    program: {
      options: {
        server: { model: 'queue', workers: 2, service: 150, patience: 10_000 },
        network: { latency: 50, jitter: 20 },
        load: { rate: 4 },
      },
      policies: [
        with_('autothrottle', { autothrottle: { startDelay: 2000, targetConcurrency: 2 } }),
        {
          kind: 'rate',
          name: 'Fixed rate',
          throttle: { maxInFlight: 256, defaults: { rate: 6, backoff: false } },
        },
      ],
      changes: [
        { at: 30_000, server: { service: 900 } },
        { at: 60_000, server: { service: 150 } },
      ],
      span: 90_000,
      speed: 10,
    },
  },
  {
    name: 'bad-host',
    title: 'One bad host among many',
    about:
      'Four hosts, one throttle, a rate for each. From 15 to 45 seconds one of them refuses everything. Only that one is asked less and less; the others keep their pace. Its backoff window is five seconds here, so that you see it come back.',
    moral: ([bad, ...others]) =>
      `${bad.label} refused ${count(bad.refused)} requests in its 30 seconds. The other three were never slowed: ${others.map(({ label, served }) => `${label} ${count(served)}`).join(', ')} served.`,
    program: {
      options: {
        server: { model: 'token-bucket', rate: 5, depth: 5, outage: { at: 15_000, length: 30_000 } },
        servers: {
          'calm.example': { model: 'token-bucket', rate: 5, depth: 5 },
          'slow.example': { model: 'token-bucket', rate: 5, depth: 5, upstream: 900 },
          'quick.example': { model: 'token-bucket', rate: 5, depth: 5 },
        },
        network: { latency: 60 },
      },
      policies: [
        {
          kind: 'custom',
          name: 'Throttle',
          throttle: {
            rate: 3,
            scopes: {
              'calm.example': { rate: 1 },
              'slow.example': { rate: 2 },
              'quick.example': { rate: 4 },
            },
            backoff: { window: 5000 },
          },
        },
      ],
      changes: [],
      span: 90_000,
      speed: 5,
    },
  },
  {
    name: 'quota',
    title: 'Quota with costs',
    about:
      'A hundred units in twenty seconds; most requests cost one unit, every fifth costs twenty. If less is left than the next request costs, it waits for the next window: the quota is never overdrawn.',
    moral: ([{ sent, waiting }]) =>
      `${count(sent)} requests left, and no window had more than 100 units; ${count(waiting)} wait, since more comes in than the quota allows.`,
    program: {
      options: {
        server: { model: 'token-bucket', rate: 5, depth: 5 },
        network: { latency: 100 },
        load: { rate: 2, costs: [1, 1, 1, 1, 20] },
      },
      policies: [with_('quota', { delay: 400, concurrency: 1 })],
      changes: [],
      span: 60_000,
      speed: 5,
    },
  },
  {
    name: 'draft',
    title: 'Slots: 0.0, 0.3, 1.0 s',
    about:
      'The first example of Scrapy’s draft: two slots, 0.3 s between requests, 1 s for each slot. Three requests leave at 0.0, 0.3 and 1.0 s.',
    moral: () => 'The third waits for its slot, which was used at 0.0 s and rests for a second.',
    program: {
      options: {
        server: { model: 'token-bucket', rate: 10, depth: 5 },
        network: { latency: 50 },
        load: { requests: 3 },
      },
      policies: [
        {
          kind: 'custom',
          name: 'Throttle',
          throttle: { defaults: { concurrency: 2, delay: 300, slotDelay: 1000, jitter: false } },
        },
      ],
      changes: [],
      span: 2000,
      speed: 0.5,
    },
  },
]

/** `once`, `7 times`. */
const times = (number) => (number === 1 ? 'once' : `${count(number)} times`)

/** The picture before it moves: a story that is over, with its verdict. */
export const OPENING = { story: 'retry-after', at: 60_000 }

export const storyOf = (name) => STORIES.find((story) => story.name === name)
