/** The code in the README, as it stands there, with a fetch that answers at once. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
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

/** Pages that are written from the sources: to look up in, not to read. */
const REFERENCE = ['settings.md', 'api.md', 'python-api.md']

test('the guide is 14,600 words at most: its tables count, code and the reference do not', () => {
  const guides = readdirSync(new URL('../../docs', import.meta.url)).filter((name) => name.endsWith('.md'))
  const pages = guides.filter((name) => !REFERENCE.includes(name)).map((name) => read(`docs/${name}`))
  const words = [readme, ...pages].flatMap((page) =>
    page
      .replaceAll(/^```.*?^```$/gms, '')
      .replaceAll(/\]\([^)]*\)|^\[[^\]]+\]: .*$/gm, ']')
      .split(/\s+/)
      .filter((word) => /[\p{L}\p{N}]/u.test(word)),
  )
  assert.ok(words.length > 10_000 && words.length <= 14_600, `${words.length} words`)
})

test('what stands under the title is what package.json and the table of sizes say', () => {
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
