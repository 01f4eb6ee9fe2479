/**
 * The stories: a server, one or two policies, and what changes on the way. Each can be told in a sentence
 * before it is watched, and in two after.
 */
import { freshPolicy } from './policies.js'

const with_ = (kind, more) => {
  const { throttle } = freshPolicy(kind)
  return { kind, throttle: { defaults: { ...throttle.defaults, ...more } } }
}

export const STORIES = [
  {
    name: 'autothrottle',
    title: 'AutoThrottle follows latency',
    about:
      'The server slows down after 30 seconds and recovers after a minute. AutoThrottle’s delay follows; the fixed one fills the server’s queue, and everybody waits.',
    program: {
      options: {
        server: { model: 'queue', workers: 2, service: 150 },
        network: { latency: 50, jitter: 20 },
        load: { rate: 4 },
      },
      policies: [with_('autothrottle'), with_('fixed', { delay: 150, concurrency: 16 })],
      changes: [
        { at: 30_000, server: { service: 900 } },
        { at: 60_000, server: { service: 150 } },
      ],
      span: 90_000,
      speed: 10,
    },
  },
  {
    name: 'retry-after',
    title: '429 and Retry-After',
    about:
      'Ten requests in each ten seconds. The eleventh gets a 429 with Retry-After: until then nothing leaves, and for a while after it the pace is slower.',
    program: {
      options: {
        server: { model: 'fixed-window', limit: 10, window: 10_000, says: 'retry-after' },
        network: { latency: 120 },
      },
      policies: [
        {
          kind: 'custom',
          name: 'Throttle',
          throttle: { delay: 300, jitter: false, backoff: { minDelay: 600, window: 5000 } },
        },
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
      'The server takes ten a second and tells nobody. Rampup feels for the limit and stays just below; backoff alone swings around it. After five minutes the limit halves.',
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
    name: 'draft',
    title: 'The draft’s 0.0 / 0.3 / 1.0',
    about:
      'The first example of Scrapy’s draft: two slots, 0.3 s between requests, 1 s for each slot. Three requests leave at 0.0, 0.3 and 1.0 s.',
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
  {
    name: 'bad-host',
    title: 'One bad host among many',
    about:
      'Four hosts, one throttle. From 15 to 45 seconds one of them refuses everything. Only that one is asked less and less; the others keep their pace.',
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
            rate: 2,
            jitter: 0.2,
            scopes: { 'quick.example': { rate: 4 } },
            backoff: { minDelay: 1000, window: 5000 },
          },
        },
      ],
      changes: [],
      span: 60_000,
      speed: 5,
    },
  },
  {
    name: 'quota',
    title: 'Quota with costs',
    about:
      'A hundred units in twenty seconds; most requests cost one unit, every fifth costs twenty. When too little is left, requests wait for the next window: the quota is never overdrawn.',
    program: {
      options: {
        server: { model: 'token-bucket', rate: 5, depth: 5 },
        network: { latency: 100 },
        load: { rate: 2, costs: [1, 1, 1, 1, 20] },
      },
      policies: [with_('quota', { delay: 400 })],
      changes: [],
      span: 60_000,
      speed: 5,
    },
  },
]

/** What is there to look at before anything moves: most of a story has happened. */
export const OPENING = { story: 'autothrottle', at: 75_000 }

export const storyOf = (name) => STORIES.find((story) => story.name === name)
