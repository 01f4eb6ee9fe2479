/**
 * Any text where the command reads what others have written: pages, sitemaps, robots.txt, lists, arguments,
 * options, journals, paces, indexes, WARC. It finds a crash, a wrong answer, or a reader that never ends.
 *
 *     npm run fuzz:command                      the committed corpus, and twenty seconds of new input
 *     npm run fuzz:command -- --seconds 3600    an hour
 *     npm run fuzz:command -- --seed 7          another beginning; it stands beside a finding
 *
 * An input is drawn from words that its reader knows, from any bytes, and from the corpus with some of it
 * changed (`tools/fuzz/corpus/command.jsonl`, where a finding is added).
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { Worker } from 'node:worker_threads'
import { gzipSync } from 'node:zlib'
import { ConfigError, createThrottle, SnapshotError } from 'autothrottle'
import { parseRobots } from 'autothrottle/engine'
import fc from 'fast-check'
import { get } from '../../js/command/get.ts'
import { Journal } from '../../js/command/journal.ts'
import { recoverLines } from '../../js/command/lines.ts'
import { readingOf, sitemapsIn } from '../../js/command/links.ts'
import { filterOf, settingsOf, UsageError } from '../../js/command/settings.ts'
import { fileOf, Store } from '../../js/command/store.ts'
import { json, shown } from '../../js/command/terminal.ts'
import { ArgumentError, readArguments } from '../../js/command/usage.mjs'
import { checkOwn } from '../../js/command/warc.ts'
import { rules } from '../../js/robots.ts'

const { values } = parseArgs({ options: { seconds: { type: 'string' }, seed: { type: 'string' } } })
const seconds = Number(values.seconds ?? 20)
const first = Number(values.seed ?? 1)
const folder = mkdtempSync(join(tmpdir(), 'autothrottle-fuzz-'))
const at = (name) => join(folder, name)
const base = new URL('https://a.example/x/sitemap.xml')
const page = new URL('https://a.example/x/')

function want(is, problem, ...about) {
  if (!is) throw new Error(`${problem}: ${about.map((each) => JSON.stringify(each)).join(' ')}`)
}

/** Errors that a reader may have. */
const KNOWN = [UsageError, ArgumentError, ConfigError, SnapshotError]

/** The result of a reader; `undefined` if it says what is wrong. */
function told(read) {
  try {
    return read()
  } catch (error) {
    if (KNOWN.some((Kind) => error instanceof Kind) && error.message !== '') return undefined
    throw error
  }
}

/** The links of a document that is read in pieces with these ends. */
function foundIn(bytes, type, url, ends) {
  const reading = readingOf(type, url)
  let start = 0
  for (const end of [...ends, bytes.length]) {
    if (end < start) continue
    reading.write(bytes.subarray(start, end))
    start = end
  }
  const { urls, isSitemap } = reading.end()
  return { isSitemap, urls: [...urls].map(String) }
}

