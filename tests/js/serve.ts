/** Servers of this machine, each on a free port. They and their connections end when a file's tests have. */

import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { listen } from '../serve.mjs'

/** Where it listens: an origin. */
export async function serve(answer: RequestListener): Promise<string> {
  const { url, stop } = await listen(answer)
  after(stop)
  return url
}

/** An origin where no server listens. */
export async function deadOrigin(): Promise<string> {
  const { url, server } = await listen(() => {})
  await new Promise((resolve) => server.close(resolve))
  return url
}

/** Whole numbers and parts of one, from a seed (mulberry32), so that a failing run can be had again. */
export class Dice {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 to 1. */
  readonly next = (): number => {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let word = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61)
    return ((word ^ (word >>> 14)) >>> 0) / 4_294_967_296
  }

  below(count: number): number {
    return Math.floor(this.next() * count)
  }
}

// One file for tests that start it often: with `--import tsx` each start takes .5 s of CPU more.

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Makes the command (the package inside, as in `dist/cli/bin.js`) or what `code` exports; gives its path. */
export async function bundled(folder: string, code?: string): Promise<string> {
  const outfile = join(folder, 'bin.mjs')
  await build({
    ...(code
      ? { stdin: { contents: code, resolveDir: root } }
      : { entryPoints: [`${root}/js/command/bin.ts`] }),
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    tsconfig: `${root}/tsconfig.json`,
    banner: { js: "import { createRequire as r } from 'node:module';const require = r(import.meta.url);" },
    logLevel: 'error',
  })
  return outfile
}
