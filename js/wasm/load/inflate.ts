/** Inflates a module: by zlib where the runtime has it, else by fflate. */
import { inflate as inflateSlowly } from '../../../pkg/inflate.js'
import { builtin } from '../../base/builtin.js'

/** A module on its way: deflated, as base64, and how long it will be. */
export interface Deflated {
  readonly length: number
  readonly base64: string
}

type Zlib = { inflateRawSync?: (data: Uint8Array) => Uint8Array<ArrayBuffer> }

/** The original bytes of deflated ones. */
export function inflate({ length, base64 }: Deflated): Uint8Array<ArrayBuffer> {
  const deflated = decode(base64)
  const zlib = builtin('zlib') as Zlib | undefined
  if (zlib?.inflateRawSync) return zlib.inflateRawSync(deflated)
  return inflateSlowly(deflated, { out: new Uint8Array(length) }) as Uint8Array<ArrayBuffer>
}

type Buffers = { Buffer?: { from(text: string, encoding: 'base64'): Uint8Array<ArrayBuffer> } }

/** The bytes that were written as base64. */
function decode(base64: string): Uint8Array<ArrayBuffer> {
  const buffers = builtin('buffer') as Buffers | undefined
  if (buffers?.Buffer) return buffers.Buffer.from(base64, 'base64')
  const text = atob(base64)
  const bytes = new Uint8Array(text.length)
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index)
  return bytes
}
