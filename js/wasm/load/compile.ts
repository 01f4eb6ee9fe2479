/**
 * A module as text that travels inside JavaScript: the one way that every runtime and bundler knows.
 *
 * It is deflated: base64 shifts bytes by two bits, so no server could compress the text by much. The traps:
 * to inflate in JavaScript what the runtime does ten times as fast; a page whose policy forbids WebAssembly,
 * where the browser's own error does not say what to write.
 */
import { inflate } from '../../../pkg/inflate.js'
import { WasmBlockedError } from '../../core/errors.js'
import { builtin } from '../node-builtin.js'

/** A module on its way: deflated, as base64, and how long it will be. */
export interface Packed {
  readonly length: number
  readonly base64: string
}

type Zlib = { inflateRawSync?: (data: Uint8Array) => Uint8Array<ArrayBuffer> }
type Buffers = { Buffer?: { from(text: string, encoding: 'base64'): Uint8Array } }

/**
 * Compiles it, synchronously.
 *
 * @throws {WasmBlockedError} where compiling is forbidden.
 */
export function compile(packed: Packed): WebAssembly.Module {
  const bytes = unpack(packed)
  try {
    return new WebAssembly.Module(bytes)
  } catch (cause) {
    // The bytes are ours and whole: only a policy can refuse them.
    throw new WasmBlockedError({ cause })
  }
}

function unpack({ length, base64 }: Packed): Uint8Array<ArrayBuffer> {
  const deflated = decode(base64)
  const zlib = builtin('zlib') as Zlib | undefined
  if (zlib?.inflateRawSync) return zlib.inflateRawSync(deflated)
  return inflate(deflated, { out: new Uint8Array(length) }) as Uint8Array<ArrayBuffer>
}

function decode(base64: string): Uint8Array {
  const buffers = builtin('buffer') as Buffers | undefined
  if (buffers?.Buffer) return buffers.Buffer.from(base64, 'base64')
  const text = atob(base64)
  const bytes = new Uint8Array(text.length)
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index)
  return bytes
}
