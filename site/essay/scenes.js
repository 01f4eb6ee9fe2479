/**
 * The scenes of *How it works*: what is simulated, and what is said of it. All figures in the sentences come from
 * the runs (`play.js`). The network is slow, so that one sees requests travel.
 */

const network = { latency: 600 }
/** Sends what waits, whatever the answers. */
const deaf = (concurrency, more) => ({
  concurrency,
  defaults: { delay: 0, jitter: false, backoff: false, concurrency, ...more },
})

export const SCENES = [
  {
    name: 'burst',
    server: ['5 a second'],
    doc: ['which-setting', 'Which setting do I need?'],
    title: 'Twenty requests at once',
    code: 'createThrottle({ rate: 5 })',
    runs: [
      {
        label: 'Promise.all',
        options: {
          network,
          server: { model: 'token-bucket', rate: 5, depth: 5 },
          throttle: deaf(20),
          load: { requests: 20 },
        },
      },
      {
        label: 'rate: 5',
        options: {
          network,
          server: { model: 'token-bucket', rate: 5, depth: 5 },
          throttle: { rate: 5, backoff: false, jitter: false },
          load: { requests: 20 },
        },
      },
    ],
    tell: ([loose, kept]) => [
      'The server serves five requests a second, and five at once.',
      `Promise.all sends all twenty together: ${loose.served} are served, ${loose.refused} refused.`,
      `With a rate of five a second the throttle keeps them here and lets one go every 200 ms: ${kept.served} are served, ${kept.refused} refused.`,
    ],
  },
  {
    name: 'refusals',
    server: ['2 a second'],
    doc: ['policies', 'Policies'],
    title: '429: slower after a refusal',
    code: 'createThrottle({ delay: 125 })',
    runs: [
      {
        label: 'a delay of 125 ms alone',
        options: {
          network,
          server: { model: 'token-bucket', rate: 2, depth: 4 },
          throttle: deaf(8, { delay: 125 }),
          load: { requests: 32 },
        },
      },
      {
        label: 'with backoff, the default',
        options: {
          network,
          server: { model: 'token-bucket', rate: 2, depth: 4 },
          throttle: { concurrency: 8, defaults: { delay: 125, jitter: false, concurrency: 8 } },
          load: { requests: 32 },
        },
      },
    ],
    tell: ([deafOne, listening]) => [
      'Eight requests a second leave, and the server serves two.',
      `If the client ignores the answers, ${deafOne.refused} of ${deafOne.sent} requests are refused.`,
      `autothrottle reads the 429s and lengthens the delay to that server: ${listening.refused} are refused, ${listening.served} served.`,
    ],
  },
  {
    name: 'retry-after',
    server: ['8 in 6 s'],
    doc: ['hints', 'What servers say'],
    title: 'Retry-After: the server names the time',
    code: 'createThrottle({ rate: 5 })',
    runs: [
      {
        label: 'rate: 5 alone',
        options: {
          network,
          // To a client that does not read the header, the server says none.
          server: { model: 'fixed-window', limit: 8, window: 6000 },
          throttle: { rate: 5, backoff: false, jitter: false },
          load: { requests: 30 },
        },
      },
      {
        label: 'with Retry-After, the default',
        options: {
          network,
          server: { model: 'fixed-window', limit: 8, window: 6000, says: 'retry-after' },
          throttle: { rate: 5, jitter: false },
          load: { requests: 30 },
        },
      },
    ],
    tell: ([deafOne, listening]) => [
      'The server serves eight requests in each six seconds. A refusal says how long to wait.',
      `A rate alone sends on: ${deafOne.refused} of ${deafOne.sent} requests are refused.`,
      `autothrottle holds the requests of that server until the time that it named, then sends more slowly for a while: ${listening.refused} are refused.`,
    ],
  },
  {
    name: 'hidden-limit',
    server: ['4 a second,', 'not said'],
    doc: ['rampup', 'How rampup finds a limit'],
    title: 'A limit that the server does not tell',
    code: 'createThrottle({ rampup: true })',
    speed: 4,
    runs: [
      {
        label: 'a guess: one a second',
        options: {
          network: { latency: 300 },
          server: { model: 'nginx', rate: 4, burst: 8 },
          throttle: { rate: 1, backoff: false, jitter: false },
          duration: 60_000,
        },
      },
      {
        label: 'rampup: true',
        options: {
          network: { latency: 300 },
          server: { model: 'nginx', rate: 4, burst: 8 },
          throttle: { rampup: true },
          duration: 60_000,
        },
      },
    ],
    tell: ([guess, found]) => [
      'The server serves four requests a second and does not say so. This minute plays four times faster.',
      `A careful guess of one a second gets ${guess.served} pages.`,
      `Rampup goes faster until the server refuses, and stays below that: ${found.served} pages, ${found.refused} refused.`,
    ],
  },
  {
    name: 'bad-host',
    server: [],
    doc: ['policies', 'Policies'],
    title: 'One bad host among many',
    code: 'createThrottle({ delay: 0, concurrency: 4, defaults: { concurrency: 2 } })',
    hosts: ['slow.example', 'b.example', 'c.example'],
    runs: [
      {
        label: 'four at a time in all',
        options: {
          network,
          server: { model: 'token-bucket', rate: 20, depth: 20, upstream: 5000 },
          servers: {
            'b.example': { model: 'token-bucket', rate: 20, depth: 20, upstream: 300 },
            'c.example': { model: 'token-bucket', rate: 20, depth: 20, upstream: 300 },
          },
          throttle: deaf(4),
          load: { requests: 30 },
        },
      },
      {
        label: 'and two at each host',
        options: {
          network,
          server: { model: 'token-bucket', rate: 20, depth: 20, upstream: 5000 },
          servers: {
            'b.example': { model: 'token-bucket', rate: 20, depth: 20, upstream: 300 },
            'c.example': { model: 'token-bucket', rate: 20, depth: 20, upstream: 300 },
          },
          throttle: { concurrency: 4, defaults: { delay: 0, jitter: false, backoff: false, concurrency: 2 } },
          load: { requests: 30 },
        },
      },
    ],
    tell: ([pool, scopes]) => [
      `${pool.sent} requests go to three hosts. One takes five seconds for each answer.`,
      `In a pool of four the slow host soon has all four places: the other hosts are done after ${pool.othersDone} s.`,
      `autothrottle gives each host places of its own, here two: the others are done after ${scopes.othersDone} s. The slow one takes longer then: ${scopes.seconds} s, not ${pool.seconds}.`,
    ],
  },
  {
    name: 'processes',
    server: ['5 a second'],
    doc: ['shared', 'One limit for many processes'],
    title: 'Many processes, one limit',
    code: "createThrottle({ rate: 5, shared: local({ name: 'crawl' }) })",
    runs: [
      {
        label: 'four processes, five a second each',
        options: {
          network,
          clients: 4,
          server: { model: 'token-bucket', rate: 5, depth: 5 },
          throttle: { rate: 5, backoff: false, jitter: false },
          load: { requests: 8 },
        },
      },
      {
        label: 'one engine for all four',
        options: {
          network,
          server: { model: 'token-bucket', rate: 5, depth: 5 },
          throttle: { rate: 5, backoff: false, jitter: false },
          load: { requests: 32 },
        },
      },
    ],
    tell: ([each, one]) => [
      'Four processes share a server that serves five requests a second.',
      `If each has a throttle of its own, they send twenty a second: ${each.refused} of ${each.sent} are refused.`,
      `With shared, one process decides for all: ${one.refused} of ${one.sent} are refused. Below is that one engine.`,
    ],
  },
]
