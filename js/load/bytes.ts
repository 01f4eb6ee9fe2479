/**
 * A module as text that travels inside JavaScript: the one way that every runtime and bundler knows.
 */

/** Compiles it. */
export function compile(base64: string): WebAssembly.Module {
  const text = atob(base64)
  const bytes = new Uint8Array(text.length)
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index)
  return new WebAssembly.Module(bytes)
}
