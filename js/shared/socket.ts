/**
 * Processes of one machine, by a Unix socket or a named pipe: whoever listens there writes.
 *
 * A process that ends closes its connections, so its death is seen at once. One that is stopped keeps them:
 * after a lease of silence another takes its place, by putting a new socket where the old one was; whoever
 * was there finds that out before it sends. The number of the lease lies in a file beside it, and what the
 * writer remembers in another.
 *
 * The traps: the socket of a process that was killed, which stays and refuses; two that find it at once (a
 * lock, made with `wx`, for the moment of putting the new one there); the workers of a cluster, whose sockets
 * belong to the primary unless they are exclusive; a path of more than a hundred bytes; and a folder that
 * somebody else made.
 */

import { builtin } from '../base/builtin.js'
import { systemClock } from '../base/clock.js'
import {
  checkPath,
  type FileSystem,
  folderOf,
  forGood,
  type Net,
  type Server,
  type Socket,
  socketNameOf,
} from './node.js'
import type { Lease, Peer, Transport } from './transport.js'
import { afterTurn } from './turn.js'

/** A lock that is seen for so long was left behind, in milliseconds. */
const LOCK_MS = 2000
/** What a process that does not read may leave unread, in bytes: then it is cut off. */
const MOST_UNREAD = 16 * 2 ** 20

/** Where, for whom. */
interface Place {
  readonly name: string
  readonly folder?: string
}

export class SocketTransport implements Transport {
  readonly afterTurn = afterTurn
  readonly leaseMs = 1500
  readonly #net: Net
  readonly #files: FileSystem
  readonly #place: Place
  #path = ''
  #peer: Peer | undefined
  /** The way to the writer, what lay there, and when it was last heard. */
  #writer: Socket | undefined
  #found: number | undefined
  #heardAt = 0
  /** Where this process listens, and what lies there then. */
  #server: Server | undefined
  #inode: number | undefined
  readonly #members = new Map<string, Socket>()
  /** The lock of another process, and since when this one sees it. */
  #locked: { readonly is: string; readonly since: number } | undefined

  constructor(place: Place) {
    const [net, files] = [builtin('net'), builtin('fs')]
    if (!net || !files)
      throw new TypeError('local: want a runtime with sockets: Node from 20.16 or 22.3, Deno, or Bun')
    this.#net = net as Net
    this.#files = files as FileSystem
    this.#place = place
  }

  open(peer: Peer): void {
    this.#peer = peer
  }

