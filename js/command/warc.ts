/**
 * WARC 1.1 (ISO 28500) by the library warcio, if it is installed: a record for each answer, compressed by
 * itself, so that the file can be cut after any of them.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  statSync,
  writeSync,
} from 'node:fs'
import { constants, gunzipSync } from 'node:zlib'
import { toUrl } from '../scopes/names.js'
import type { Body } from './body.js'
import { installed } from './network.js'
import { opened, UsageError } from './settings.js'

/** A line of the index. */
export interface Entry {
  readonly url: string
  /** The job's key, where that is not its URL. */
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
  /** As in Node, `set-cookie` is a list: it may be there more than once. */
  headers?: Record<string, string | string[]>
  /** Why there is no answer. */
  error?: string
  code?: string
  /** Where it stood in a list, if it could not be read. */
  line?: number
  /** The job's line in the list. */
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

/** Header fields that no longer hold once the body is decoded. */
const UNDONE = /^(?:content-encoding|content-length|transfer-encoding)$/

/** The software that wrote the file, in its first record. */
const SOFTWARE = 'autothrottle'
/** No record of ours that says who wrote the file is longer. */
const LONGEST_INFO = 8192

/**
 * Goes on with a file of ours, or begins one: a file of someone else is not touched.
 *
 * @param last the last record that the index speaks of: what is beyond is cut off.
 */
export async function openWarc(file: string, last: Entry | undefined): Promise<Warc> {
  const library = await installed<Library>('warcio', '--warc')
  if (existsSync(file)) checkOwn(file, last)
  else if (last?.warc) throw new UsageError(`--warc: ${file} is not there, but the index speaks of it`)
  const kept = last?.warc ? last.warc.offset + last.warc.length : 0
  const fd = opened('--warc', () => openSync(file, existsSync(file) ? 'r+' : 'w+'))
  ftruncateSync(fd, kept)
  const warc = new Warc(library, fd, kept, !file.endsWith('.warc'))
  if (kept === 0) await warc.begin(file)
  return warc
}

/** @throws {UsageError} unless it is ours: empty, started and without a record yet, or with the last one. */
export function checkOwn(file: string, last: Entry | undefined): void {
  if (!statSync(file).isFile()) throw new UsageError(`--warc: ${file} is no file`)
  const fd = openSync(file, 'r')
  try {
    const { size } = fstatSync(fd)
    if (last?.warc) {
      const { offset, length } = last.warc
      const isWhole = offset + length <= size
      if (isWhole && targetIn(recordsAt(fd, offset, length)) === hrefOf(last.finalUrl ?? last.url)) return
      throw new UsageError(`--warc: ${file} is there already, and is not the one that the index speaks of`)
    }
    const head = size <= LONGEST_INFO ? recordsAt(fd, 0, size) : ''
    const isOwn = head.includes(`software: ${SOFTWARE}\r\n`) && targetIn(head) === undefined
    if (size > 0 && !isOwn)
      throw new UsageError(`--warc: ${file} is there already, and no index speaks of it`)
  } finally {
    closeSync(fd)
  }
}

/** The beginning of the records between two places, unpacked as far as can be. */
function recordsAt(fd: number, offset: number, length: number): string {
  const packed = Buffer.alloc(Math.min(length, 4 * LONGEST_INFO))
  const bytes = packed.subarray(0, readSync(fd, packed, 0, packed.length, offset))
  try {
    const isPacked = bytes[0] === 0x1f && bytes[1] === 0x8b
    const finishFlush = constants.Z_SYNC_FLUSH
    // At most a thousand times as long as what is packed.
    return (isPacked ? gunzipSync(bytes, { finishFlush }) : bytes).toString('utf8')
  } catch {
    return ''
  }
}

const targetIn = (records: string) => /^WARC-Target-URI: <?([^>\r\n]*)/m.exec(records)?.[1]

/** As the library writes it. */
const hrefOf = (url: string) => toUrl(url)?.href ?? url

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
    const info = { software: SOFTWARE, format: 'WARC File Format 1.1' }
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
        // A record of strings would lose all but the last cookie.
        httpHeaders: fields,
        keepHeadersCase: false,
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
      const add = (part: Uint8Array) => {
        for (let done = 0; done < part.length; ) {
          const count = writeSync(this.#fd, part, done, part.length - done, at)
          done += count
          at += count
        }
      }
      const parts = new this.#library.WARCSerializer(record, { gzip: this.#isPacked }, buffer)
      if (body) for await (const part of parts) add(part)
      // A kill leaves all of the first record, or none of it: a part of it would not say whose it is.
      else add(Buffer.concat(await all(parts)))
      this.#at = at
      return { offset, length: at - offset }
    })
    this.#last = written.catch(() => {})
    return written
  }
}

async function all(parts: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const list: Uint8Array[] = []
  for await (const part of parts) list.push(part)
  return list
}

async function* again(body: Body): AsyncGenerator<Uint8Array> {
  yield* body.read()
}
