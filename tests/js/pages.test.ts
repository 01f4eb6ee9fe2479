/**
 * The pages together. Links lead to files and headings that are there, and readers' questions have an answer.
 * The README is short, and its code runs. `docs/api.md` and the pictures are what the sources do.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
// @ts-expect-error: a script without types.
import { api } from '../../docs/api.mjs'
// @ts-expect-error: a script without types.
import { pictures } from '../../docs/images/pictures.mjs'
// @ts-expect-error: a script without types.
import { headline, race } from '../../site/playground/race.js'
import { pages, read, root } from './prose.js'

/** The anchor of a heading: as GitHub makes it. */
const slug = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

const withoutCode = (text: string) => text.replaceAll(/^```.*?^```$/gms, '').replaceAll(/`[^`\n]*`/g, '')
const headings = (text: string) =>
  new Set(
    [...text.replaceAll(/^```.*?^```$/gms, '').matchAll(/^#+ (.+)$/gm)].map(([, words]) => slug(words!)),
  )

/** Where a page links to a file of ours by its address, as PyPI needs it: it resolves no relative link. */
const OURS = 'https://github.com/autothrottle/autothrottle/blob/main/'

function linksOf(path: string): string[] {
  const up = '../'.repeat(path.split('/').length - 1)
  const text = withoutCode(read(path)).replaceAll(OURS, up)
  const found = [...text.matchAll(/\]\(([^)\s]+)\)/g), ...text.matchAll(/^\[[^\]]+\]: (\S+)$/gm)]
  return found.map(([, target]) => target!).filter((target) => !/^[a-z]+:/.test(target))
}

for (const path of pages) {
  test(`links of ${path}`, () => {
    for (const target of linksOf(path)) {
      const [file, anchor] = target.split('#')
      const other = file ? join(dirname(path), file) : path
      assert.ok(existsSync(join(root, other)), target)
      if (anchor) assert.ok(headings(read(other)).has(anchor), `${target}: no such heading`)
    }
  })
}

assert.ok(linksOf('README.md').length > 20)

test('PyPI shows python/README.md with links that work there', () => {
  const relative = withoutCode(read('python/README.md')).match(/\](?:\(|: )(?!https:|#).*/g)
  assert.deepEqual(relative, null)
})

/** Pages that tell users to install something. */
const INSTALLS = /\b(?:npm install|npx|pip install|deno add|bun add) "?(?:npm:)?autothrottle/

for (const path of pages.filter((path) => path !== 'CONTRIBUTING.md' && INSTALLS.test(read(path))))
  test(`${path} says how to install what is not published yet`, () => {
    const there = path === 'docs/start.md' || /start\.md#install/.test(read(path))
    assert.ok(there, 'it links to docs/start.md#install')
  })

/**
 * Ten questions of readers, each answered within two clicks from the README and within 200 words of where
 * the last click leads. Words of code count: a reader sees them, too.
 *
 * A question, the clicks (links as they stand on the page before), and what answers it.
 */
const QUESTIONS: [question: string, clicks: string[], answer: RegExp][] = [
  ['Which limiter do I want?', ['docs/comparison.md#when-to-take-another'], /p-limit is a kilobyte/],
  ['How do I send five requests a second?', [], /createThrottle\(\{ rate: 5 \}\)/],
  ['What about a 429?', ['docs/errors.md#by-what-you-see'], /429 Too Many Requests.*retry: \{ limit: 5 \}/s],
  ['Two processes, one limit?', ['docs/shared.md'], /shared: local\(/],
  ['Tokens a minute?', ['docs/llm.md'], /tokens a minute.*llmFetch\(createThrottle/s],
  ['Why is it slow?', ['docs/start.md#common-questions'], /throttle\.peek\(url\)\.reason/],
  ['How do I test my code?', ['docs/testing.md'], /new FakeClock\(\)/],
  ['How do I use it in Scrapy?', ['docs/scrapy.md'], /DOWNLOADER = "autothrottle\.scrapy\.Downloader"/],
  ['In a Worker?', ['docs/runtimes.md#one-throttle-per-process'], /Cloudflare Workers.*Durable Object/s],
  ['What does it cost?', ['docs/comparison.md#what-it-costs'], /the module in it \| \d{3} \|/],
  // Two clicks.
  ['Behind a proxy?', ['docs/clients.md', '#behind-a-proxy'], /EnvHttpProxyAgent/],
  ['What changes when I switch from Scrapy?', ['docs/scrapy.md', '#the-day-of-the-switch'], /3\.3 requests/],
]

/** A page from the heading that a link names. */
function from(path: string, anchor = ''): string {
  const page = read(path)
  if (!anchor) return page
  const heading = [...page.matchAll(/^#+ (.+)$/gm)].find(([, words]) => slug(words!) === anchor)
  assert.ok(heading, `${path}: no heading ${anchor}`)
  return page.slice(heading.index)
}

/** Its first words, as a reader sees them: no marks of tables, and links without where they lead. */
function start(text: string, count: number): string {
  const seen = text.replaceAll(/\]\([^)\s]+\)/g, ']')
  let words = 0
  for (const { 0: word, index } of seen.matchAll(/\S+/g)) {
    if (/[\p{L}\p{N}]/u.test(word) && ++words > count) return seen.slice(0, index)
  }
  return seen
}

for (const [question, clicks, answer] of QUESTIONS)
  test(question, () => {
    assert.ok(clicks.length <= 2)
    let [path, anchor] = ['README.md', '']
    for (const click of clicks) {
      assert.ok(read(path).includes(`](${click})`), `${path} links to ${click}`)
      const [file, heading = ''] = click.split('#')
      path = file ? join(dirname(path), file) : path
      anchor = heading
    }
    assert.match(start(from(path, anchor), 200), answer)
  })

const readme = read('README.md')
const blocks = [...readme.matchAll(/```js\n(.*?)```/gs)]
const AsyncFunction = (async () => {}).constructor as new (
  ...source: string[]
) => (...args: unknown[]) => Promise<void>

/** Runs a block as the body of a function; imports become parameters. */
async function run(source: string, scope: Record<string, unknown>): Promise<void> {
  const body = source.replaceAll(/^import .*$/gm, '')
  await new AsyncFunction(...Object.keys(scope), body)(...Object.values(scope))
}

test('the first program', async () => {
  const { createThrottle } = await import('autothrottle')
  const { FakeClock } = await import('autothrottle/testing')
  const clock = new FakeClock()
  const printed: unknown[][] = []
  const fetch = async () => new Response('ok')
  const running = run(blocks[0]![1]!, {
    createThrottle: (options: object) => createThrottle({ ...options, clock, fetch }),
    console: { log: (...words: unknown[]) => printed.push(words) },
  })
  await clock.advance(60_000)
  await running
  assert.deepEqual(printed, [[200]])
  assert.equal(blocks.length, 1, 'every block is run')
})

test('it is 900 words at most', () => {
  assert.ok(readme.split(/\s+/).length <= 900)
})

test('the lines under the title agree with package.json and the table of sizes', () => {
  const { license, engines, dependencies, types } = JSON.parse(read('package.json'))
  const size = read('docs/comparison.md').match(/\| `autothrottle`, the module in it \| (\d+) \|/)?.[1]
  assert.ok(readme.includes(`${license} · Node ${engines.node.replace('>=', '≥ ')}, `))
  assert.ok(readme.includes(' · no dependencies · types included · ') && !dependencies && types)
  assert.ok(readme.includes(` · ${size} kB in a bundle`))
  for (const says of [`this one adds ${size}.`, ` of the ${size}: deflated`])
    assert.ok(read('docs/comparison.md').includes(says), says)
  const slim = read('docs/comparison.md').match(/\| `autothrottle\/slim`, .*? \| (\d+) \|/)?.[1]
  for (const text of [readme, read('docs/runtimes.md')])
    assert.ok(text.includes(`${size} kB`) && text.includes(`${slim} kB`))
})

test('every public member is on docs/api.md (node docs/api.mjs writes it anew)', () => {
  const page = read('docs/api.md')
  assert.equal(page, api())
  for (const member of ['throttle.map', 'permit.settle', 'scope.configure', 'boundBy'])
    assert.ok(page.includes(`| \`${member}`), member)
  const entries = readdirSync(join(root, 'js')).filter((name) => name.endsWith('.ts'))
  for (const entry of entries) {
    const code = read(`js/${entry}`)
    for (const [, name] of code.matchAll(/^export (?:async )?(?:function|const) (\w+)/gm))
      assert.match(page, new RegExp(`\\| \`${name}\\b`), `${entry}: ${name}`)
  }
})

test('the README says what the race gives', async () => {
  const { simulate } = await import('autothrottle/simulate')
  assert.ok(readme.replaceAll(/\s+/g, ' ').includes(`![${headline(race(simulate))}]`))
})

for (const [name, drawn] of Object.entries(pictures() as Record<string, string>)) {
  test(`docs/images/${name} shows what the engine does (npm run bless draws it anew)`, () => {
    const kept = read(`docs/images/${name}`)
    assert.equal(drawn, kept)
    const marks = kept.match(/<rect|<polyline/g) ?? []
    assert.ok(marks.length >= 3, 'something is drawn')
    const isShown = read('docs/policies.md').includes(`](images/${name})`)
    assert.ok(isShown || read('README.md').includes(`docs/images/${name}`), 'it is shown')
    assert.ok(kept.length < 500_000, `${kept.length} bytes`)
  })
}
