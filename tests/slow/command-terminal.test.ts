/**
 * Any bytes in any place, in whole runs: answers, lists, arguments, files of options, states. A terminal gets
 * no control character but the newline, and the colours and moves of the command's own picture.
 *
 * The runs take real time, for `main` has no other clock; no test looks at it.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { main } from '../../js/command/main.js'
import { fileOf } from '../../js/command/store.js'
import { Dice } from '../js/serve.js'

const folder = mkdtempSync(join(tmpdir(), 'autothrottle-terminal-'))
const at = (name: string) => join(folder, name)
after(() => rmSync(folder, { recursive: true, force: true }))

/** Control characters, and marks that turn the direction of writing. */
const RAW = /[\p{Cc}\u202a-\u202e\u2066-\u2069\u2028\u2029]/u
// biome-ignore lint/suspicious/noControlCharactersInRegex: a command for a terminal begins with one
const OWN = /\r?\x1b\[(?:\d+A|J|\d+m)/g

const dice = new Dice(42)
const one = <T>(list: readonly T[]): T => list[dice.below(list.length)]!
const BAD = [
  '\x1b]0;title\x07',
  '\x9b31m',
  '\x1b[2J',
  '\x00',
  '\x07',
  '\r',
  '\x7f',
  '\u202e',
  '\u2028',
  '\x85',
  'é',
  ' ',
]
const bytes = (): string => {
  const parts = Array.from({ length: 1 + dice.below(6) }, () =>
    dice.next() < 0.7 ? one(BAD) : String.fromCharCode(dice.below(0x3000)),
  )
  return parts.join(one(['', 'a', '/', '"']))
}

/** A header's value takes no line feed, and only bytes. */
const field = (text: string) =>
  [...text].filter((unit) => unit < '\u0100' && !'\0\r\n'.includes(unit)).join('')

function answer(url: string): Response {
  if (dice.next() < 0.1)
    throw new TypeError('fetch failed', { cause: Object.assign(new Error(bytes()), { code: bytes() }) })
  if (url.endsWith('robots.txt'))
    return new Response(`${bytes()}\nSitemap: ${bytes()}\nSitemap: /s.xml?${bytes()}\nDisallow: ${bytes()}`)
  const headers = new Headers({ 'content-type': one(['text/html', 'application/xml', field(bytes())]) })
  headers.append(one(['x-a', 'retry-after', 'ratelimit', 'etag']), field(bytes()))
  if (dice.next() < 0.3) headers.set('location', field(one(['/', 'http://b.example/', '']) + bytes()))
  const status = one([200, 200, 200, 302, 404, 451])
  const link = one(['<a href="', '<urlset><loc>', `<a href="http://${bytes()}/`])
  return new Response(`${bytes()}${link}${bytes()}">${bytes()}`, { status, headers })
}

/** The output of a run for people. */
async function written(args: readonly string[]): Promise<string> {
  let text = ''
  const { stdout, stderr } = process
  const before = [stdout.write, stderr.write, globalThis.fetch] as const
  const hear = (part: string | Uint8Array, ...more: []) => {
    // The test runner's words are bytes.
    if (typeof part !== 'string') return before[0].call(stdout, part, ...more)
    text += part
    return true
  }
  stdout.write = hear as typeof stdout.write
  stderr.write = hear as typeof stderr.write
  Object.defineProperty(stderr, 'isTTY', { value: dice.next() < 0.5, configurable: true })
  globalThis.fetch = (async (input: string) => answer(String(input))) as typeof fetch
  try {
    await main(args)
  } finally {
    ;[stdout.write, stderr.write, globalThis.fetch] = before
  }
  return text
}

const files = {
  options: () => one([`{"defaults":{"${JSON.stringify(bytes()).slice(1, -1)}":1}}`, bytes(), '{}']),
  list: () => `${bytes()}\nhttp://a.example/${bytes()}\n{"url":${JSON.stringify(bytes())}}\n${bytes()}`,
  state: () =>
    one([bytes(), `{"autothrottle":1,"of":"get"}\n${bytes()}\n`, `{"autothrottle":1,"of":"${bytes()}"}\n`]),
}

/** The arguments of a run, its files written. */
function drawn(round: number): string[] {
  for (const [name, text] of Object.entries(files)) writeFileSync(at(name), text())
  writeFileSync(at('fast'), '{"defaults":{"delay":0,"slotDelay":0},"maxInFlight":4}')
  const usual = [
    '--options',
    at(dice.next() < 0.8 ? 'fast' : 'options'),
    '--retries',
    '0',
    '--timeout',
    '1000',
  ]
  const more = one([[], ['--json'], ['--quiet'], ['--state', at(`state${dice.next() < 0.5 ? '' : round}`)]])
  const wrong = dice.next() < 0.2 ? [`--${bytes()}`] : []
  const kept = one([[], ['--out', at(`out${round}`)], ['--headers']])
  return one([
    [bytes(), bytes()],
    ['robots', one([bytes(), 'http://a.example/']), `/${bytes()}`, ...wrong],
    [
      'crawl',
      'http://a.example/',
      '--sitemaps',
      '--max-pages',
      '4',
      '--depth',
      '2',
      ...usual,
      ...more,
      ...kept,
    ],
    ['crawl', `http://a.example/${bytes()}`, ...wrong, ...usual, '--max-pages', '2', '--depth', '1', ...more],
    ['get', one([at('list'), at('list'), bytes()]), ...wrong, ...usual, ...more, ...kept],
    ['simulate', one([at('options'), bytes()])],
    ['presets', bytes()],
    [
      'get',
      at('list'),
      `--${one(['rate', 'delay', 'header', 'proxy', 'ca', 'include', 'timeout'])}`,
      bytes(),
    ],
  ])
}

test('no byte of a server, a list, an argument or a file is a command for a terminal', async () => {
  let shown = 0
  for (let round = 0; round < 200; round++) {
    const args = drawn(round)
    const text = await written(args)
    shown += text.length
    for (const line of text.replaceAll(OWN, '').split('\n'))
      assert.ok(!RAW.test(line), `round ${round}: ${JSON.stringify({ args, line })}`)
  }
  assert.ok(shown > 10_000, `${shown} characters`)
})

test('a million URLs have a million files', () => {
  const files = new Set<string>()
  const count = 1_000_000
  for (let page = 0; page < count; page++) {
    const file = fileOf(new URL(`https://a.example/list?page=${page}`), 'text/html')
    files.add(file.slice(file.lastIndexOf('/')).toLowerCase())
  }
  assert.equal(files.size, count)
})
