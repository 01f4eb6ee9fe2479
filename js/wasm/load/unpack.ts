/**
 * What was packed back to bytes, by a module of four kilobytes (`bindings/unpack`): no browser can, and
 * deflated the engine is two fifths larger.
 *
 * The trap is to do it in JavaScript: code that runs once is never optimised, and took three times as long.
 */
import unpacker from '../../../pkg/unpack.js'
import { compile, decode, type Packed } from './compile.js'

interface Unpacker {
  readonly memory: WebAssembly.Memory
  readonly __heap_base: WebAssembly.Global
  unpack_at(at: number, packed: number, length: number): void
}

/** What was packed. Its memory is the unpacker's, which nobody else uses. */
export function unpack({ length, base64 }: Packed): Uint8Array<ArrayBuffer> {
  const bytes = unpacker.match(/../g)!.map((hex) => Number.parseInt(hex, 16))
  const instance = new WebAssembly.Instance(compile(new Uint8Array(bytes)))
  const { memory, __heap_base, unpack_at } = instance.exports as unknown as Unpacker
  const packed = decode(base64)
  const at: number = __heap_base.value
  const missing = at + packed.length + 3 * length - memory.buffer.byteLength
  if (missing > 0) memory.grow(Math.ceil(missing / 65_536))
  new Uint8Array(memory.buffer).set(packed, at)
  unpack_at(at, packed.length, length)
  return new Uint8Array(memory.buffer, at + packed.length, length) as Uint8Array<ArrayBuffer>
}
