/** Servers that send without an end, or drip, or lead on for ever: the command ends, and says so. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { FakeClock } from 'autothrottle/testing'
import { robots } from '../../js/command/robots.js'
import { UsageError } from '../../js/command/settings.js'
import { readArguments } from '../../js/command/usage.mjs'
import { fresh, html, listOf, type Page, played, run } from './command-web.js'

let given = 0
/** As many bytes as are read. */
const endless =
  (type: string, text: string): Page =>
  () => {
    const piece = Buffer.from(text.repeat(Math.ceil(65_536 / text.length)))
    given = 0
    const pull = (controller: ReadableStreamDefaultController) => {
      given += piece.length
      // A gigabyte has no end, either, but a test has.
      if (given > 1e9) controller.close()
      else controller.enqueue(piece)
    }
    return new Response(new ReadableStream({ pull }), { headers: { 'content-type': type } })
  }

let isLetGo = false
/** A byte each second. */
const dripping =
  (type: string): Page =>
  (_, clock) => {
    isLetGo = false
    const pull = (controller: ReadableStreamDefaultController) =>
      new Promise<void>((resolve) => {
        const drip = () => {
          if (!isLetGo) controller.enqueue(Buffer.from('#'))
          resolve()
        }
        clock.setTimeout(drip, 1000)
      })
    const cancel = () => {
      isLetGo = true
    }
    return new Response(new ReadableStream({ pull, cancel }), { headers: { 'content-type': type } })
  }

const to = (location: string) => () => new Response('', { status: 302, headers: { location } })

/** `autothrottle-cli robots`, with what it prints. */
async function asked(args: readonly string[], page: Page) {
  const clock = new FakeClock()
  const { positionals, values } = readArguments('robots', ['https://a.example/', '--json', ...args])
  let printed = ''
  const { write } = process.stdout
  process.stdout.write = ((text: string, ...more: []) => {
    // The test runner writes there, too.
    if (!text.startsWith?.('{')) return write.call(process.stdout, text, ...more)
    printed += text
    return true
  }) as typeof write
  const fetch = async () => page({}, clock)
  try {
    const isAllowed = await played(clock, robots(positionals, values, { clock, fetch }))
    return { isAllowed, seconds: clock.now() / 1000, ...(JSON.parse(printed) as { sitemaps: string[] }) }
  } finally {
    process.stdout.write = write
  }
}

test('a robots.txt without an end is read to the 500 KiB that count', async () => {
  const text = `sitemap: /s\n${'# '.repeat(30_000)}\n`
  const { sitemaps } = await asked([], endless('text/plain', text))
  assert.ok(sitemaps.length > 5 && given < 2e6, `${given} bytes were read`)
  const web = {
    'https://a.example/robots.txt': endless('text/plain', text),
    'https://a.example/s': html('x'),
  }
  const { totals } = await run('crawl', ['https://a.example/', '--sitemaps'], web)
  assert.ok(totals.pages === 1 && given < 2e6, `${given} bytes were read`)
})

test('a robots.txt that drips for ever ends with --timeout', async () => {
  await assert.rejects(
    asked(['--timeout', '5000'], dripping('text/plain')),
    /the body took more than 5000 ms/,
  )
  assert.ok(isLetGo)
  const web = {
    'https://a.example/robots.txt': dripping('text/plain'),
    'https://a.example/': html('x'),
    'https://a.example/sitemap.xml': html('<a href=/s>'),
    'https://a.example/s': html('x'),
  }
  const args = ['https://a.example/', '--sitemaps', '--ignore-robots', '--timeout', '5000']
  const { codes, seconds } = await run('crawl', args, web)
  assert.deepEqual(
    codes,
    Object.fromEntries(
      Object.keys(web)
        .slice(1)
        .map((url) => [url, 200]),
    ),
  )
  assert.ok(seconds < 30 && isLetGo, `${seconds} s`)
})