/** The same in one piece, in some, and byte by byte; and each is a URL of the web. */
function documented(text, type, url, cuts) {
  const bytes = Buffer.from(text)
  const whole = foundIn(bytes, type, url, [])
  for (const found of whole.urls) want(/^https?:\/\/[^#]*$/.test(found), 'no URL of the web', found)
  const every = bytes.length < 2000 ? Array.from(bytes, (_, index) => index) : []
  for (const ends of [cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), every])
    want(JSON.stringify(foundIn(bytes, type, url, ends)) === JSON.stringify(whole), 'pieces differ', ends)
}

let files = 0
/** A file with this text. */
function written(text) {
  const file = at(`${++files % 50}`)
  writeFileSync(file, text)
  return file
}

/** Readers, with the words that they know. */
const READERS = {
  links: {
    words: [
      ...['<a href=', '<base href="', '</', '>', '"', "'", '<!--', '-->', '<![CDATA[', ']]>', '<?', '&amp;'],
      ...[
        '<script>',
        '<style/>',
        '<svg>',
        '<template>',
        '<noscript>',
        '<title>',
        '<textarea>',
        '&#x41;',
        '/',
      ],
      ...['&copy', '<plaintext>', 'http://b.example/', '//b', 'mailto:a', '#', '?', ' ', '\n', '<area href='],
    ],
    check(text, cuts) {
      for (const type of ['text/html', 'text/html; charset=utf-16', 'application/xhtml+xml; charset="gbk"'])
        documented(text, type, page, cuts)
    },
  },
  sitemap: {
    words: [
      ...[
        '<urlset>',
        '<sitemapindex xmlns="x">',
        '<s:urlset>',
        '<loc>',
        '</loc>',
        '</s:loc>',
        '<url>',
        '<?xml',
      ],
      ...[
        '<![CDATA[',
        ']]>',
        '<!--',
        '-->',
        '&amp;',
        '&#50;',
        '&#xfffffff;',
        'https://a.example/',
        ' ',
        '<x',
      ],
    ],
    check(text, cuts) {
      documented(text, 'application/xml', base, cuts)
      const packed = gzipSync(text)
      for (const bytes of [packed, packed.subarray(0, packed.length / 2)])
        foundIn(bytes, 'application/gzip', base, [])
    },
  },
  robots: {
    words: [
      ...['User-agent: *', 'Disallow: /', 'Allow: /a', 'Sitemap: ', 'Crawl-delay: 1', '\n', '\r', '\t', '#'],
      ...['$', '*', ':', '%2f', 'https://a.example/s.xml', 'user-agent', ' ', '1e999', '-1', '\ufeff'],
    ],
    check(text) {
      for (const place of sitemapsIn(text)) want(/^\S+$/.test(place), 'no place', place)
      const is = rules('https://a.example/robots.txt', text, 'autothrottle')('https://a.example/a?b=%2f')
      want(typeof is === 'boolean', 'no answer', is)
      const delay = parseRobots(text, 'autothrottle')?.crawlDelayMs ?? 0
      want(delay >= 0 && Number.isFinite(delay), 'no delay', delay)
    },
  },
  list: {
    words: [
      ...['https://a.example/', '{"url":"https://a.example/"', ',"method":"', ',"headers":{', '}', '#', '\n'],
      ...['"body":', 'null', '[', '{"url":7}', '"x-a":"b"', '"a b":"\\n"', 'POST', '"', ' ', 'http://', '\0'],
      ...['"__proto__":{}', 'file:///x', 'https://u:p@h/', '\r'],
    ],
    /** Each line has its line in the index, once. */
    async check(text) {
      const out = at('out')
      rmSync(out, { recursive: true, force: true })
      const args = [
        written(text),
        '--out',
        out,
        '--options',
        at('fast.json'),
        '--ignore-robots',
        '--retries',
        '0',
      ]
      const { positionals, values } = readArguments('get', [...args, '--quiet'])
      const fetch = async (url, init) => {
        // A request can be made of each field that it sends.
        void new Request(url, init)
        return new Response('x')
      }
      try {
        await get(positionals, values, { fetch })
      } catch (error) {
        return told(() => {
          throw error
        })
      }
      const index = readFileSync(join(out, 'index.jsonl'), 'utf8').split('\n').filter(Boolean)
      const keys = index.map((line) => JSON.parse(line)).map(({ key, url }) => key ?? url)
      want(new Set(keys).size === keys.length, 'a line twice', keys)
    },
  },
  arguments: {
    words: [
      ...[
        '--delay',
        '--rate',
        '5',
        '100/min',
        '--header',
        'a: b',
        '--headers',
        'etag',
        '--timeout',
        '--max-time',
      ],
      ...[
        '-1',
        '1e999',
        'NaN',
        '',
        '--',
        '-',
        '-h',
        '--include',
        '(',
        '--proxy',
        'http://p',
        '--ca',
        '/dev/null',
      ],
      ...[
        '--concurrency',
        '--max-size',
        '--depth',
        '--max-pages=3',
        '--rampup',
        '--json',
        '--out',
        '=',
        '\u0001',
      ],
    ],
    separator: '\u0000',
    check(text) {
      const words = text.split('\u0000')
      for (const command of ['crawl', 'get', 'robots', 'simulate', 'presets'])
        told(() => {
          const { values } = readArguments(command, words)
          if (command !== 'crawl' && command !== 'get') return
          filterOf(values)
          createThrottle({ ...settingsOf(values).throttle, fetch }).close()
        })
    },
  },
  options: {
    words: [
      ...[
        '{',
        '}',
        '"defaults"',
        '"scopes"',
        '"retry"',
        ':',
        ',',
        '"limit"',
        '1',
        'null',
        '[',
        ']',
        '"delay"',
      ],
      ...[
        '"rate"',
        '"5/min"',
        '-1',
        '1e400',
        'true',
        '"requestTimeout"',
        '"maxInFlight"',
        '"__proto__"',
        '"x"',
      ],
    ],
    check(text) {
      const { values } = readArguments('get', ['-', '--options', written(text)])
      told(() => createThrottle({ ...settingsOf(values).throttle, fetch }).close())
    },
  },
  journal: {
    words: [
      ...[
        '{"autothrottle":1,"of":"crawl"}',
        '\n',
        '{"url":"https://a.example/"',
        ',"depth":0',
        '}',
        '{"done":"',
      ],
      ...['"', ',"failed":true', ',"key":"', 'null', '[]', '{"url":"x"}', '{"url":7}', ',"hops":1', '\u0000'],
    ],
    check(text) {
      const read = (file) =>
        told(() => {
          const heard = []
          const journal = new Journal(
            file,
            'crawl',
            (key, isFailed) => heard.push([key, isFailed]),
            (job) => heard.push(job),
          )
          journal.close()
          return JSON.stringify(heard)
        })
      for (const head of ['', '{"autothrottle":1,"of":"crawl"}\n']) {
        const file = written(head + text)
        const before = readFileSync(file)
        const once = read(file)
        if (once !== undefined) want(read(file) === once, 'read again it says something else', once)
        else if (head === '') want(before.equals(readFileSync(file)), 'a file of another was changed')
      }
    },
  },
  pace: {
    words: [
      ...[
        '{',
        '}',
        '"version"',
        ':',
        ',',
        '"scopes"',
        '"a.example"',
        '1',
        '[]',
        '{}',
        'null',
        '"delayMs"',
        '-1',
      ],
      ...[
        '"savedAt"',
        '1e308',
        '"hosts"',
        '"learned"',
        '"__proto__"',
        'true',
        '0.5',
        '"2026-01-01T00:00:00Z"',
      ],
    ],
    check(text) {
      written(text)
      const file = at('state')
      writeFileSync(`${file}.pace`, text)
      told(() => createThrottle({ snapshot: Journal.pace(file), fetch }).close())
    },
  },
  index: {
    words: [
      ...[
        '{"url":"https://a.example/"',
        ',"status":200',
        '}',
        '\n',
        ',"key":"',
        '"',
        ',"error":"x"',
        'null',
        '7',
      ],
      ...[',"warc":{"offset":0,"length":1}', ',"warc":7', ',"code":"ERR_LINE"', '{"url":7}', '[]', '\u0000'],
    ],
    async check(text) {
      const out = at('kept')
      rmSync(out, { recursive: true, force: true })
      const settings = { out, state: 'x', isRetryingFailed: true }
      ;(await Store.open(settings, () => {})).close()
      writeFileSync(join(out, 'index.jsonl'), text)
      const keys = []
      try {
        ;(await Store.open(settings, (key) => keys.push(key))).close()
      } catch (error) {
        want(/want lines of JSON objects/.test(error.message), 'not told', String(error))
      }
    },
  },
  warc: {
    words: [
      ...[
        'WARC/1.1\r\n',
        'WARC-Type: warcinfo\r\n',
        'software: autothrottle\r\n',
        'WARC-Target-URI: ',
        '\r\n',
      ],
      ...['https://a.example/', '<', '>', 'Content-Length: 1\r\n', '\u001f\u008b', 'software: '],
    ],
    check(text) {
      const packed = gzipSync(text)
      for (const bytes of [Buffer.from(text), packed, packed.subarray(0, packed.length / 2)]) {
        const file = written(bytes)
        for (const warc of [undefined, { offset: 0, length: bytes.length }, { offset: 5, length: 10 }])
          told(() => checkOwn(file, { url: 'https://a.example/', warc }))
        want(readFileSync(file).equals(bytes), 'it was changed')
      }
    },
  },
  lines: {
    words: ['\n', '\r\n', 'a', '{"a":1}', '\u0000', 'é', '\n\n'],
    check(text) {
      const file = written(text)
      const whole = text.slice(0, text.lastIndexOf('\n') + 1)
      const lines = []
      recoverLines(file, (line) => lines.push(line))
      const clean = Buffer.from(whole).toString()
      want(lines.join('\n') === clean.split('\n').filter(Boolean).join('\n'), 'other lines', lines)
      want(readFileSync(file).equals(Buffer.from(whole)), 'the rest stayed')
    },
  },
  terminal: {
    words: ['\u001b]0;x\u0007', '\u009b31m', '\u0000', '\u202e', '\u2028', '\u007f', 'a', '\n', '\ud800'],
    check(text) {
      want(!/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u.test(shown(text).replaceAll('\n', '')), 'raw', shown(text))
      want(JSON.parse(json({ text })).text === text, 'another text', json({ text }))
      const file = fileOf(
        new URL(`https://a.example/${encodeURIComponent(text.toWellFormed?.() ?? '')}`),
        text,
      )
      want(/^pages\/a\.example\/[\w.~/-]+$/.test(file) && !/(^|\/)\.\.?(\/|$)/.test(file), 'a bad name', file)
    },
  },
}

const corpusFile = new URL('corpus/command.jsonl', import.meta.url)
const corpus = existsSync(corpusFile)
  ? readFileSync(corpusFile, 'utf8')
      .trim()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line))
  : []

