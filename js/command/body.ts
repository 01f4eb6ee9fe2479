/**
 * A body on its way to where it is kept: a file, a reader of links, an archive; each piece as it comes, so
 * that a long one is never held as a whole. An archive and a line of the output read it once more, from its
 * file.
 */
import { createReadStream } from 'node:fs'
import { type FileHandle, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { MOST_ROBOTS_BYTES } from '../options/generated.js'
import type { Clock } from '../options/options.js'
import { LateError } from './failures.js'

/** Pieces are gathered up to this many bytes before they are written. */
const GATHERED = 1 << 16
/** A body that is read once more is in memory up to this many bytes. */
const HELD = 1 << 20

/** How long a body may take. */
export interface Within {
  readonly ms: number
  readonly clock: Clock
}

/** Where a body goes. */
export interface Ways {
  /** The longest that is kept. */
  readonly most: number
  readonly within: Within
  readonly file: string | undefined
  /** Whether it is read once more. */
  readonly isReadAgain: boolean
  /** Names a file for a long body that has none, until it was read. */
  spare(): string
  /** Hears each piece. */
  onPart?(part: Uint8Array): void
}

/** The number of bytes read, and how the reading ended. */
export class Body {
  readonly bytes: number
  readonly isCut: boolean
  /** All of it, if it is short and to be read. */
  readonly held: Buffer | undefined
  readonly #file: string | undefined
  readonly #isSpare: boolean

  constructor(bytes: number, isCut: boolean, held?: Buffer, file?: string, isSpare = false) {
    this.bytes = bytes
    this.isCut = isCut
    this.held = held
    this.#file = file
    this.#isSpare = isSpare
  }

  /** All of it once more. */
  read(): AsyncIterable<Uint8Array> | Iterable<Uint8Array> {
    if (this.held) return this.held.length > 0 ? [this.held] : []
    return this.#file === undefined ? [] : createReadStream(this.#file)
  }

  /** It was read: a file that was only for that goes. */
  async drop(): Promise<void> {
    if (this.#isSpare) await rm(this.#file!, { force: true })
  }
}

/** Receives a body to its end, or to the longest that is kept. A file that is not whole is removed. */
export async function receive(
  response: Response,
  { most, within, file, isReadAgain, spare, onPart }: Ways,
): Promise<Body> {
  let target = file === undefined ? undefined : new Target(file)
  let held: Uint8Array[] | undefined = isReadAgain ? [] : undefined
  let bytes = 0
  let isCut = false
  try {
    for await (const value of piecesOf(response, within)) {
      isCut = bytes + value.length > most
      const part = isCut ? value.subarray(0, most - bytes) : value
      bytes += part.length
      onPart?.(part)
      const parts: Uint8Array[] = [part]
      if (held && bytes <= HELD) held.push(part)
      else if (held) {
        if (target === undefined) parts.unshift(...held)
        held = undefined
      }
      if (isReadAgain && held === undefined) target ??= new Target(spare())
      for (const each of parts) await target?.write(each)
      if (isCut) break
    }
    await target?.end()
  } catch (error) {
    await target?.drop()
    throw error
  }
  const isSpare = file === undefined && target !== undefined
  return new Body(bytes, isCut, held && Buffer.concat(held), target?.file, isSpare)
}

/** Its pieces as they come. It is let go of if it takes too long, or is not read to its end. */
async function* piecesOf({ body }: Response, { ms, clock }: Within): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader()
  if (!reader) return
  let late: LateError | undefined
  // A read that waits is over then.
  const letGo = (reason?: unknown) => void reader.cancel(reason).catch(() => {})
  const timer = clock.setTimeout(() => {
    late = new LateError('the body', ms)
    letGo(late)
  }, ms)
  let isOver = false
  try {
    for (;;) {
      const { done, value } = await reader.read()
      isOver = done
      if (late) throw late
      if (done) return
      yield value
    }
  } finally {
    clock.clearTimeout(timer)
    if (!isOver) letGo()
  }
}

/** As much of a robots.txt as counts: one without an end is read no further. */
export async function robotsText(response: Response, within: Within): Promise<string> {
  const spare = () => tmpdir()
  const { held } = await receive(response, {
    ...{ most: MOST_ROBOTS_BYTES, within, file: undefined, isReadAgain: true, spare },
  })
  return new TextDecoder().decode(held)
}

/** A file that is written in large pieces; a short one at once. */
class Target {
  readonly file: string
  #handle: FileHandle | undefined
  #parts: Uint8Array[] = []
  #gathered = 0

  constructor(file: string) {
    this.file = file
  }

  async write(part: Uint8Array): Promise<void> {
    this.#parts.push(part)
    this.#gathered += part.length
    if (this.#gathered < GATHERED) return
    this.#handle ??= await open(this.file, 'w')
    await this.#flush(this.#handle)
  }

  async end(): Promise<void> {
    if (this.#handle === undefined) {
      if (this.#gathered > 0) await writeFile(this.file, this.#parts)
      return
    }
    await this.#flush(this.#handle)
    await this.#handle.close()
  }

  async drop(): Promise<void> {
    await this.#handle?.close().catch(() => {})
    await rm(this.file, { force: true })
  }

  async #flush(handle: FileHandle): Promise<void> {
    for (const part of this.#parts) await handle.writeFile(part)
    this.#parts = []
    this.#gathered = 0
  }
}
