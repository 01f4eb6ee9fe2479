/**
 * The engine's module from where a page has it: an asset that is compressed, cached, and compiled while it
 * streams.
 *
 * A server may answer with its page for what is missing, or name another type, which browsers do not compile
 * from a stream. A module of another release has other numbers for its functions.
 */

import { builtin } from '../../base/builtin.js'
import { tagOf } from '../../base/checks.js'
import { NotInitializedError, WasmBlockedError } from '../../base/errors.js'
import { slimBuild as build } from './build.js'
import { setModuleSource } from './module-source.js'

/** The type of a compiled module; a compiler may not know its types. */
type Compiled = typeof globalThis extends { WebAssembly: { Module: { prototype: infer Module } } }
  ? Module
  : object

/** The module, its bytes, an answer that has them, or where they are. */
export type ModuleSource = Compiled | ArrayBuffer | ArrayBufferView | Response | URL | string

/**
 * Brings the module in; await it before the first throttle. The file is `autothrottle/slim.wasm`. A second
 * call has no effect once a throttle was made.
 *
 * @throws {NotInitializedError} if it cannot be had, is no module, or belongs to another release.
 * @throws {WasmBlockedError} where compiling is forbidden.
 */
export async function initialize(source: ModuleSource | PromiseLike<ModuleSource>): Promise<void> {
  const compiled = await moduleOf(await source)
  const [release] = WebAssembly.Module.customSections(compiled, 'autothrottle')
  const version = release && new TextDecoder().decode(release)
  if (version !== build.version)
    throw new NotInitializedError(
      `this is version ${build.version}; the module is of ${version ?? 'another'}`,
    )
  setModuleSource('engine', () => compiled)
}

async function moduleOf(source: ModuleSource): Promise<WebAssembly.Module> {
  const kind = tagOf(source)
  if (kind === 'WebAssembly.Module') return source as WebAssembly.Module
  if (kind === 'URL' || typeof source === 'string') return moduleOf(await got(`${source}`))
  if (kind === 'Response') return fromResponse(source as Response)
  if (ArrayBuffer.isView(source) || /^(?:Shared)?ArrayBuffer$/.test(kind))
    return fromBytes(source as BufferSource)
  throw new NotInitializedError(`initialize: want a module, its bytes, a response or a URL; got ${kind}`)
}

type Files = { readFile(path: URL): Promise<BufferSource> }

/** Node's `fetch` knows no files, and a program that is rendered on a server has the asset as one. */
async function got(url: string): Promise<Response | BufferSource> {
  try {
    const files = url.startsWith('file:') ? (builtin('fs/promises') as Files | undefined) : undefined
    return await (files ? files.readFile(new URL(url)) : fetch(url))
  } catch (cause) {
    throw new NotInitializedError(`the module could not be had from ${url}`, { cause })
  }
}

async function fromResponse(response: Response): Promise<WebAssembly.Module> {
  const { ok, status, url, headers } = response
  if (!ok) throw new NotInitializedError(`the module could not be had: ${status} for ${url}`)
  const isStream = /^application\/wasm\b/i.test(headers.get('content-type') ?? '')
  if (!isStream || !WebAssembly.compileStreaming) return fromBytes(await response.arrayBuffer(), url)
  return WebAssembly.compileStreaming(response).catch(refused)
}

function fromBytes(bytes: BufferSource, from = 'the bytes'): Promise<WebAssembly.Module> {
  const { buffer = bytes, byteOffset } = bytes as ArrayBufferView<ArrayBuffer>
  const view = new Uint8Array(buffer as ArrayBuffer, byteOffset, Math.min(bytes.byteLength, 4))
  const starts = [0, 0x61, 0x73, 0x6d].every((byte, at) => view[at] === byte)
  if (!starts) throw new NotInitializedError(`no WebAssembly module: ${from}`)
  return WebAssembly.compile(bytes).catch(refused)
}

/** Bytes of a module are refused by a policy, unless they are cut off. */
function refused(cause: unknown): never {
  throw new WasmBlockedError({ cause })
}
