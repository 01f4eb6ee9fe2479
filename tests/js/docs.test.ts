/**
 * Every block of JavaScript and TypeScript in the guides, run as it stands there, in virtual time. What it
 * prints must be what its comments say: `// → 200`.
 *
 * The world of the guides: hosts answer 200 with "ok" after 100 ms; `busy.example` refuses the first request
 * with `Retry-After: 2`; `soft.example` answers 200 and says no in its body.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { format } from 'node:util'
import * as autothrottle from 'autothrottle'
import * as testing from 'autothrottle/testing'
import { transform } from 'esbuild'

const PAGES = [
  ...['start', 'which-setting', 'policies', 'trace', 'errors', 'events', 'testing', 'coming-from', 'recipes'],
  ...['llm', 'monitoring'],
  '../site/pages/index',
]

const text = (page: string) => readFileSync(new URL(`../../docs/${page}.md`, import.meta.url), 'utf8')

/** The blocks of a page, each with its line. */
function blocksOf(page: string): { line: number; code: string; kind: string }[] {
  const whole = text(page)
  return [...whole.matchAll(/^```(js|ts)\n(.*?)^```$/gms)].map(({ 1: kind, 2: code, index }) => ({
    line: whole.slice(0, index).split('\n').length,
    code: code!,
    kind: kind!,
  }))
}

/** Servers of the guides. */
function world(clock: testing.FakeClock): typeof fetch {
  let isBusy = true
  return async (input) => {
    const url = input instanceof Request ? input.url : String(input)
    await new Promise<void>((done) => clock.setTimeout(done, 100))
    let response = new Response('ok')
    if (url.includes('soft.example')) response = Response.json({ error: 'too many requests' })
    if (url.includes('busy.example') && isBusy) {
      isBusy = false
      response = new Response('', { status: 429, headers: { 'retry-after': '2' } })
    }
    Object.defineProperty(response, 'url', { value: url })
    return response
  }
}

const AsyncFunction = (async () => {}).constructor as new (
  ...source: string[]
) => (...args: unknown[]) => Promise<unknown>

/** Runs a block with a clock of its own; gives what it printed. */
async function play(source: string): Promise<string[]> {
  const { code } = await transform(source, { loader: 'ts', format: 'esm', target: 'es2022' })
  const clock = new testing.FakeClock()
  const fetch = world(clock)
  const printed: string[] = []
  const modules: Record<string, object> = {
    autothrottle: {
      ...autothrottle,
      createThrottle: (options: autothrottle.ThrottleOptions = {}) =>
        autothrottle.createThrottle({ clock, fetch, seed: 1, ...options }),
    },
    'autothrottle/testing': testing,
  }
  const body = code
    .replaceAll(/^import (\w+) from "(.+?)";$/gm, 'const { default: $1 } = await load("$2")')
    .replaceAll(/^import (\{.+?\}) from "(.+?)";$/gms, 'const $1 = await load("$2")')
    .replace(/^export \{\s*(\w+) as default\s*\};$/m, 'return $1')
    .replace(/^export default /m, 'return ')
  const load = async (name: string) => modules[name] ?? (await import(name))
  const console = { log: (...words: unknown[]) => void printed.push(format(...words)) }
  let isOver = false
  const run = new AsyncFunction('load', 'console', 'fetch', body)(load, console, fetch)
  const ended = run.finally(() => {
    isOver = true
  })
  ended.catch(() => {})
  for (let turn = 0; turn < 50_000 && !isOver; turn++) {
    await clock.advance(Number.isFinite(clock.nextAt) ? Math.max(0, clock.nextAt - clock.now()) : 0)
  }
  assert.ok(isOver, 'it ends')
  const exported = (await ended) as { fetch?: () => Promise<Response>; scheduled?: unknown } | undefined
  if (exported?.fetch) {
    const response = exported.fetch()
    await clock.advance(1000)
    assert.equal((await response).status, 200)
  }
  if (typeof exported?.scheduled === 'function') {
    const kept = new Map<string, string>()
    const KV = {
      get: async (key: string) => JSON.parse(kept.get(key) ?? 'null'),
      put: async (key: string, value: string) => void kept.set(key, value),
    }
    for (let minute = 0; minute < 2; minute++) {
      const done = exported.scheduled({}, { KV })
      await clock.advance(10_000)
      await done
    }
    assert.equal(JSON.parse(kept.get('pace')!).version > 0, true)
  }
  return printed
}

for (const page of PAGES) {
  for (const { line, code } of blocksOf(page)) {
    test(`docs/${page}.md, line ${line}`, async () => {
      const expected = [...code.matchAll(/^\/\/ → (.*)$/gm)].map(([, said]) => said)
      assert.ok(expected.length > 0 || code.includes('export default'), 'it says what it prints')
      assert.deepEqual(await play(code), expected)
    })
  }
}

test('every error is in docs/errors.md, every event and warning in docs/events.md', () => {
  const source = (name: string) => readFileSync(new URL(`../../js/${name}.ts`, import.meta.url), 'utf8')
  const codes = new Set([...source('base/errors').matchAll(/'(ERR_\w+)'/g)].map(([, code]) => code!))
  assert.ok(codes.size >= 12)
  for (const code of codes) assert.ok(text('errors').includes(`| \`${code}\` |`), code)
  const events = source('core/events').match(/export interface ThrottleEvents \{(.*?)^\}/ms)![1]!
  const names = [...events.matchAll(/^ {2}(\w+):/gm)].map(([, name]) => name!)
  assert.ok(names.length >= 9)
  for (const name of names) assert.ok(text('events').includes(`| \`${name}\` |`), name)
  const warnings = source('core/events').match(/class WarningEvent .*?readonly code:(.*?)\/\*\*/s)![1]!
  const known = [...warnings.matchAll(/'([\w-]+)'/g)].map(([, code]) => code!)
  assert.ok(known.length >= 8)
  for (const code of known) assert.ok(text('events').includes(`| \`${code}\` |`), code)
})
