/** What a newcomer types first, as programs of their own: they end, and as they should. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const cwd = fileURLToPath(new URL('../..', import.meta.url))

/** Runs a program with a throttle whose server answers at once; gives its exit code and what it printed. */
function program(text: string, answer = 'new Response("x")') {
  const head = `
    import { createThrottle } from 'autothrottle'
    let sent = 0
    const fetch = async () => (sent++, ${answer})
    const urls = Array.from({ length: 40 }, (_, n) => 'https://quotes.example/' + n)
    const throttle = createThrottle({ rate: 1000, fetch })
  `
  const flags = ['--import', 'tsx', '--input-type=module', '-e', head + text]
  const { status, stdout, stderr } = spawnSync(process.execPath, flags, { cwd, encoding: 'utf8' })
  return { status, printed: stdout.trim(), warned: stderr.split('\n').filter((line) => /^auto/.test(line)) }
}

const MAP = `
  let pages = 0
  for await (const page of throttle.map(urls, async (url) => (await throttle.fetch(url)).text())) pages++
  console.log(pages, sent)`

test('S1: throttle.fetch in map ends, at the top and in main, with all pages and exit 0', () => {
  const all = { status: 0, printed: '40 40', warned: [] }
  assert.deepEqual(program(MAP), all)
  assert.deepEqual(program(`async function main() {${MAP}}\nmain()`), all)
})

test('S1: throttle.fetch after an await in run ends, too', () => {
  const text = `
    const late = async (url) => {
      await new Promise((resolve) => setImmediate(resolve))
      return (await throttle.fetch(url)).status
    }
    console.log(new Set(await Promise.all(urls.map((url) => throttle.run(url, () => late(url))))), sent)`
  assert.deepEqual(program(text), { status: 0, printed: 'Set(1) { 200 } 40', warned: [] })
})

test('S2: a function that keeps its answers to itself is told of, on the console', () => {
  const text = `
    for await (const _ of throttle.map(urls, async (url) => (await fetch(url)).text()));
    console.log(sent)`
  const { status, printed, warned } = program(text)
  assert.deepEqual([status, printed, warned.length], [0, '40', 1])
  assert.match(warned[0]!, /^autothrottle: the last 20 requests of .* ended without a status, .*\(unheard\)$/)
})

test('S2: with the fetch of the permit a 429 stops it', () => {
  const text = `
    throttle.addEventListener('hold', () => setImmediate(() => (console.log(sent), process.exit())))
    for await (const _ of throttle.map(urls, async (url, { fetch }) => (await fetch(url)).text()));`
  const { printed } = program(text, `new Response('', { status: 429, headers: { 'retry-after': '600' } })`)
  assert(Number(printed) <= 16, printed)
})
