/** Runs the code of docs/clients.md as it stands there, with the real libraries against a server. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createThrottle, type Throttle, type ThrottleOptions } from 'autothrottle'
import { type Client, lineOf, type Site } from './conformance.js'

const text = readFileSync(new URL('../../docs/clients.md', import.meta.url), 'utf8')
const AsyncFunction = (async () => {}).constructor as new (
  ...source: string[]
) => (...args: unknown[]) => Promise<void>

/** Blocks by the heading that they stand under. */
export const BLOCKS = new Map(
  [...text.matchAll(/^## (.+)\n(?:(?!^## )[\s\S])*?```js\n([\s\S]*?)```/gm)].map(([, name, code]) => [
    name!,
    code!,
  ]),
)

/** `import { a as b } from 'c'` inside of a function. */
const importing = (code: string) =>
  code.replaceAll(/^import (.+) from '(.+)'$/gm, (_, names: string, from: string) => {
    const taken = names.startsWith('{') ? names.replaceAll(' as ', ': ') : `{ default: ${names} }`
    return `const ${taken} = await load('${from}')`
  })

/** A test for each of the blocks: one request, which the throttle let go, is answered with 200. */
export function runs(
  names: readonly string[],
  site: Site,
  load: (name: string) => Promise<unknown>,
  skip: string | false = false,
): void {
  for (const name of names)
    test(`docs/clients.md runs: ${name}`, { skip }, async () => {
      const made: Throttle[] = []
      let sent = 0
      const make = (options: ThrottleOptions) => {
        const throttle = createThrottle(options)
        throttle.addEventListener('send', () => sent++)
        made.push(throttle)
        return throttle
      }
      const printed: unknown[] = []
      const loading = async (from: string) => {
        const module = (await load(from)) as Record<string, unknown>
        return from === 'autothrottle' ? { ...module, createThrottle: make } : module
      }
      const code = importing(BLOCKS.get(name)!)
        .replaceAll('https://api.example', site.origin)
        .replaceAll("'/usr/bin/chromium'", "'/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu']")
      const log = (...words: unknown[]) => void printed.push(...words)
      const scope = {
        load: loading,
        throttle: make({ rate: 50, redirects: 'throttle' }),
        console: { log, error: log },
      }
      const hits = site.hits.length
      await new AsyncFunction(...Object.keys(scope), code)(...Object.values(scope))
      assert.deepEqual([printed, site.hits.length - hits, sent], [[200], 1, 1])
      for (const throttle of made) await throttle.idle()
    })
}

/** The table says what the tests say. */
export function isInTable(clients: readonly Client[]): void {
  test('docs/clients.md has a line for each client that is tested', () => {
    for (const client of clients) assert.ok(text.includes(`\n${lineOf(client)}\n`), lineOf(client))
  })
}
