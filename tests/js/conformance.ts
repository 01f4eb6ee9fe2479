/**
 * The test that every client must pass, with the real library against a server on this machine: a 429 and its
 * `Retry-After` count; retries come back; an abort frees its place, a slot comes back on an error, redirects
 * are seen; the pace holds. And no request goes past the throttle: in every test the server has seen as many
 * requests as the throttle let go.
 *
 * Time is a `FakeClock`; only what the clients themselves wait for (a retry's millisecond) is real.
 */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createThrottle, type Throttle, type ThrottleOptions } from 'autothrottle'
import { FakeClock } from 'autothrottle/testing'
import { type Listening, listen } from '../serve.mjs'
import { deadOrigin } from './serve.js'

/** Sends one request, and gives the status of its answer, also where the client throws it. */
export type Send = (url: string, signal?: AbortSignal) => Promise<number | undefined>

/** A client, and what is different about it. */
export interface Client {
  readonly name: string
  /** How it is given, as the table in docs/clients.md says it. */
  readonly how: string
  make(throttle: Throttle, retries: number): Send
  /** Options that its way of sending needs. */
  options?: (retries: number) => ThrottleOptions
  /** The part that sends again. */
  readonly retries: 'its own' | 'the throttle’s' | 'yours'
  readonly redirects: 'each hop' | 'one permit' | 'not followed'
  /** How a wait is aborted. Default `signal`. */
  readonly abort?: 'signal' | 'page closed' | 'timeout'
}

export interface Row {
  readonly name: string
  readonly how: string
  readonly retries: string
  readonly abort: string
  readonly redirects: string
}

/** A line of the table. */
export const lineOf = ({ name, how, retries, abort = 'signal', redirects }: Client): string =>
  `| ${name} | ${how} | yes | ${retries} | ${abort} | yes | ${redirects} | yes |`

/** A server that answers as the last part of the path says. */
export class Site {
  readonly hits: string[] = []
  readonly scripts = new Map<string, number[]>()
  #listening: Listening | undefined

  async listen(): Promise<void> {
    this.#listening = await listen((request, response) => {
      const name = new URL(request.url!, 'http://x').pathname.split('/').at(-1)!
      if (name === 'favicon.ico') return void response.writeHead(204).end()
      request.resume()
      this.hits.push(name)
      if (name === 'hang') return
      const status = this.scripts.get(name)?.shift() ?? 200
      if (status === 302) return void response.writeHead(302, { location: '/b/there' }).end('moved')
      const isPage = request.headers.accept?.includes('text/html') ?? false
      response.writeHead(status, {
        'content-type': isPage ? 'text/html' : 'application/json',
        ...(status === 429 ? { 'retry-after': '7' } : {}),
      })
      response.end(isPage ? '<title>page</title>' : '{"data":{"ok":true}}')
    })
  }

  get origin(): string {
    return this.#listening!.url
  }

  close(): void {
    this.#listening?.stop()
  }
}

/** Until a promise is settled, lets the clock go on whenever something waits for the throttle. */
async function played<T>({ clock, throttle }: Playing, promise: Promise<T>): Promise<T> {
  let isOver = false
  const over = () => {
    isOver = true
  }
  promise.then(over, over)
  const goOn = () => (throttle.stats().waiting > 0 ? clock.advance(1) : pause())
  await until(() => isOver, goOn)
  return promise
}

interface Playing {
  readonly clock: FakeClock
  readonly throttle: Throttle
}

const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 1))
let patience = 120_000

/**
 * Turns of the event loop until something is so; after two minutes it is a failure instead of a hang. A hang
 * in one test comes back in most: the tests after it wait for a second.
 */
export async function until(isSo: () => boolean, turn: () => Promise<void> = pause): Promise<void> {
  const last = performance.now() + patience
  while (!isSo()) {
    if (performance.now() > last) {
      patience = 1000
      assert.fail(`still not so: ${isSo}. Is pkg/ older than its sources? npm run build`)
    }
    await turn()
  }
}

const pathsOf = (site: Site, from: number) => site.hits.slice(from)

