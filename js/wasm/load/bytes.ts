/**
 * A module as text that travels inside JavaScript: the one way that every runtime and bundler knows.
 *
 * It is deflated: base64 shifts bytes by two bits, so no server could compress the text by much.
 */
import { inflate } from '../../../pkg/inflate.js'

/** A module on its way: deflated, as base64, and how long it will be. */
export interface Packed {
  readonly length: number
  readonly base64: string
}

/** What brings a module in, on first use and synchronously. */
export interface Loader {
  /** Another source of the module than the bytes inside JavaScript. Before the first use. */
  provide(source: () => WebAssembly.Module): void
  /** The module is ready after this. */
  prepare(): void
}

/** A loader of these bytes; nothing happens before they are needed. */
export function loader(packed: Packed, initSync: (of: { module: WebAssembly.Module }) => unknown): Loader {
  let isLoaded = false
  let compiled = () => compile(packed)
  return {
    provide(source) {
      compiled = source
    },
    prepare() {
      if (!isLoaded) initSync({ module: compiled() })
      isLoaded = true
    },
  }
}

function compile({ length, base64 }: Packed): WebAssembly.Module {
  const text = atob(base64)
  const bytes = new Uint8Array(text.length)
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index)
  return new WebAssembly.Module(inflate(bytes, { out: new Uint8Array(length) }) as Uint8Array<ArrayBuffer>)
}
