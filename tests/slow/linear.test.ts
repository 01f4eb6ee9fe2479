/**
 * Four times the hostile input is at most four times the work, and a fixed amount a byte: header fields and
 * robots.txt are written by strangers.
 *
 * Times flicker, so work is counted (`counted.ts`), and the test compares those counts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { initSync, parse_crawl_delay, parse_hints } from '../../pkg/autothrottle.js'
import { count, stepsOf } from './counted.js'

/** It and a quarter of it are below the 16 kB of header fields that are read. */
const LARGE = 14_000
/** The bytes of a robots.txt that count. */
const FILE = 512_000
/** Loops and calls a byte, whatever is in it: 26 since the reader is compiled for size, where fewer are inlined. */
const MOST_A_BYTE = 30
/** Of many names each is compared with those that are known, 256 at most, in the 16 kB that are read. */
const MOST_OF_NAMES = 4_000_000

count('autothrottle', initSync)

/** Fails unless the steps grow at most as the input. */
function isLinear(
  what: string,
  make: (size: number) => string,
  read: (text: string) => void,
  most = LARGE,
): number {
  const [once, four] = [most / 4, most].map((size) => {
    const text = make(size)
    return stepsOf(() => read(text))
  }) as [number, number]
  assert.ok(once > 0, `${what}: nothing was counted`)
  assert.ok(four <= 4.2 * once + 10_000, `${what}: ${once} steps, of four times the input ${four}`)
  assert.ok(four <= most * MOST_A_BYTE, `${what}: ${four} steps for ${most} bytes`)
  return four / most
}

const times = (filler: string) => (size: number) => filler.repeat(Math.ceil(size / filler.length))
const FILLERS = [
  ...[',', ';', '(', ')', '"', '\\', '=', ':', '*', '?', '-', '.', ' ', '\t', '9', 'a', 'é', '\0'],
  ...['(1 2),', '((', '"q";r=1;t=1,', ';a=1', 'a=b,', '?1,', '1.', '1,', '\\"', ':AA=:,', 'Fri, ', '1h1m'],
  ...['60;w=1,', 'q;', '"q"', 'a;b;c,', '1 ', '+', '%', '/1h,'],
]
const FIELDS = [
  ...['retry-after', 'ratelimit', 'ratelimit-policy', 'ratelimit-reset', 'x-ratelimit-limit', 'date', 'age'],
  ...['x-ratelimit-reset', 'x-ratelimit-remaining', 'x-ratelimit-reset-requests', 'retry-after-ms'],
  ...['x-shopify-shop-api-call-limit', 'x-amzn-ratelimit-limit', 'anthropic-ratelimit-tokens-reset'],
]

const NOW = 1_795_203_840_000

test('one long field of any kind', (t) => {
  let most = 0
  for (const field of FIELDS)
    for (const filler of FILLERS)
      for (const first of ['', '"q";r=1', '('])
        most = Math.max(
          most,
          isLinear(
            `${field}: ${first} and many ${JSON.stringify(filler)}`,
            (size) => `${field}: ${first}${times(filler)(size)}\n`,
            (text) => void parse_hints(text, 429, NOW, 0),
          ),
        )
  t.diagnostic(`${most.toFixed(1)} steps a byte at most`)
})

test('a megabyte of commas, of nested lists, of as many fields: what is too long is passed over', (t) => {
  for (const filler of [',', '(', '"q";r=1,', '1, ']) {
    const text = `ratelimit: ${times(filler)(1_000_000)}\n`
    const count = stepsOf(() => void parse_hints(text, 200, NOW, 0))
    t.diagnostic(`${JSON.stringify(filler)}: ${count} steps`)
    assert.ok(count <= 1_000_000 * MOST_A_BYTE)
  }
  let most = 0
  for (const field of FIELDS)
    for (const value of ['1', '"q";r=1;t=1', 'Fri, 20 Nov 2026 19:44:00 GMT', ''])
      for (const isOne of [true, false]) {
        const line = (index: number) => `${field}${isOne ? '' : `-name${100_000 + index}`}: ${value}\n`
        const count = Math.ceil(1_000_000 / line(0).length)
        const text = Array.from({ length: count }, (_, index) => line(index)).join('')
        const taken = stepsOf(() => void parse_hints(text, 429, NOW, 0))
        most = Math.max(most, taken)
        const what = `${field}, ${isOne ? 'one name' : 'many names'}, ${value}: ${taken} steps`
        assert.ok(taken <= MOST_OF_NAMES + text.length * MOST_A_BYTE, what)
      }
  t.diagnostic(`${most} steps at most for a megabyte of fields`)
})

test('the delay of a robots.txt, up to the 512,000 bytes that count', () => {
  const fillers = ['\r', '\n', ':', '#', '*', '\0', 'a:', '/', 'User-agent: x\n', 'User-agent: *\n', 'é']
  const rules = [
    'Crawl-delay: 1\n',
    'Request-rate: 1/9\n',
    'User-agent: foobot/1.0 ',
    'Disallow: /\n',
    ' ',
    '9',
  ]
  for (const filler of [...fillers, ...rules])
    for (const first of ['', 'User-agent: foobot\n', 'User-agent: ', 'Crawl-delay: ', 'Request-rate: 1/'])
      isLinear(
        `${first} and many ${JSON.stringify(filler)}`,
        (size) => first + times(filler)(size),
        (text) => void parse_crawl_delay(new TextEncoder().encode(text).subarray(0, FILE), 'foobot'),
        FILE,
      )
  isLinear(
    'a long User-Agent',
    (size) => 'x'.repeat(size),
    (agent) => void parse_crawl_delay(new TextEncoder().encode('User-agent: xx\nCrawl-delay: 1'), agent),
  )
})