/** A text for a reader: its words and any others; or one of the corpus, with a part of another in it. */
function texts({ words, separator = '' }, known) {
  const word = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...words) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 8 }) },
    { weight: 1, arbitrary: fc.string({ maxLength: 8 }) },
    {
      weight: 1,
      arbitrary: fc.tuple(fc.constantFrom(...words), fc.nat(300)).map(([text, n]) => text.repeat(n)),
    },
  )
  const drawn = fc.array(word, { maxLength: 60, size: 'max' }).map((parts) => parts.join(separator))
  if (known.length === 0) return drawn
  const changed = fc
    .tuple(fc.constantFrom(...known), drawn, fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(20))
    .map(([text, more, where, less]) => {
      const start = Math.floor(where * text.length)
      return text.slice(0, start) + more + text.slice(start + less)
    })
  return fc.oneof(drawn, changed)
}

/** Ends the process where no reader makes progress: a reader that hangs lets no timer ring. */
const progress = new Int32Array(new SharedArrayBuffer(12))
const watch = `
  const { workerData: { progress, names } } = require('node:worker_threads')
  let before = -1
  setInterval(() => {
    const now = Atomics.load(progress, 0)
    if (now === before) {
      require('node:fs').writeSync(2, 'fuzz:command: ' + names[Atomics.load(progress, 1)] + ', --seed ' + Atomics.load(progress, 2) + ': it does not end\\n')
      process.kill(process.pid, 'SIGKILL')
    }
    before = now
  }, 30000)`
