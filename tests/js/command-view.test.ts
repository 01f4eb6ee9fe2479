/** What the command shows, without a terminal: the picture, bars, lines, the plot; and time in few points. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import type { Reason, ScopeStats } from 'autothrottle'
import { Host } from '../../js/command/frontier.js'
import { chart, plot, seconds, sparkline } from '../../js/command/plot.js'
import { Series } from '../../js/command/series.js'
import { frame, gapOf, plainLine, type Shown } from '../../js/command/view.js'

const shown: Shown = {
  ...{ seconds: 12, pages: 120, rate: 9.87, inFlight: 3, left: 45, refused: 2, failed: 1, eta: 130 },
  rates: [0, 2, 4, 8, 10],
  delays: [1000, 500, 250],
  hosts: [
    {
      ...{ name: 'a.example', done: 100, left: 40, rate: 9.1, delayMs: 105.4, eta: 130 },
      ...{ why: 'hold 4 s, step 1', isSlowed: true, current: 'https://a.example/items?page=2' },
    },
    {
      ...{ name: 'b.example:81', done: 20, left: 0, rate: 0, delayMs: 0, eta: 0 },
      ...{ why: '', isSlowed: false, current: '' },
    },
  ],
  more: 3,
}

test('the picture: totals, rate against delay, why each host waits, until when, what was sent last', () => {
  assert.deepEqual(frame(shown, 120, false), [
    '120 pages  9.87/s  3 in flight  45 left  ETA 2 min  2 refused  1 failed',
    'rate ▁▂▄▇█ 10/s  busiest host’s delay █▅▃ 250 ms',
    'host          done  left    rate   delay    ETA  why',
    'a.example      100    40  9.10/s  105 ms  2 min  hold 4 s, step 1  /items?page=2',
    'b.example:81    20     0  0.00/s    0 ms',
    'and 3 more hosts',
  ])
})

test('no line is wider than the terminal, and colours are only for those who want them', () => {
  for (const width of [20, 40, 80])
    for (const line of frame(shown, width, false)) assert.ok(line.length < width, `${width}: ${line}`)
  const csi = '\x1b['
  assert.ok(!frame(shown, 80, false).join('').includes(csi))
  assert.ok(frame(shown, 120, true)[0]!.startsWith(`${csi}1m120 pages${csi}0m`))
  assert.ok(frame(shown, 120, true)[0]!.includes(`${csi}31m2 refused${csi}0m`))
})

test('bars end at the right, and nothing is drawn of nothing', () => {
  assert.equal(sparkline([], 10), '')
  assert.equal(sparkline([0, 0], 10), '▁▁ 0')
  assert.equal(sparkline([9, 1, 2], 2), '▅█ 2')
})

test('a line that is cut keeps its colours', () => {
  const row = frame(shown, 60, true)[3]!
  assert.ok(row.startsWith('\x1b[33ma.example'), JSON.stringify(row))
  assert.ok(row.endsWith('…'), JSON.stringify(row))
  assert.equal(stripVTControlCharacters(row), frame(shown, 60, false)[3], 'as wide as without colours')
  assert.ok(row.includes('\x1b[0m'), 'the colour ends')
})

test('a small chart has a scale, times, and a row for refusals', () => {
  const options = { height: 2, span: 600, isPlain: false }
  const values = [0, 2.5, 5, 7.5, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10]
  const marks = values.map((_, at) => (at === 5 ? 2 : 0))
  assert.deepEqual(chart(values, marks, options), {
    bars: ['     10 │   ▄████████████', '        │ ▄██████████████', '      0 └────────────────'],
    marks: 'refused       ×',
    times: '         0 s       10 min',
  })
  const plain = chart(
    values,
    values.map(() => 0),
    { ...options, isPlain: true },
  )
  assert.deepEqual(plain.bars, [
    '     10 |   #############',
    '        | ###############',
    '      0 +----------------',
  ])
  assert.equal(plain.marks, '')
})

test('one page is a page, and a host that is slowed stands out', () => {
  const [first, , , row] = frame({ ...shown, pages: 1 }, 120, true)
  assert.ok(first!.includes('1 page\x1b'), first)
  assert.ok(row!.startsWith('\x1b[33ma.example   \x1b[0m  '), row)
})

test('a line for a pipe says who waits, and why', () => {
  assert.equal(
    plainLine(shown),
    '120 pages  9.87/s  delay 105 ms  3 in flight  45 left (a.example: hold 4 s, step 1)' +
      '  ETA 2 min  2 refused  1 failed',
  )
})

test('a plot has a band for each line, and a scale', () => {
  const points = [
    [0, 1],
    [10, 300],
  ] as const
  const svg = plot('a < b', [{ name: 'rate', unit: 'a second', color: '#123', points }])
  assert.match(svg, /<title>a &lt; b<\/title>/)
  assert.match(svg, />300<\/text>/)
  assert.match(svg, /points="70\.0,163\.6 880\.0,50\.0"/)
  assert.deepEqual([59, 600, 9000, Number.POSITIVE_INFINITY].map(seconds), ['59 s', '10 min', '2.5 h', '–'])
})

test('a week of points are at most 600, and the totals stay', () => {
  const series = new Series(0)
  let answers = 0
  for (let second = 1; second <= 100_000; second++) {
    series.note(second % 10 === 0)
    answers++
    series.sample(second * 1000, 100)
  }
  const { points } = series
  assert.ok(points.length <= 600 && points.length >= 300, `${points.length}`)
  const mean = points.reduce((sum, { rate }) => sum + rate, 0) / points.length
  assert.ok(Math.abs(mean - answers / 100_000) < 0.01, `${mean}`)
  assert.equal(series.recent.length, 60)
})

test('the time left is told by the pace in force, not by the mean since the start', () => {
  const host = new Host('a.example')
  for (let at = 0; at < 20; at++) host.sent(at * 8000)
  host.answered(300)
  const of = (delayMs: number, slots: number, reason: Reason) =>
    gapOf(host, { delayMs, slots, reason } as ScopeStats, delayMs)
  assert.equal(of(250, 4, 'delay'), 250, 'the delay is over: eight seconds no longer count')
  assert.equal(of(0, 4, 'concurrency'), 75)
  assert.equal(of(8000, 4, 'backoff'), 8000)
  assert.equal(of(250, 4, 'quota'), 8000, 'another limit binds: as the last requests were sent')
})
