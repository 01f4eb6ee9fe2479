/**
 * The fuzzers' corpora: one file a target in git, one file an input where cargo-fuzz wants them.
 *
 * `node tools/fuzz/corpus.mjs` unpacks `tools/fuzz/corpus/NAME.bin` into the folder `tools/fuzz/corpus/NAME`, and
 * `node tools/fuzz/corpus.mjs --pack` goes back. Each input stands behind its length in four bytes, the lowest
 * first.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { root } from '../scripts/lib.mjs'

for (const name of ['boundary', 'hostile']) {
  const [file, folder] = [`${root}/tools/fuzz/corpus/${name}.bin`, `${root}/tools/fuzz/corpus/${name}`]
  mkdirSync(folder, { recursive: true })
  if (process.argv[2] === '--pack') {
    const inputs = readdirSync(folder)
      .sort()
      .map((input) => readFileSync(`${folder}/${input}`))
    const length = ({ length }) => Buffer.from(Uint32Array.of(length).buffer)
    writeFileSync(file, Buffer.concat(inputs.flatMap((input) => [length(input), input])))
    continue
  }
  const packed = readFileSync(file)
  for (let at = 0; at < packed.length; ) {
    const input = packed.subarray(at + 4, at + 4 + packed.readUInt32LE(at))
    writeFileSync(`${folder}/${createHash('sha1').update(input).digest('hex').slice(0, 16)}`, input)
    at += 4 + input.length
  }
}
