/** Crawls and lists in this process, against a web of functions and a clock that tests move on. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { FakeClock } from 'autothrottle/testing'
import { crawl } from '../../js/command/crawl.js'
import { get } from '../../js/command/get.js'
import type { Run } from '../../js/command/run.js'
import { readArguments } from '../../js/command/usage.mjs'

const folder = mkdtempSync(join(tmpdir(), 'autothrottle-run-'))
after(() => rmSync(folder, { recursive: true }))
const at = (name: string) => join(folder, name)
let files = 0
/** A path that was not given before. */
export const fresh = (ending: string) => at(`${++files}${ending}`)

export type Page = (init: RequestInit, clock: FakeClock) => Response | Promise<Response>
export const html = (body: string) => () => new Response(body, { headers: { 'content-type': 'text/html' } })
export const broken = (code: string) => () =>
  Promise.reject(new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) }))

/** Runs a command to its end; gives what it did, its index, and what was asked for. */
export async function run(
  command: 'crawl' | 'get',
  args: readonly string[],
  web: Record<string, Page>,
  out = fresh(''),
) {
  const clock = new FakeClock()
  const asked: string[] = []
  const fetch = async (input: RequestInfo | URL, init: RequestInit = {}) => {
    asked.push(String(input))
    return (web[String(input)] ?? (() => new Response('not here', { status: 404 })))(init, clock)
  }
  const { positionals, values } = readArguments(command, [...args, '--out', out, '--quiet'])
  const perform = command === 'crawl' ? crawl : get
  const done: Run = await played(clock, perform(positionals, values, { clock, fetch }))
  const index = readFileSync(join(out, 'index.jsonl'), 'utf8').trim().split('\n').filter(Boolean)
  const lines = index.map((line) => JSON.parse(line) as Record<string, unknown>)
  const codes = Object.fromEntries(lines.map(({ url, status, code }) => [url, status ?? code]))
  return { done, lines, codes, asked, out, seconds: clock.now() / 1000, totals: done.totals }
}

/** A list of URLs as a file. */
export function listOf(...lines: readonly string[]): string {
  const file = fresh('.txt')
  writeFileSync(file, lines.join('\n'))
  return file
}

/** Moves the clock on until it is over. */
export async function played<T>(clock: FakeClock, running: Promise<T>): Promise<T> {
  let isOver = false
  const end = () => {
    isOver = true
  }
  running.then(end, end)
  // Time stands still while a file is read, written or closed: how fast the disk is changes no test.
  while (!isOver) {
    await setImmediate()
    const isBusy = process.getActiveResourcesInfo().some((name) => /^(FSReq|CloseReq)/.test(name))
    if (!isBusy) await clock.advance(500)
  }
  return running
}
