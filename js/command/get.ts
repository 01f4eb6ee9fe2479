/**
 * `autothrottle-cli get`: a list of URLs, a line each, or objects of JSON that say more; from a file or from
 * a pipe, which is read only as fast as there is room. A line that is neither comes back with its error.
 */
import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { ThrottleOptions } from 'autothrottle'
import { toUrl } from '../scopes/names.js'
import type { Body } from './body.js'
import type { Job } from './journal.js'
import { decoder } from './links.js'
import { perform } from './perform.js'
import type { Reader, Run, Task } from './run.js'
import { type Settings, settingsOf, UsageError, urlOf } from './settings.js'
import type { Values } from './usage.mjs'
import type { Entry } from './warc.js'

/** @param more options of the throttle, for tests: a clock, a web. */
export async function get(files: readonly string[], values: Values, more?: ThrottleOptions): Promise<Run> {
  const [file] = files
  if (file === undefined || files.length > 1)
    throw new UsageError(`get: want one file, or - for standard input; got ${files.length}`)
  if (file !== '-' && !existsSync(file)) {
    const hint = toUrl(file) ? `; for one URL: echo ${file} | autothrottle-cli get -` : ''
    throw new UsageError(`get: there is no file ${file}${hint}`)
  }
  const settings = settingsOf(values, more)
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
    const name = this.#file === '-' ? 'standard input' : this.#file
    let number = 0
    let jobs: Job[] = []
    for await (const line of lines) {
      if (number++ === 0 && /^\ufffd{2}.?\0|^.\0/.test(line))
        throw new UsageError(`get: ${name} is in UTF-16; want UTF-8`)
      try {
        const job = this.#jobOf(line.trim())
        if (job) jobs.push(job)
      } catch (error) {
        await run.reject(line.trim(), number, (error as Error).message)
      }
      if (jobs.length < 100 && this.#file !== '-') continue
      run.add(jobs)
      jobs = []
      await run.room()
    }
    run.add(jobs)
    if (number === 0) run.say(`${name} has no lines`)
  }

  read({ url, request }: Job, response: Response, entry: Entry): Reader {
    if (response.redirected && response.url !== url) entry.finalUrl = response.url
    const type = response.headers.get('content-type') ?? ''
    const isText = /^text\/|[/+](?:json|xml|javascript)\b|charset=/.test(type)
    const { url: _, method: __, headers: ___, body: ____, ...input } = request ?? {}
    return {
      isReadingAgain: this.#hasBody,
      end: (body) => {
        const { held } = body
        if (this.#hasBody && held && isText) entry.body = decoder(type).decode(held)
        else if (this.#hasBody && held) entry.base64 = held.toString('base64')
        else if (this.#hasBody && isText) entry.long = { key: 'body', texts: () => textsOf(body, type) }
        else if (this.#hasBody) entry.long = { key: 'base64', texts: () => base64Of(body) }
        if (Object.keys(input).length > 0) entry.input = input
        return []
      },
    }
  }

  /** Empty lines and comments are skipped. */
  #jobOf(line: string): Job | undefined {
    if (line === '' || line.startsWith('#')) return undefined
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
  }
}

async function* textsOf(body: Body, type: string): AsyncGenerator<string> {
  const decoding = decoder(type)
  for await (const part of body.read()) yield decoding.decode(part, { stream: true })
  yield decoding.decode()
}

/** Three bytes are four letters: what is over waits for the next piece. */
async function* base64Of(body: Body): AsyncGenerator<string> {
  let rest: Uint8Array = Buffer.alloc(0)
  for await (const part of body.read()) {
    const bytes = Buffer.concat([rest, part])
    const whole = bytes.length - (bytes.length % 3)
    yield bytes.toString('base64', 0, whole)
    rest = bytes.subarray(whole)
  }
  yield Buffer.from(rest).toString('base64')
}
