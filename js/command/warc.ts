/**
 * WARC 1.1 (ISO 28500) by the library warcio, if it is installed: a record for each answer, compressed by
 * itself, so that the file can be cut after any of them.
 */
import { closeSync, existsSync, ftruncateSync, openSync, statSync, writeSync } from 'node:fs'
import type { Body } from './body.js'
import { installed } from './network.js'
import { UsageError } from './settings.js'

/** A line of the index. */
export interface Entry {
  readonly url: string
  /** What identifies it, where that is not its URL. */
  key?: string | undefined
  status?: number
  /** Where it came to, if redirects were followed. */
  finalUrl?: string
  /** Where it leads, if they were not. */
  location?: string
  /** Beside the index. */
  file?: string
  bytes?: number
  /** The body was longer than `--max-size`. */
  truncated?: true
  /** The first send, as an ISO date. */
  sentAt?: string
  /** From the last send to its headers, and from the first send to the end of the body, in milliseconds. */
  latencyMs?: number
  totalMs?: number
  /** How often it was sent. */
  attempts?: number
  depth?: number
  headers?: Record<string, string>
  /** Why there is no answer. */
  error?: string
  code?: string
  /** Where it stood in a list, if it could not be read. */
  line?: number
  /** What the list said of it. */
  input?: Record<string, unknown>
  body?: string
  base64?: string
  /** Where its record is in the WARC file. */
  warc?: { offset: number; length: number }
  /** In place of `body` and `base64`. */
  long?: Long
}

/** A body that is too long to be held: it goes into its line piece by piece. */
export interface Long {
  readonly key: 'body' | 'base64'
  texts(): AsyncIterable<string>
}

/** A body, as far as it was kept, and the response that it came with. */
export interface Recorded {
  readonly body: Body
  readonly statusText: string
  readonly headers: Headers
}

/** Of warcio, what is needed. */
interface Library {
  WARCRecord: {
    create(options: object, body?: AsyncIterable<Uint8Array>): object
    createWARCInfo(options: object, info: Record<string, string>): object
  }
  WARCSerializer: new (
    record: object,
    options: { gzip: boolean },
    buffer?: { write(part: Uint8Array): void; readAll(): AsyncIterable<Uint8Array>; purge(): void },
  ) => AsyncIterable<Uint8Array>
}

/** What was undone when the body was read. */
const UNDONE = /^(?:content-encoding|content-length|transfer-encoding)$/

/** @param kept bytes that the index speaks of: what is beyond is cut off. */
export async function openWarc(file: string, kept: number): Promise<Warc> {
  const library = await installed<Library>('warcio', '--warc')
  const isNew = kept === 0
  if (isNew && existsSync(file) && statSync(file).size > 0 && kept === 0)
    if (!isOwnRest(file)) throw new UsageError(`--warc: ${file} is there already, and no index speaks of it`)
  const fd = openSync(file, existsSync(file) ? 'r+' : 'w+')
  ftruncateSync(fd, kept)
  const warc = new Warc(library, fd, kept, !file.endsWith('.warc'))
  if (isNew) await warc.begin(file)
  return warc
}

/** A file that was begun and has no record yet. */
function isOwnRest(file: string): boolean {
  return statSync(file).size < 1000
}

export class Warc {
  readonly #library: Library
  readonly #fd: number
  readonly #isPacked: boolean
  #at: number
  #last: Promise<unknown> = Promise.resolve()

  constructor(library: Library, fd: number, at: number, isPacked: boolean) {
    this.#library = library
    this.#fd = fd
    this.#at = at
    this.#isPacked = isPacked
  }

  async begin(filename: string): Promise<void> {
    const { WARCRecord } = this.#library
    const info = { software: 'autothrottle', format: 'WARC File Format 1.1' }
    await this.#write(WARCRecord.createWARCInfo({ filename, warcVersion: 'WARC/1.1' }, info))
  }

  /** Records follow each other. */
  append(entry: Entry, { body, statusText, headers }: Recorded): Promise<{ offset: number; length: number }> {
    const { url, finalUrl, status, sentAt } = entry
    const fields = [...headers].map(([name, value]): [string, string] => [
      UNDONE.test(name) ? `x-archive-orig-${name}` : name,
      value,
    ])
    const record = this.#library.WARCRecord.create(
      {
        url: finalUrl ?? url,
        date: sentAt,
        type: 'response',
        warcVersion: 'WARC/1.1',
        statusline: `HTTP/1.1 ${status} ${statusText}`.trim(),
        httpHeaders: Object.fromEntries(fields),
      },
      again(body),
    )
    return this.#write(record, body)
  }

  close(): void {
    closeSync(this.#fd)
  }

  /** The library reads a body twice, for its hash and to write it: it is never in memory as a whole. */
  #write(record: object, body?: Body): Promise<{ offset: number; length: number }> {
    const buffer = body && { write() {}, readAll: () => again(body), purge() {} }
    const written = this.#last.then(async () => {
      const offset = this.#at
      let at = offset
      for await (const part of new this.#library.WARCSerializer(record, { gzip: this.#isPacked }, buffer))
        for (let done = 0; done < part.length; ) {
          const count = writeSync(this.#fd, part, done, part.length - done, at)
          done += count
          at += count
        }
      this.#at = at
      return { offset, length: at - offset }
    })
    this.#last = written.catch(() => {})
    return written
  }
}

async function* again(body: Body): AsyncGenerator<Uint8Array> {
  yield* body.read()
}
