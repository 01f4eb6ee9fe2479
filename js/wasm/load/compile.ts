/**
 * From bytes to a module.
 *
 * The trap is a page whose policy forbids WebAssembly, where the browser's own error does not say what to
 * write.
 */
import { WasmBlockedError } from '../../core/errors.js'
import { builtin } from '../node-builtin.js'

/** A module on its way: deflated, as base64, and how long it will be. */
export interface Deflated {
  readonly length: number
  readonly base64: string
}

/**
 * Compiles, synchronously.
 *
 * @throws {WasmBlockedError} where compiling is forbidden.
 */
export function compile(bytes: Uint8Array<ArrayBuffer>): WebAssembly.Module {
  try {
    return new WebAssembly.Module(bytes)
  } catch (cause) {
    // The bytes are ours and whole: only a policy can refuse them.
    throw new WasmBlockedError({ cause })
  }
}

type Buffers = { Buffer?: { from(text: string, encoding: 'base64'): Uint8Array<ArrayBuffer> } }

/** The bytes that were written as base64. */
export function decode(base64: string): Uint8Array<ArrayBuffer> {
  const buffers = builtin('buffer') as Buffers | undefined
  if (buffers?.Buffer) return buffers.Buffer.from(base64, 'base64')
  const text = atob(base64)
  const bytes = new Uint8Array(text.length)
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index)
  return bytes
}
