/**
 * Ten questions of readers, each answered within two clicks from the README and within 200 words of where the
 * last click leads. Words of code count: a reader sees them, too.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** A question, the clicks (links as they stand on the page before), and what answers it. */
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

/** What a heading is called in a link: as GitHub makes it. */
const slug = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

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
