/**
 * The modules of Node that sockets need, and the folder of a socket.
 *
 * In a folder for all users (`/tmp`) another user may put a socket and pretend to be us. The socket therefore
 * lies in a folder of this user's, and one of another user's is refused.
 */
import { builtin } from '../base/builtin.js'
import { ConfigError } from '../base/errors.js'

export interface Socket {
  readonly writableLength: number
  on(event: 'data', listener: (bytes: Uint8Array) => void): this
  on(event: 'error', listener: (error: { code?: string }) => void): this
  once(event: 'connect' | 'close', listener: () => void): this
  write(bytes: Uint8Array): boolean
  end(): this
  destroy(): this
  unref(): this
}

export interface Server {
  once(event: 'error', listener: (error: Error) => void): this
  listen(options: { path: string; exclusive: boolean }, listening: () => void): this
  close(): this
  unref(): this
}

export interface Net {
  connect(path: string): Socket
  createServer(welcome: (socket: Socket) => void): Server
}

interface Stats {
  readonly ino: number
  readonly mode: number
  readonly uid: number
  readonly mtimeMs: number
}

export interface FileSystem {
  mkdirSync(path: string, options: { mode: number; recursive: true }): unknown
  lstatSync(path: string): Stats
  statSync(path: string, options: { throwIfNoEntry: false }): Stats | undefined
  readFileSync(path: string): Uint8Array
  readFileSync(path: string, encoding: 'utf8'): string
  writeFileSync(path: string, text: string | Uint8Array, options: { flag?: string; mode: number }): void
  chmodSync(path: string, mode: number): void
  renameSync(from: string, to: string): void
  rmSync(path: string, options: { force: true }): void
}

/** Of a file's mode: it is a folder. */
const DIRECTORY = 0o040000

interface Process {
  readonly platform: string
  readonly env: Record<string, string | undefined>
  getuid?(): number
}

/** The folder of sockets, made if it has to be; `undefined` on Windows, where a pipe lies nowhere. */
export function folderOf(files: FileSystem, chosen: string | undefined): string | undefined {
  const { process } = globalThis as unknown as { process: Process }
  if (process.platform === 'win32') return undefined
  const uid = process.getuid?.() ?? 0
  const above = process.env.XDG_RUNTIME_DIR || (builtin('os') as { tmpdir(): string }).tmpdir()
  const folder = chosen ?? `${above}/autothrottle-${uid}`
  const want = "a folder of this user's that no other user may open (0700)"
  try {
    files.mkdirSync(folder, { mode: 0o700, recursive: true })
  } catch (error) {
    throw new ConfigError([{ path: 'shared.folder', want, got: (error as Error).message }])
  }
  const { mode, uid: owner } = files.lstatSync(folder)
  const isOurs = owner === uid && (mode & 0o077) === 0 && (mode & DIRECTORY) === DIRECTORY
  const got = `${folder} (mode ${(mode & 0o777).toString(8)}, of user ${owner})`
  if (!isOurs) throw new ConfigError([{ path: 'shared.folder', want, got }])
  return folder
}

/** The same error, or one that says that it will not heal by itself. */
export function forGood(error: Error & { code?: string }, path: string): Error {
  const isForGood = ['EACCES', 'EPERM', 'EROFS', 'ENOTSUP', 'ENAMETOOLONG'].includes(error.code ?? '')
  const want = 'a folder in which this process may make sockets and files'
  return isForGood
    ? new ConfigError([{ path: 'shared.folder', want, got: `${path}: ${error.message}` }])
    : error
}

/** Throws if no socket can lie there: an address takes a few dozen bytes only. */
export function checkPath(path: string): void {
  const { process } = globalThis as unknown as { process: Process }
  const most = process.platform === 'linux' ? 107 : 103
  const bytes = new TextEncoder().encode(path).length
  if (bytes <= most || process.platform === 'win32') return
  const want = `a path that is shorter by ${bytes - most} bytes, for a socket's has ${most} at most`
  throw new ConfigError([{ path: 'shared.folder', want, got: path }])
}

/** A name that fits: what can be read of it, and a number for all of it. A socket's path is short. */
export function socketNameOf(name: string): string {
  return `${name.replace(/[^\w-]+/g, '-').slice(0, 24)}-${fnv1a(name)}`
}

/** FNV-1a of a text, in hexadecimal: to tell texts apart, not to keep anything secret. */
function fnv1a(text: string): string {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return (hash >>> 0).toString(16)
}
