/**
 * A body on its way to where it is kept: a file, a reader of links, memory; each piece as it comes, so that
 * what is long is never held as a whole.
 */
import { type FileHandle, open, rm, writeFile } from 'node:fs/promises'

/** Pieces are gathered up to this many bytes before they are written. */
const GATHERED = 1 << 16

/** Where a body goes. */
export interface Ways {
  /** The longest that is kept. */
  readonly most: number
  readonly file: string | undefined
  /** Whether all of it is wanted in memory. */
  readonly isHeld: boolean
  /** Hears each piece. */
  onPart?(part: Uint8Array): void
}

/** What came of it. */
export interface Body {
  readonly bytes: number
  readonly isCut: boolean
  /** All of it, if that was wanted. */
  readonly held: Buffer
}

/** Receives a body to its end, or to the longest that is kept. A file that is not whole is removed. */
export async function receive(response: Response, { most, file, isHeld, onPart }: Ways): Promise<Body> {
  const target = file === undefined ? undefined : new Target(file)
  const held: Uint8Array[] = []
  const reader = response.body?.getReader()
  let bytes = 0
  let isCut = false
  try {
    while (reader && !isCut) {
      const { done, value } = await reader.read()
      if (done) break
      isCut = bytes + value.length > most
      const part = isCut ? value.subarray(0, most - bytes) : value
      bytes += part.length
      if (isHeld) held.push(part)
      onPart?.(part)
      await target?.write(part)
    }
    if (isCut) await reader?.cancel()
    await target?.end()
  } catch (error) {
    await target?.drop()
    throw error
  }
  return { bytes, isCut, held: Buffer.concat(held) }
}

/** A file that is written in large pieces; a short one at once. */
class Target {
  readonly #file: string
  #handle: FileHandle | undefined
  #parts: Uint8Array[] = []
  #gathered = 0

  constructor(file: string) {
    this.#file = file
  }

  async write(part: Uint8Array): Promise<void> {
    this.#parts.push(part)
    this.#gathered += part.length
    if (this.#gathered < GATHERED) return
    this.#handle ??= await open(this.#file, 'w')
    await this.#flush(this.#handle)
  }

  async end(): Promise<void> {
    if (this.#handle === undefined) {
      if (this.#gathered > 0) await writeFile(this.#file, this.#parts)
      return
    }
    await this.#flush(this.#handle)
    await this.#handle.close()
  }

  async drop(): Promise<void> {
    await this.#handle?.close().catch(() => {})
    await rm(this.#file, { force: true })
  }

  async #flush(handle: FileHandle): Promise<void> {
    for (const part of this.#parts) await handle.writeFile(part)
    this.#parts = []
    this.#gathered = 0
  }
}