  async compete(epoch: number): Promise<Lease | undefined> {
    const peer = this.#peer
    if (!peer) return undefined
    if (this.#path === '') this.#path = this.#makePath()
    if (!(await this.#isSilent())) return undefined
    const found = this.#found
    const server = await this.#listen()
    const lease = this.#claim(server, found, epoch)
    if (lease) return lease
    server.close()
    if (!this.#isPipe) this.#remove(this.#own)
    await this.#connect()
    return undefined
  }

  async renew(_: Lease, state: string | undefined): Promise<boolean> {
    const isOurs = this.isHeld()
    if (isOurs && state) this.#keep(state)
    return isOurs
  }

  isHeld(): boolean {
    return this.#server !== undefined && this.#inodeAt() === this.#inode
  }

  async release(lease: Lease, state: string): Promise<void> {
    const isOurs = await this.renew(lease, state)
    this.#stop()
    if (isOurs && !this.#isPipe) this.#remove(this.#path)
  }

  toWriter(text: string): void {
    this.#writer?.write(`${text}\n`)
  }

  toMember(_: Lease, id: string, text: string): void {
    const socket = this.#members.get(id)
    if (!socket || !this.#isGood()) return
    socket.write(`${text}\n`)
    if (socket.writableLength > MOST_UNREAD) socket.destroy()
  }

  toAll(lease: Lease, text: string): void {
    for (const id of [...this.#members.keys()]) this.toMember(lease, id, text)
  }

  async close(): Promise<void> {
    this.#peer = undefined
    this.#writer?.end()
    this.#stop()
  }

  /** Where a socket of this process lies that nobody knows yet. */
  get #own(): string {
    return `${this.#path}.${this.#peer?.id}`
  }

  #remove(path: string): void {
    this.#files.rmSync(path, { force: true })
  }

  get #isPipe(): boolean {
    return this.#path.startsWith('\\\\')
  }

  get #now(): number {
    return this.#peer?.clock.now() ?? 0
  }

  /** Where the socket is: a folder for this user alone. */
  #makePath(): string {
    const name = socketNameOf(this.#place.name)
    const folder = folderOf(this.#files, this.#place.folder)
    if (folder === undefined) return `\\\\.\\pipe\\autothrottle-${name}`
    checkPath(`${folder}/${name}.${this.#peer?.id}`)
    return `${folder}/${name}`
  }

  /** Whether nobody answers there, or whoever does has been silent for a lease. */
  async #isSilent(): Promise<boolean> {
    if (this.#writer && this.#inodeAt() === this.#found) return this.#now - this.#heardAt >= this.leaseMs
    // Nobody was there, or somebody new is.
    this.#writer?.destroy()
    this.#writer = undefined
    return !(await this.#connect())
  }

  /** The way to whoever listens. */
  #connect(): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#found = this.#inodeAt()
      const socket = this.#net.connect(this.#path)
      socket.unref()
      socket.once('connect', () => {
        this.#writer = socket
        this.#heardAt = this.#now
        socket.write(`${this.#peer?.id}\n`)
        resolve(true)
      })
      socket.on('error', (error) => {
        const isNobody = ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'].includes(error.code ?? '')
        if (isNobody) resolve(false)
        else reject(error)
      })
      eachLine(socket, (line) => {
        this.#heardAt = this.#now
        this.#peer?.heard(line)
      })
      socket.once('close', () => {
        resolve(false)
        if (this.#writer !== socket) return
        this.#writer = undefined
        // One that was replaced lets go as well, and lives.
        this.#peer?.vacant(this.#inodeAt() === this.#found)
      })
    })
  }

  /** A socket that nobody knows yet; a pipe is there at once. */
  #listen(): Promise<Server> {
    const server = this.#net.createServer((socket) => this.#welcome(socket))
    const path = this.#isPipe ? this.#path : this.#own
    return new Promise((resolve, reject) => {
      server.once('error', (error) => reject(forGood(error, path)))
      server.listen({ path, exclusive: true }, () => {
        server.unref()
        resolve(server)
      })
    })
  }

  /** Puts the socket where others look for it, if nobody else has. */
  #claim(server: Server, found: number | undefined, epoch: number): Lease | undefined {
    const [files, path] = [this.#files, this.#path]
    if (this.#isPipe) {
      this.#server = server
      return { epoch: epoch + 1 }
    }
    if (!this.#lock()) return undefined
    try {
      if (this.#inodeAt() !== found) return undefined
      const known = this.#epochAt()
      const next = Math.max(known, epoch) + 1
      files.writeFileSync(`${path}.epoch`, String(next), { mode: 0o600 })
      files.chmodSync(this.#own, 0o600)
      // Before it is there: what lies there later may be another's.
      this.#inode = this.#inodeAt(this.#own)
      files.renameSync(this.#own, path)
      this.#writer?.destroy()
      this.#writer = undefined
      this.#server = server
      return { epoch: next, isFirst: known === 0 && found === undefined, ...this.#kept() }
    } finally {
      this.#remove(`${path}.lock`)
    }
  }

  #lock(): boolean {
    const [files, path] = [this.#files, `${this.#path}.lock`]
    for (let time = 0; time < 2; time++) {
      try {
        files.writeFileSync(path, '', { flag: 'wx', mode: 0o600 })
        this.#locked = undefined
        return true
      } catch (error) {
        if ((error as { code?: string }).code !== 'EEXIST') throw forGood(error as Error, path)
        // Its age is what this process has seen of it: a file's time is a wall clock's.
        const lock = files.statSync(path, { throwIfNoEntry: false })
        const is = `${lock?.ino}:${lock?.mtimeMs}`
        if (this.#locked?.is !== is) this.#locked = { is, since: this.#now }
        if (!lock || this.#now - this.#locked.since < LOCK_MS) return false
        this.#remove(path)
      }
    }
    return false
  }

  /** What the last writer remembered, and how old that is. */
  #kept(): Pick<Lease, 'state' | 'stateAgeMs'> {
    const path = `${this.#path}.state`
    const file = this.#files.statSync(path, { throwIfNoEntry: false })
    if (!file) return {}
    const stateAgeMs = Math.max(systemClock(true).wallNow() - file.mtimeMs, 0)
    return { state: this.#files.readFileSync(path, 'utf8'), stateAgeMs }
  }

  /** Whole or not at all: nobody reads a half. */
  #keep(state: string): void {
    if (this.#isPipe) return
    this.#files.writeFileSync(`${this.#own}.state`, state, { mode: 0o600 })
    this.#files.renameSync(`${this.#own}.state`, `${this.#path}.state`)
  }

  #epochAt(): number {
    try {
      return Number(this.#files.readFileSync(`${this.#path}.epoch`, 'utf8')) || 0
    } catch {
      return 0
    }
  }

  #inodeAt(path = this.#path): number | undefined {
    return this.#isPipe ? undefined : this.#files.statSync(path, { throwIfNoEntry: false })?.ino
  }

  /** Asks before anything is said: a look at a file is a few microseconds. */
  #isGood(): boolean {
    if (this.isHeld()) return true
    this.#stop()
    this.#peer?.fenced()
    return false
  }

  /** A process that says its name first. */
  #welcome(socket: Socket): void {
    let id: string | undefined
    socket.unref()
    socket.on('error', () => {})
    eachLine(socket, (line) => {
      if (id !== undefined) return this.#peer?.heard(line)
      id = line
      this.#members.set(id, socket)
    })
    socket.once('close', () => {
      if (id === undefined || this.#members.get(id) !== socket) return
      this.#members.delete(id)
      this.#peer?.gone(id)
    })
  }

  /** Listens no longer. */
  #stop(): void {
    const server = this.#server
    this.#server = undefined
    const sockets = [...this.#members.values()]
    this.#members.clear()
    server?.close()
    for (const socket of sockets) socket.end()
  }
}

/** Text that comes in any pieces, line by line. */
function eachLine(socket: Socket, hear: (line: string) => void): void {
  let rest = ''
  socket.setEncoding('utf8')
  socket.on('data', (text) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) hear(line)
  })
}