new Worker(watch, { eval: true, workerData: { progress, names: Object.keys(READERS) } }).unref()

async function main() {
  writeFileSync(at('fast.json'), '{"defaults":{"delay":0,"slotDelay":0}}')
  const said = process.stderr.write
  // A run says that a list is empty.
  process.stderr.write = () => true
  const names = Object.keys(READERS)
  for (const { reader, input } of corpus) {
    Atomics.add(progress, 0, 1)
    Atomics.store(progress, 1, names.indexOf(reader))
    await READERS[reader].check(input, [1, 5])
  }
  const counts = {}
  let seed = first
  for (const end = Date.now() + seconds * 1000; Date.now() < end; seed++)
    for (const [index, [name, reader]] of Object.entries(READERS).entries()) {
      Atomics.store(progress, 1, index)
      Atomics.store(progress, 2, seed)
      const known = corpus.filter((each) => each.reader === name).map(({ input }) => input)
      const property = fc.asyncProperty(texts(reader, known), fc.array(fc.nat(5000)), async (text, cuts) => {
        Atomics.add(progress, 0, 1)
        counts[name] = (counts[name] ?? 0) + 1
        await reader.check(text, cuts)
      })
      const result = await fc.check(property, { seed, numRuns: name === 'list' ? 10 : 50 })
      if (!result.failed) continue
      process.stderr.write = said
      const [input] = result.counterexample
      console.error(`fuzz:command: ${name}, --seed ${seed}: ${result.errorInstance?.stack}`)
      console.error(JSON.stringify({ reader: name, input }))
      return 1
    }
  process.stderr.write = said
  const told = Object.entries(counts).map(([name, count]) => `${name} ${count}`)
  console.log(`fuzz:command: ${corpus.length} of the corpus; ${told.join(', ')}; the next is --seed ${seed}`)
  return 0
}

const code = await main().finally(() => rmSync(folder, { recursive: true, force: true }))
process.exit(code)
