/**
 * The servers that can be picked: what each is like, and which of its settings a slider moves. Settings that
 * a model leaves out keep the simulator's own default (docs/settings.md).
 */

const RATES = [0.2, 0.5, 1, 2, 3, 4, 5, 8, 10, 15, 20, 30, 50, 100]
const TIMES = [10, 20, 50, 100, 200, 300, 500, 800, 1000, 1500, 2000, 3000, 5000]
const WINDOWS = [1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000]
const COUNTS = [1, 2, 3, 4, 5, 8, 10, 15, 20, 30, 50, 100, 200]

const rate = { key: 'rate', label: 'Limit', unit: 'per second', values: RATES, start: 5 }
const burst = { key: 'burst', label: 'Burst', unit: 'requests', values: [0, ...COUNTS], start: 0 }
const perWindow = { key: 'limit', label: 'Limit', unit: 'per window', values: COUNTS, start: 20 }
const window = { key: 'window', label: 'Window', unit: 'ms', values: WINDOWS, start: 10_000 }
const service = { key: 'service', label: 'A request takes', unit: 'ms', values: TIMES, start: 200 }

export const SERVERS = [
  {
    model: 'token-bucket',
    label: 'Token bucket',
    about: 'Tokens come back evenly; a request takes one. As AWS and Stripe do it.',
    fields: [rate, { key: 'depth', label: 'Depth', unit: 'tokens', values: COUNTS, start: 5 }],
  },
  {
    model: 'nginx',
    label: 'nginx limit_req',
    about: 'A leaky bucket in whole milliseconds; what is above rate and burst is refused.',
    fields: [rate, burst],
  },
  {
    model: 'gcra',
    label: 'GCRA',
    about: 'One theoretical arrival time that may run ahead. As redis-cell does it.',
    fields: [rate, burst],
  },
  {
    model: 'fixed-window',
    label: 'Fixed window',
    about: 'A number of requests in each window of a grid; then refusals until the next one.',
    fields: [perWindow, window],
  },
  {
    model: 'sliding-window',
    label: 'Sliding window',
    about: 'Never more than the limit in any window. As Redis sorted sets do it.',
    fields: [perWindow, window],
  },
  {
    model: 'concurrency',
    label: 'Concurrency limit',
    about: 'A number of requests at a time; one more is a 503 at once.',
    fields: [{ key: 'slots', label: 'At a time', unit: 'requests', values: COUNTS, start: 3 }, service],
  },
  {
    model: 'queue',
    label: 'Growing queue',
    about: 'A client that is too fast waits in a queue that grows, until the gateway gives up with 504.',
    fields: [{ key: 'workers', label: 'Workers', unit: 'at a time', values: COUNTS, start: 2 }, service],
  },
]

/** The first description of a model: every slider where it starts. */
export function freshServer(model) {
  const { fields } = SERVERS.find((server) => server.model === model)
  return { model, ...Object.fromEntries(fields.map(({ key, start }) => [key, start])) }
}

/** Faults and habits that any server or the way there can have: a slider each, 0 is without. */
export const EXTRAS = [
  {
    of: 'network',
    key: 'latency',
    label: 'Latency',
    unit: 'ms',
    values: [0, ...TIMES],
    start: 100,
    about: 'There and back, without the server’s own time.',
  },
  {
    of: 'server',
    key: 'ban',
    label: 'Ban after a refusal',
    unit: 'ms',
    values: [0, ...WINDOWS],
    start: 0,
    about: 'How long a refused client stays refused, anew with every request.',
  },
  {
    of: 'network',
    key: 'jitter',
    label: 'Network noise',
    unit: 'ms',
    values: [0, ...TIMES.slice(0, 9)],
    start: 0,
    about: 'The most milliseconds more, each way.',
  },
  {
    of: 'server',
    key: 'failing',
    label: 'Failing at random',
    unit: '%',
    values: [0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5],
    start: 0,
    about: 'This share is a 503, whatever the pace.',
  },
]

/** How a limit may move by itself. */
export const MOVES = {
  none: { label: 'stays', server: { step: null, drift: null } },
  half: { label: 'halves after 30 s', server: { step: { at: 30_000, factor: 0.5 }, drift: null } },
  double: { label: 'doubles after 30 s', server: { step: { at: 30_000, factor: 2 }, drift: null } },
  drift: {
    label: 'drifts to a third and back',
    server: { step: null, drift: { period: 60_000, factor: 1 / 3 } },
  },
}

/** Which of them a description has; `undefined` for another one. */
export function moveOf({ step = null, drift = null }) {
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b)
  const found = Object.entries(MOVES).find(
    ([, { server }]) => same(server.step, step) && same(server.drift, drift),
  )
  return found?.[0]
}
