/**
 * Files of lines that survive a kill: whole lines are appended in one write. If a line was cut off in the
 * middle, the rest of it goes when the file is opened again.
 *
 * A killed process loses no line that it has written: the system has it. Only a machine that loses power may
 * lose the last moments.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'

const CHUNK = 1 << 20

/** Reads the whole lines of a file, a chunk at a time; what is after the last one is cut off. */
export function recoverLines(file: string, onLine: (line: string) => void): void {
  if (!existsSync(file)) return
  const fd = openSync(file, 'r+')
  try {
    const chunk = Buffer.alloc(CHUNK)
    let rest: Buffer = Buffer.alloc(0)
    let whole = 0
    for (let at = 0; ; ) {
      const count = readSync(fd, chunk, 0, CHUNK, at)
      if (count === 0) break
      at += count
      const bytes = Buffer.concat([rest, chunk.subarray(0, count)])
      let start = 0
      for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
        if (end > start) onLine(bytes.toString('utf8', start, end))
        whole += end + 1 - start
        start = end + 1
      }
      rest = Buffer.from(bytes.subarray(start))
    }
    if (rest.length > 0) ftruncateSync(fd, whole)
  } finally {
    closeSync(fd)
  }
}

/** Leaves out the lines that are not wanted: the file is put in place whole. */
export function keepLines(file: string, isWanted: (line: string) => boolean): void {
  rmSync(`${file}.new`, { force: true })
  const writer = new LineWriter(`${file}.new`)
  recoverLines(file, (line) => {
    if (isWanted(line)) writer.write(`${line}\n`)
  })
  writer.close()
  renameSync(`${file}.new`, file)
}

/** Appends whole lines. */
export class LineWriter {
  readonly #fd: number

  constructor(file: string) {
    this.#fd = openSync(file, 'a')
  }

  /** One write for all of them: a kill leaves the first of them, and perhaps a part of one. */
  append(values: readonly unknown[]): void {
    if (values.length === 0) return
    this.write(values.map((value) => `${JSON.stringify(value)}\n`).join(''))
  }

  /** One line in pieces; if one cannot be had, none of them stays. No other line may come in between. */
  async appendParts(parts: AsyncIterable<string>): Promise<void> {
    const { size } = fstatSync(this.#fd)
    try {
      for await (const part of parts) this.write(part)
    } catch (error) {
      ftruncateSync(this.#fd, size)
      throw error
    }
  }

  write(text: string): void {
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#fd, bytes, at)
  }

  close(): void {
    closeSync(this.#fd)
  }
}

/** The value of a line, or an error with the file's name if it is not JSON. */
export function parsedLine(line: string, file: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(line)
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {
    // Told below.
  }
  throw new Error(`${file}: want lines of JSON objects; got ${JSON.stringify(line.slice(0, 60))}`)
}