/** Registers the tests of a client. */
export function conforms(client: Client, site: Site, skip: string | false = false): void {
  const { name, make, retries, redirects } = client
  const setUp = (given: ThrottleOptions = {}, attempts = 0) => {
    const clock = new FakeClock()
    const throttle = createThrottle({
      clock,
      delay: 0,
      slotDelay: 0,
      jitter: false,
      backoff: {},
      ...client.options?.(attempts),
      ...given,
    })
    const settled: (number | undefined)[] = []
    throttle.addEventListener('settle', ({ status }) => settled.push(status))
    const from = site.hits.length
    const host = new URL(site.origin).host
    const nothingPassed = (unseen = 0) =>
      assert.equal(site.hits.length - from, settled.length + unseen, pathsOf(site, from).join(' '))
    return { clock, throttle, settled, host, send: make(throttle, attempts), nothingPassed, from }
  }

  test(`${name}: a 429 and its Retry-After are heard, and a 200`, { skip }, async () => {
    const { clock, throttle, settled, host, send, nothingPassed } = setUp()
    site.scripts.set('refused', [429])
    assert.equal(await played({ clock, throttle }, send(`${site.origin}/b/refused`)), 429)
    await throttle.idle()
    const { backoffStep, holdUntil, inFlight } = throttle.scope(host).stats
    assert.deepEqual([settled, backoffStep, inFlight], [[429], 1, 0])
    assert.ok(holdUntil! > clock.now() + 5000, `held until ${holdUntil}, now ${clock.now()}`)
    throttle.scope(host).reset()
    assert.equal(await played({ clock, throttle }, send(`${site.origin}/b/page`)), 200)
    await throttle.idle()
    assert.deepEqual(settled, [429, 200])
    nothingPassed()
  })

  test(`${name}: a retry comes back to the throttle (${retries})`, { skip }, async () => {
    const { clock, throttle, settled, send, nothingPassed } = setUp({ backoff: false }, 1)
    site.scripts.set('again', [503])
    assert.equal(await played({ clock, throttle }, send(`${site.origin}/b/again`)), 200)
    await played({ clock, throttle }, throttle.idle())
    assert.deepEqual(settled, [503, 200])
    nothingPassed()
  })

  test(`${name}: an abort frees its place, waiting and in flight`, { skip }, async () => {
    const { clock, throttle, host, send, nothingPassed } = setUp()
    throttle.pause()
    const waiting = new AbortController()
    let isOver = false
    const refused = assert.rejects(send(`${site.origin}/b/never`, waiting.signal)).finally(() => {
      isOver = true
    })
    // A crawler's timeout may come before it got as far as to wait.
    await until(() => throttle.stats().waiting === 1 || isOver)
    waiting.abort(new DOMException('enough', 'AbortError'))
    await played({ clock, throttle }, refused)
    await until(() => throttle.stats().waiting === 0)
    throttle.resume()
    nothingPassed()
    const from = site.hits.length
    // The same: a page that takes long to open is tried again.
    for (let tries = 0; tries < 5 && site.hits.length === from; tries++) {
      const flying = new AbortController()
      let isBack = false
      const flies = assert.rejects(send(`${site.origin}/b/hang`, flying.signal)).finally(() => {
        isBack = true
      })
      await until(() => site.hits.length > from || isBack)
      flying.abort(new DOMException('enough', 'AbortError'))
      await played({ clock, throttle }, flies)
      await throttle.idle()
    }
    assert.equal(site.hits.length, from + 1)
    // An abort is no news of the server; a timeout is.
    assert.equal(throttle.scope(host).stats.backoffStep, client.abort === 'timeout' ? 1 : 0)
    nothingPassed()
  })

  test(`${name}: the slot comes back when nothing answers`, { skip }, async () => {
    const { clock, throttle, send } = setUp({ maxInFlight: 1 })
    const dead = await deadOrigin()
    await assert.rejects(played({ clock, throttle }, send(`${dead}/b/page`)))
    await throttle.idle()
    const { backoffStep, inFlight } = throttle.scope(new URL(dead).host).stats
    assert.deepEqual([backoffStep, inFlight, throttle.stats().inFlight], [1, 0, 0])
    assert.equal(await played({ clock, throttle }, send(`${site.origin}/b/page`)), 200)
  })

  test(`${name}: a redirect: ${redirects}`, { skip }, async () => {
    const { clock, throttle, settled, send, nothingPassed } = setUp()
    site.scripts.set('go', [302])
    const status = await played({ clock, throttle }, send(`${site.origin}/b/go`))
    await throttle.idle()
    const wanted = { 'each hop': [302, 200], 'one permit': [200], 'not followed': [302] }[redirects]
    assert.deepEqual([status, settled], [wanted.at(-1), wanted])
    nothingPassed(redirects === 'one permit' ? 1 : 0)
  })

  test(`${name}: the pace is kept`, { skip }, async () => {
    const { clock, throttle, send, nothingPassed, from } = setUp({ delay: 1000 })
    const all = Promise.all(['p1', 'p2', 'p3'].map((path) => send(`${site.origin}/b/${path}`)))
    for (const sent of [1, 2, 3]) {
      await until(() => site.hits.length - from === sent)
      await until(() => throttle.stats().waiting === 3 - sent)
      // All that can come by itself has come: the next one waits for the clock.
      await clock.advance(999)
      assert.equal(site.hits.length - from, sent)
      await clock.advance(1)
    }
    assert.deepEqual(await all, [200, 200, 200])
    await throttle.idle()
    nothingPassed()
  })
}

// Runs the code of docs/clients.md as it stands there, with the real libraries against a server.

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
