/**
 * `--state FILE`: what a run needs to go on, however it ended. FILE is a journal that is only ever appended
 * to: what was found, and (where there is no index that says it) what is done. The pace is beside it, in
 * FILE.pace, written anew every few seconds and put in place whole.
 *
 * The links of a page are noted before its line of the index is written, and that line is what makes it done.
 * Whatever was killed in between is fetched once more, and is in the index once.
 */
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import type { Snapshot, Throttle } from 'autothrottle'
import { LineWriter, parsedLine, recoverLines } from './lines.js'
import { opened, UsageError } from './settings.js'

/** A URL to fetch, and how it was found. */
export interface Job {
  readonly url: string
  /** Links away from the URLs that were given. */
  readonly depth: number
  /** It was given, or is where something led that was given. */
  readonly isStart?: boolean
  /** A start led here from another host: its host was not given. */
  readonly isLed?: boolean
  /** Redirects and sitemaps that led here, one after the other, since a link of a page. */
  readonly hops?: number
  /** The job's key, where that is not its URL. */
  readonly key?: string
  /** The request, as the input line of `get` describes it. */
  readonly request?: Readonly<Record<string, unknown>>
}

export const keyOf = ({ key, url }: Job): string => key ?? url

const VERSION = 1
const PACE_EVERY = 5000

export class Journal {
  readonly #file: string
  readonly #lines: LineWriter
  #savedAt = 0

  /** Opens it, and tells what it knows: what is done (and whether it failed), then what was found. */
  constructor(
    file: string,
    command: string,
    onDone: (key: string, isFailed: boolean) => void,
    onFound: (job: Job) => void,
  ) {
    this.#file = file
    const isNew = !isJournal(file, command)
    const found: Job[] = []
    recoverLines(file, (line) => {
      const { done, failed, ...job } = parsedState(line, file)
      if (typeof done === 'string') onDone(done, failed === true)
      else if (typeof job.url === 'string') found.push(job as unknown as Job)
    })
    this.#lines = new LineWriter(file)
    if (isNew) this.#lines.append([headerOf(command)])
    for (const job of found) onFound(job)
  }

  /** Before anything is touched: the end of another file is no torn line of ours. */
  static claim(file: string, command: string): void {
    isJournal(file, command)
    lock(`${file}.lock`)
  }

  /** The pace that was learned. */
  static pace(file: string): Snapshot | undefined {
    if (!existsSync(`${file}.pace`)) return undefined
    try {
      return JSON.parse(readFileSync(`${file}.pace`, 'utf8'))
    } catch (error) {
      throw new UsageError(`--state: ${file}.pace: ${(error as Error).message}`)
    }
  }

  found(jobs: readonly Job[]): void {
    this.#lines.append(jobs)
  }

  done(key: string, isFailed: boolean): void {
    this.#lines.append([isFailed ? { done: key, failed: true } : { done: key }])
  }

  /** Keeps the pace, now and then. */
  savePace(throttle: Throttle, now: number, isLast = false): void {
    if (!isLast && now - this.#savedAt < PACE_EVERY) return
    this.#savedAt = now
    writeFileSync(`${this.#file}.pace.new`, JSON.stringify(throttle.snapshot()))
    renameSync(`${this.#file}.pace.new`, `${this.#file}.pace`)
  }

  close(): void {
    this.#lines.close()
    rmSync(`${this.#file}.lock`, { force: true })
  }
}

const headerOf = (command: string) => ({ autothrottle: VERSION, of: command })

/**
 * Whether there is one; an empty file, or the beginning of a first line, is as good as none.
 *
 * @throws {UsageError} if it is another file, or of another command.
 */
function isJournal(file: string, command: string): boolean {
  if (!existsSync(file)) return false
  const fd = openSync(file, 'r')
  const bytes = Buffer.alloc(100)
  const begins = bytes.toString('utf8', 0, readSync(fd, bytes, 0, bytes.length, 0))
  closeSync(fd)
  const header = `${JSON.stringify(headerOf(command))}\n`
  if (begins.startsWith(header)) return true
  if (header.startsWith(begins)) return false
  const other = /^\{"autothrottle":\d+,"of":"(\w+)"\}\n/.exec(begins)?.[1]
  const got = other === undefined ? 'another file' : `one of ${other === command ? 'another release' : other}`
  throw new UsageError(`--state: ${file}: want a state of ${command}; got ${got}`)
}

function parsedState(line: string, file: string): Record<string, unknown> {
  try {
    return parsedLine(line, file)
  } catch (error) {
    throw new UsageError(`--state: ${(error as Error).message}`)
  }
}

/** Two processes that write one journal would each do the other's work again. */
function lock(file: string): void {
  const holder = existsSync(file) ? Number(readFileSync(file, 'utf8')) : Number.NaN
  if (holder !== process.pid && isAlive(holder))
    throw new UsageError(`--state: process ${holder} uses it; if it does not, remove ${file}`)
  opened('--state', () => writeFileSync(file, String(process.pid)))
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
