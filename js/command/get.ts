/**
 * `autothrottle get`: a list of URLs, a line each, or objects of JSON that say more; from a file or from a
 * pipe, which is read only as fast as there is room.
 */
import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { toUrl } from '../scopes/places.js'
import type { Job } from './journal.js'
import { decoded } from './links.js'
import { type Answer, perform, type Run, type Task } from './run.js'
import { type Settings, settingsOf, UsageError, urlOf } from './settings.js'
import type { Entry } from './store.js'
import type { Values } from './usage.mjs'

export async function get(files: readonly string[], values: Values): Promise<Run> {
  const [file] = files
  if (file === undefined || files.length > 1)
    throw new UsageError(`get: want one file, or - for standard input; got ${files.length}`)
  if (file !== '-' && !existsSync(file)) {
    const hint = toUrl(file) ? `; for one URL: echo ${file} | autothrottle get -` : ''
    throw new UsageError(`get: there is no file ${file}${hint}`)
  }
  const settings = settingsOf(values)
  return perform(settings, new List(file, settings, values.body === true))
}

class List implements Task {
  readonly command = 'get'
  readonly most = Number.POSITIVE_INFINITY
  readonly #file: string
  readonly #settings: Settings
  readonly #hasBody: boolean

  constructor(file: string, settings: Settings, hasBody: boolean) {
    this.#file = file
    this.#settings = settings
    this.#hasBody = hasBody
  }

  init({ request = {} }: Job): RequestInit {
    const { method, headers, body } = request
    const text = typeof body === 'object' && body !== null ? JSON.stringify(body) : body
    return {
      ...(typeof method === 'string' ? { method } : {}),
      ...(text === undefined || text === null ? {} : { body: String(text) }),
      headers: { ...this.#settings.headers, ...(headers as Record<string, string> | undefined) },
    }
  }

  async feed(run: Run): Promise<void> {
    const input = this.#file === '-' ? process.stdin : createReadStream(this.#file)
    const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })
    run.signal.addEventListener('abort', () => {
      lines.close()
      input.destroy()
    })
    let number = 0
    let jobs: Job[] = []
    for await (const line of lines) {
      number++
      const job = this.#jobOf(line.trim(), number)
      if (job) jobs.push(job)
      if (jobs.length < 100 && this.#file !== '-') continue
      run.add(jobs)
      jobs = []
      await run.room()
    }
    run.add(jobs)
  }

  onAnswer({ url, request }: Job, { response, body, type }: Answer, entry: Entry): Iterable<Job> {
    if (response.redirected && response.url !== url) entry.finalUrl = response.url
    if (this.#hasBody) {
      const isText = /^text\/|[/+](?:json|xml|javascript)\b|charset=/.test(type)
      if (isText) entry.body = decoded(body, type)
      else entry.base64 = body.toString('base64')
    }
    const { url: _, method: __, headers: ___, body: ____, ...input } = request ?? {}
    if (Object.keys(input).length > 0) entry.input = input
    return []
  }

  /** Empty lines and comments say nothing. */
  #jobOf(line: string, number: number): Job | undefined {
    if (line === '' || line.startsWith('#')) return undefined
    try {
      if (!line.startsWith('{')) return { url: urlOf(line).href, depth: 0 }
      const request = JSON.parse(line) as Record<string, unknown>
      const { url, method, headers } = request
      const isRight =
        typeof url === 'string' &&
        (method === undefined || typeof method === 'string') &&
        (headers === undefined || (typeof headers === 'object' && headers !== null))
      if (!isRight) throw new Error('want {"url": "…"}, and method and headers as fetch has them')
      const key = createHash('sha256').update(line).digest('hex').slice(0, 16)
      return { url: urlOf(url).href, depth: 0, key: `${url} ${key}`, request }
    } catch (error) {
      throw new UsageError(`${this.#file}, line ${number}: ${(error as Error).message}`)
    }
  }
}
