/** Inflates a module: by zlib where the runtime has it, else by fflate. */
import { inflate as inflateSlowly } from '../../../pkg/inflate.js'
import { builtin } from '../node-builtin.js'
import { type Deflated, decode } from './compile.js'

type Zlib = { inflateRawSync?: (data: Uint8Array) => Uint8Array<ArrayBuffer> }

/** What was deflated. */
export function inflate({ length, base64 }: Deflated): Uint8Array<ArrayBuffer> {
  const deflated = decode(base64)
  const zlib = builtin('zlib') as Zlib | undefined
  if (zlib?.inflateRawSync) return zlib.inflateRawSync(deflated)
  return inflateSlowly(deflated, { out: new Uint8Array(length) }) as Uint8Array<ArrayBuffer>
}
