/**
 * The output of a run: bodies as files, a line of the index for each URL, and WARC.
 *
 * The line of the index comes last and makes the rest valid: a body without a line is written anew, a WARC
 * record without a line is cut off when the run goes on.
 */
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { keepLines, LineWriter, parsedLine, recoverLines } from './lines.js'
import { opened, type Settings, UsageError } from './settings.js'
import { print } from './terminal.js'
import { type Entry, type Long, openWarc, type Recorded, type Warc } from './warc.js'

/** Errors that another try does not mend: robots.txt forbids the URL, or a line of the list is wrong. */
const FINAL = new Set(['ERR_ROBOTS', 'ERR_LINE'])

/** Whether a run that goes on tries it again: what had no answer; with `--retry-failed`, refusals as well. */
export function isAgain(entry: Entry, isRetryingFailed: boolean): boolean {
  if (entry.error !== undefined && !FINAL.has(entry.code ?? '')) return true
  return isRetryingFailed && isRefused(entry)
}

/** Whether only `--retry-failed` tries it again. */
export const isRefused = ({ status = 0, code }: Pick<Entry, 'status' | 'code'>) =>
  status >= 400 || code === 'ERR_ROBOTS'

const EXTENSIONS = new Map([
  ['text/html', 'html'],
  ['application/xhtml+xml', 'html'],
  ['application/json', 'json'],
  ['application/xml', 'xml'],
  ['text/xml', 'xml'],
  ['text/plain', 'txt'],
  ['text/css', 'css'],
  ['text/javascript', 'js'],
  ['image/png', 'png'],
  ['image/jpeg', 'jpg'],
  ['image/svg+xml', 'svg'],
  ['application/pdf', 'pdf'],
])

export class Store {
  readonly #out: string | undefined
  readonly #index: LineWriter | undefined
  readonly #warc: Warc | undefined
  readonly #made = new Set<string>()
  /** Where long bodies wait for their archive. */
  readonly #folder: string
  #last: Promise<unknown> = Promise.resolve()

  private constructor(
    out: string | undefined,
    index: LineWriter | undefined,
    warc: Warc | undefined,
    folder: string,
  ) {
    this.#out = out
    this.#index = index
    this.#warc = warc
    this.#folder = folder
  }

  /** Opens it, and tells what its index has. Lines of what is tried again are left out of it. */
  static async open(settings: Settings, onDone: (key: string) => void): Promise<Store> {
    const { out, warc, state, isRetryingFailed } = settings
    let last: Entry | undefined
    const file = out === undefined ? undefined : join(out, 'index.jsonl')
    if (file !== undefined && existsSync(file)) {
      if (state === undefined)
        throw new UsageError(`--out: ${file} is there already: go on with --state, or take another folder`)
      const isDone = (line: string) => {
        const entry = parsedLine(line, file) as unknown as Entry
        if (entry.warc && entry.warc.offset >= (last?.warc?.offset ?? 0)) last = entry
        if (isAgain(entry, isRetryingFailed)) return false
        onDone(entry.key ?? entry.url)
        return true
      }
      let isWhole = true
      recoverLines(file, (line) => {
        isWhole = isDone(line) && isWhole
      })
      if (!isWhole) keepLines(file, isDone)
    }
    if (out !== undefined) opened('--out', () => mkdirSync(out, { recursive: true }))
    const index = file === undefined ? undefined : opened('--out', () => new LineWriter(file))
    const archive = warc === undefined ? undefined : await openWarc(warc, last)
    return new Store(out, index, archive, warc === undefined ? tmpdir() : dirname(warc))
  }

  /** Whether the index itself says what is done. */
  get hasIndex(): boolean {
    return this.#index !== undefined
  }

  /** Whether bodies are read once more, for the archive. */
  get isArchive(): boolean {
    return this.#warc !== undefined
  }

  /** A name for a file that is there for a moment. */
  spare(): string {
    return join(this.#folder, `.autothrottle-${randomUUID()}`)
  }

  /** Where a body goes, below the folder and in all; its folder is there then. */
  async place(url: string, type: string): Promise<{ file: string; path: string } | undefined> {
    if (this.#out === undefined) return undefined
    const file = fileOf(new URL(url), type)
    const folder = join(this.#out, file.slice(0, file.lastIndexOf('/')))
    if (!this.#made.has(folder)) {
      await mkdir(folder, { recursive: true })
      if (this.#made.size > 10_000) this.#made.clear()
      this.#made.add(folder)
    }
    return { file, path: join(this.#out, file) }
  }

  /** Adds an answer to the archive; what is left to do is one write. */
  async archive(entry: Entry, kept: Recorded): Promise<void> {
    if (this.#warc) entry.warc = await this.#warc.append(entry, kept)
  }

  /** The line that makes it done. Lines follow each other. */
  commit({ long, ...entry }: Entry): Promise<void> {
    const written = this.#last.then(async () => {
      if (long && this.#index) await this.#index.appendParts(lineOf(entry, long))
      else if (this.#index) this.#index.append([entry])
      else if (process.stdout.isTTY) return
      else if (long) for await (const part of lineOf(entry, long)) await printed(part)
      else await printed(`${JSON.stringify(entry)}\n`)
    })
    this.#last = written.catch(() => {})
    return written
  }

  close(): void {
    this.#index?.close()
    this.#warc?.close()
  }
}

/** A line with a long body, piece by piece. */
async function* lineOf(entry: Entry, { key, texts }: Long): AsyncGenerator<string> {
  yield `${JSON.stringify(entry).slice(0, -1)},"${key}":"`
  for await (const text of texts()) yield JSON.stringify(text).slice(1, -1)
  yield '"}\n'
}

async function printed(text: string): Promise<void> {
  const isRoom = print(text)
  if (!isRoom) await new Promise((resolve) => process.stdout.once('drain', resolve))
}

/**
 * Where a body goes: the URL's path as folders, and a name with half of the URL's hash. `/a`, `/a/b` and
 * `/a?b` are therefore three files on every system.
 */
export function fileOf(url: URL, type: string): string {
  const hash = createHash('sha256').update(url.href).digest('hex').slice(0, 32)
  const segments = url.pathname.split('/').filter(Boolean).map(plain)
  const last = url.pathname.endsWith('/') ? 'index' : (segments.pop() ?? 'index')
  const [, stem = last, own] = /^(.+)\.(\w{1,8})$/.exec(last) ?? []
  const extension = EXTENSIONS.get(type.split(';', 1)[0]!.trim().toLowerCase()) ?? own ?? 'bin'
  const host = plain(url.host.replaceAll(':', '_'))
  return ['pages', host, ...segments.slice(0, 8), `${stem}-${hash}.${extension}`].join('/')
}

/** Names of devices, which Windows takes for no file, whatever stands behind a dot. */
const DEVICE = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i

/** A name that every file system takes: Windows leaves out dots at the end. */
function plain(segment: string): string {
  const name = segment
    .replaceAll(/[^\w.~-]/g, '_')
    .slice(0, 80)
    .replace(/\.+$/, '_')
  return DEVICE.test(name) ? `_${name}` : name || '_'
}
