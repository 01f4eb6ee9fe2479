/**
 * The policies that can be picked, as options of `createThrottle`. A slider moves one setting, by its path;
 * while a simulation runs it is changed as `throttle.scope(name).configure` changes it.
 */

const GAPS = [0, 50, 100, 200, 300, 500, 800, 1000, 2000, 3000, 5000, 10_000]
const SLOTS = [1, 2, 3, 4, 6, 8, 12, 16]

const slots = { path: 'concurrency', label: 'Slots', unit: 'in flight', values: SLOTS }
const delay = { path: 'delay', label: 'Delay', unit: 'ms', values: GAPS }

export const POLICIES = [
  {
    kind: 'fixed',
    label: 'Fixed delay',
    about: 'One request every so often. Refusals do not change it; Retry-After is kept.',
    throttle: { defaults: { delay: 500, concurrency: 1, jitter: false, backoff: false } },
    fields: [delay, slots],
  },
  {
    kind: 'autothrottle',
    label: 'AutoThrottle',
    about: 'Scrapy’s: the delay follows the latency.',
    throttle: {
      defaults: {
        autothrottle: { startDelay: 2000, targetConcurrency: 1 },
        delay: 100,
        concurrency: 8,
        jitter: false,
      },
    },
    fields: [
      {
        path: 'autothrottle.targetConcurrency',
        label: 'Target concurrency',
        unit: 'in flight',
        values: [0.25, 0.5, 1, 1.5, 2, 3, 4, 8],
      },
      { ...delay, label: 'Least delay' },
    ],
  },
  {
    kind: 'backoff',
    label: 'Backoff',
    about:
      'The ladder. A bad answer doubles the delay, to 1 s at least; a minute without one takes a step back.',
    // The package's own: what is not said here has its default.
    throttle: { defaults: { delay: 100, concurrency: 4, backoff: {} } },
    fields: [
      delay,
      { path: 'backoff.factor', label: 'Factor', unit: 'times', values: [1.2, 1.5, 2, 3, 4], start: 2 },
      {
        path: 'backoff.window',
        label: 'Window',
        unit: 'ms',
        values: [2000, 5000, 10_000, 20_000, 30_000, 60_000],
        start: 60_000,
      },
    ],
  },
  {
    kind: 'rampup',
    label: 'Rampup',
    about: 'Goes faster until the server refuses, and stays just below.',
    throttle: { defaults: { rampup: true } },
    fields: [],
  },
  {
    kind: 'quota',
    label: 'Quota',
    about: 'An amount per window, as fast as possible until it is spent.',
    throttle: { defaults: { quota: { limit: 100, window: 20_000 }, concurrency: 4 } },
    fields: [
      { path: 'quota.limit', label: 'Units', unit: 'per window', values: [20, 50, 100, 200, 500, 1000] },
      {
        path: 'quota.window',
        label: 'Window',
        unit: 'ms',
        values: [5000, 10_000, 20_000, 30_000, 60_000],
      },
    ],
  },
  {
    kind: 'rate',
    label: 'Rate',
    about: 'Requests a second, evenly spaced.',
    throttle: { defaults: { rate: 4 } },
    fields: [
      {
        path: 'rate',
        label: 'Rate',
        unit: 'per second',
        values: [0.5, 1, 2, 3, 4, 5, 8, 10, 15, 20, 30],
      },
    ],
  },
  {
    kind: 'custom',
    label: 'Your options',
    about: 'Paste what you give createThrottle. Mistakes are told as in code.',
    throttle: { defaults: { delay: 200, concurrency: 2 } },
    fields: [],
  },
]

export const policyOf = (kind) => POLICIES.find((policy) => policy.kind === kind)

/** The policy as it is before you move a slider. */
export function freshPolicy(kind) {
  return { kind, throttle: structuredClone(policyOf(kind).throttle) }
}

/** The value at a path of the settings of scopes. */
export const at = ({ defaults }, path) => path.split('.').reduce((inner, key) => inner?.[key], defaults)

/** The options with another value there. */
export const withAt = (throttle, path, value) => ({
  ...throttle,
  defaults: put(throttle.defaults ?? {}, path.split('.'), value),
})

/** The argument of `configure` when the setting at `path` was changed: all of its section. */
export function sectionOf({ defaults }, path) {
  const key = path.split('.')[0]
  return { [key]: defaults[key] }
}

function put(inner, [key, ...rest], value) {
  return { ...inner, [key]: rest.length > 0 ? put(inner[key] ?? {}, rest, value) : value }
}