test('a body that drips for ever ends with --max-time, and its file goes', async () => {
  const web = { 'https://a.example/': dripping('text/html') }
  const list = listOf('https://a.example/')
  const usual = await run('get', [list], web)
  assert.ok(isLetGo && usual.seconds > 300 && usual.seconds < 310, `${usual.seconds} s`)
  assert.deepEqual([usual.codes['https://a.example/'], usual.lines[0]!.file], ['ERR_TIMEOUT', undefined])
  const { seconds, lines } = await run('get', [list, '--max-time', '2000'], web)
  assert.match(String(lines[0]!.error), /the body took more than 2000 ms/)
  assert.ok(seconds < 10, `${seconds} s`)
})

test('redirects that go on for ever are followed twenty times, and sitemaps of sitemaps likewise', async () => {
  let [redirects, sitemaps] = [0, 0]
  const web = new Proxy<Record<string, Page>>(
    {},
    {
      get(_, url) {
        const [, kind, at] = /(r|s)(\d+)(?:\.xml)?$/.exec(String(url)) ?? []
        if (kind === 'r') return to(`/r${++redirects && Number(at) + 1}`)
        if (kind !== 's' || ++sitemaps > 1000) return undefined
        const next = `https://a.example/s${Number(at) + 1}.xml`
        const xml = `<sitemapindex><sitemap><loc>${next}</loc></sitemap></sitemapindex>`
        return () => new Response(xml, { headers: { 'content-type': 'application/xml' } })
      },
    },
  )
  const args = ['https://a.example/r0', 'https://a.example/s0.xml', '--depth', '0']
  const { lines } = await run('crawl', args, web)
  assert.deepEqual([lines.length, redirects, sitemaps], [42, 21, 21])
})

test('a page behind twenty redirects, and links of pages behind redirects, are followed', async () => {
  const web: Record<string, Page> = { 'https://a.example/20': html('<a href=/21>') }
  for (const from of [0, 21])
    for (let at = from; at < from + 20; at++) web[`https://a.example/${at}`] = to(`/${at + 1}`)
  web['https://a.example/41'] = html('the end')
  const { totals } = await run('crawl', ['https://a.example/0'], web)
  assert.deepEqual([totals.pages, totals.requests], [2, 43])
})

test('--timeout holds for all redirects of a request together, without what they wait for their turn', async () => {
  const after =
    (ms: number, page: Page): Page =>
    (init, clock) =>
      new Promise((resolve) => {
        clock.setTimeout(() => resolve(page(init, clock)), ms)
      })
  const web: Record<string, Page> = { 'https://a.example/9': html('x') }
  for (let at = 0; at < 9; at++) web[`https://a.example/${at}`] = after(900, to(`/${at + 1}`))
  const args = [listOf('https://a.example/0'), '--ignore-robots', '--retries', '0', '--delay', '3000']
  const late = await run('get', [...args, '--timeout', '5000'], web)
  assert.match(String(late.lines[0]!.error), /the request, with its redirects, took more than 5000 ms/)
  assert.deepEqual([late.lines[0]!.code, late.lines[0]!.attempts], ['ERR_TIMEOUT', 6])
  const { lines, seconds } = await run('get', [...args, '--timeout', '9000'], web)
  assert.ok(lines[0]!.status === 200 && seconds > 9, `${seconds} s`)
})

test('a place that cannot be written is told with its option, before a request is sent', async () => {
  const file = fresh('.file')
  writeFileSync(file, '')
  let requests = 0
  const page = () => {
    requests++
    return html('x')()
  }
  const web = { 'https://a.example/robots.txt': page, 'https://a.example/': page }
  const list = listOf('https://a.example/')
  for (const option of ['out', 'state', 'plot']) {
    const place = join(file, 'below')
    const running =
      option === 'out' ? run('get', [list], web, place) : run('get', [list, `--${option}`, place], web)
    await assert.rejects(running, (error: Error) => {
      assert.match(error.message, new RegExp(`^--${option}: cannot be written: E[A-Z]+: .*below|file`))
      return error instanceof UsageError
    })
  }
  assert.equal(requests, 0)
})

test('options of a file that are no object say so', async () => {
  for (const text of ['null', '7', '[]', '{"defaults":7}', '{"retry":null}']) {
    const file = fresh('.json')
    writeFileSync(file, text)
    await assert.rejects(
      run('get', [listOf('https://a.example/'), '--options', file], {}),
      (error: Error) => {
        assert.match(error.message, /^--options: .*want an object; got /)
        return error instanceof UsageError
      },
    )
  }
})
