/** The code in the README, as it stands there, with a fetch that answers at once. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
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

test('the first fifteen lines', async () => {
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
  assert.equal(printed.length, 10)
  assert.deepEqual(printed[0], [200, 'https://quotes.toscrape.com/page/1/'])
})

test('the example with a fake clock', async () => {
  await run(blocks[1]![1]!, { ...(await import('autothrottle')), ...(await import('autothrottle/testing')) })
  assert.equal(blocks.length, 2, 'every block is run')
})

test('what stands under the title is what package.json and the table of sizes say', () => {
  const { license, engines, dependencies, types } = JSON.parse(read('package.json'))
  const size = readme.match(/\| `autothrottle` \| (\d+) \|/)?.[1]
  assert.ok(readme.includes(`${license} · Node ${engines.node.replace('>=', '≥ ')}, `))
  assert.ok(readme.includes(' · no dependencies · types included · ') && !dependencies && types)
  assert.ok(readme.includes(` · ${size} kB in a bundle`))
})
