/**
 * The cases behind nginx, 10 a second. `bar` says what is asked for of the counts, beside those of one
 * process alone in the same run; `beside` are other groups of eight, each against a zone of its own.
 */

/** What to do to whom, and when in seconds. */
const FAULTS = [
  [20, 'kill the writer'],
  [40, 'kill a member'],
  [60, 'stop the writer'],
  [85, 'restart the store'],
]

const asAlone = ({ util, refused }, { alone }) => util >= 0.95 && refused <= alone.refused + 3

export const CASES = {
  steady: {
    name: '120 s, burst 20, second minute',
    ...{ seconds: 120, burst: 20, from: 60 },
    bar: ({ util, refusedPct }) => util >= 0.97 && refusedPct <= 0.5,
  },
  'cold-20': { name: '60 s cold, burst 20', ...{ seconds: 60, burst: 20 }, bar: asAlone },
  'cold-0': {
    name: '60 s cold, burst 0',
    ...{ seconds: 60, burst: 0 },
    bar: ({ util, refused }, { alone }) => util >= alone.util - 0.03 && refused <= alone.refused + 3,
  },
  faults: {
    name: 'writer and member killed, writer stopped, store restarted',
    ...{ seconds: 110, burst: 20, faults: FAULTS },
    bar: ({ util, refusedPct, silence }) => util >= 0.95 && refusedPct <= 1 && silence <= 2.5,
  },
  clocks: {
    name: 'clocks an hour apart',
    ...{ seconds: 60, burst: 20, skew: 3_600_000 },
    bar: asAlone,
  },
  'store-clock': {
    name: "the store's clock set on by a minute, and back",
    ...{ seconds: 60, burst: 20, ways: ['redis'] },
    // From when, in seconds, and how far ahead it is then.
    clock: [
      [20, 60],
      [40, 0],
    ],
    bar: asAlone,
  },
  rtt: {
    name: 'a way of 50 ms ± 20 to the store, burst 20',
    ...{ seconds: 60, burst: 20, ways: ['redis'], isSlow: true, beside: { direct: 'redis' } },
    bar: ({ util }, { direct }) => util > 0 && util >= 0.9 * direct.util,
  },
  bottleneck: {
    name: 'burst 0, beside bottleneck, which is told 10 a second',
    ...{ seconds: 60, burst: 0, ways: ['redis'], beside: { bottleneck: 'bottleneck' } },
    bar: ({ util, refused }, { bottleneck }) =>
      util > 0 && util >= bottleneck.util && refused <= bottleneck.refused,
  },
  shares: {
    name: 'shares, least ÷ most, burst 20',
    ...{ seconds: 60, burst: 20 },
    bar: ({ fair }) => fair >= 0.9,
  },
  slots: {
    name: 'four slots, answers of 30 s, writer killed',
    ...{ seconds: 75, upstream: 30_000, slots: 4, faults: [[15, 'kill the writer']] },
    bar: ({ mostAtOnce }) => mostAtOnce <= 4,
  },
}
