/**
 * Processes of one machine, by a Unix socket or a named pipe: the one that listens there leads.
 *
 * A process that ends closes its connections, so its death is seen at once. One that is stopped keeps them:
 * after a lease of silence another takes its place, by putting a new socket where the old one was. The one
 * that was there finds that out before it sends. The number of the lease lies in a file beside it, and what
 * the leader remembers in another. A frame goes behind its length, in four bytes; the first one of a member
 * is its name.
 *
 * The traps: the socket of a process that was killed, which stays and refuses; two that find it at once (a
 * lock, made with `wx`, for the moment of putting the new one there); the workers of a cluster, whose sockets
 * belong to the primary unless they are exclusive; a path of more than a hundred bytes; and a folder that
 * another user made.
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
import { afterTurn, type Lease, type Peer, type Transport } from './transport.js'

/** A lock that is seen for so long was left behind, in milliseconds. */
const LOCK_MS = 2000
/** No frame is longer, in bytes: a process that sends one is cut off. */
const MOST_BYTES = 2 ** 20
/** The bytes that a process may leave unread: then it is cut off. */
const MOST_UNREAD = 64 * 2 ** 20

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
  /** The way to the leader, what lay there, and when its last frame came. */
  #leader: Socket | undefined
  #found: number | undefined
  #receivedAt = 0
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
    peer.opened()
  }

  async compete(above: number): Promise<Lease | undefined> {
    const peer = this.#peer
    if (!peer) return undefined
    // Each time: a cleaner of temporary files, or a logout, takes the folder away.
    this.#path = this.#makePath()
    // A process that competes leads no longer, though it may listen still.
    this.#stop()
    if (!(await this.#isSilent())) return undefined
    const found = this.#found
    const server = await this.#listen()
    const lease = this.#claim(server, found, above)
    if (lease) return lease
    server.close()
    if (!this.#isPipe) this.#remove(this.#own)
    await this.#connect()
    return undefined
  }

  async renew(_: number, store: Uint8Array | undefined): Promise<boolean> {
    const isOurs = this.isHeld()
    if (!isOurs) this.#stop()
    else if (store) this.#save(store)
    return isOurs
  }

  isHeld(): boolean {
    return this.#server !== undefined && this.#inodeAt() === this.#inode
  }

  async release(epoch: number, store: Uint8Array | undefined): Promise<void> {
    const isOurs = await this.renew(epoch, store)
    this.#stop()
    if (isOurs && !this.#isPipe) this.#remove(this.#path)
  }

  toLeader(frame: Uint8Array): void {
    if (this.#server) this.#toOurselves(frame)
    else if (this.#leader) write(this.#leader, frame)
  }

  toMember(epoch: number, id: string, frame: Uint8Array): void {
    if (!this.#isGood(epoch)) return
    const socket = this.#members.get(id)
    if (socket) write(socket, frame)
    else queueMicrotask(() => this.#peer?.unheard(id, epoch))
  }

  toAll(epoch: number, frame: Uint8Array): void {
    if (!this.#isGood(epoch)) return
    for (const socket of [...this.#members.values()]) write(socket, frame)
    this.#toOurselves(frame)
  }

  /**
   * A stream breaks, or is whole. It does not connect again: the system accepts for a process that is
   * stopped, and its silence would count anew.
   */
  reconnect(): void {}

  async close(): Promise<void> {
    this.#peer = undefined
    this.#leader?.end()
    this.#stop()
  }

  #toOurselves(frame: Uint8Array): void {
    afterTurn(() => this.#peer?.received(frame))
  }

  /** Where a socket of this process lies that no other knows yet. */
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

  /** Whether no process answers there, or the one that does has been silent for a lease. */
  async #isSilent(): Promise<boolean> {
    if (this.#leader && this.#inodeAt() === this.#found) return this.#now - this.#receivedAt >= this.leaseMs
    // No leader is connected, or another made its socket anew.
    this.#leader?.destroy()
    this.#leader = undefined
    return !(await this.#connect())
  }

  /** The connection to the process that listens. */
  #connect(): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#found = this.#inodeAt()
      const socket = this.#net.connect(this.#path)
      socket.unref()
      socket.once('connect', () => {
        this.#leader = socket
        this.#receivedAt = this.#now
        if (this.#peer) write(socket, bytesOf(this.#peer.id))
        resolve(true)
      })
      socket.on('error', (error) => {
        const isNobody = ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE'].includes(error.code ?? '')
        if (isNobody) resolve(false)
        else reject(error)
      })
      eachFrame(socket, (frame) => {
        this.#receivedAt = this.#now
        this.#peer?.received(frame)
      })
      socket.once('close', () => {
        resolve(false)
        if (this.#leader !== socket) return
        this.#leader = undefined
        // One that was replaced lets go as well, and lives.
        this.#peer?.vacant(this.#inodeAt() === this.#found)
      })
    })
  }

  /** A socket that no other knows yet; a pipe is there at once. */
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

  /** Puts the socket where others look for it, if no other has. */
  #claim(server: Server, found: number | undefined, above: number): Lease | undefined {
    const [files, path] = [this.#files, this.#path]
    if (this.#isPipe) {
      this.#server = server
      return { epoch: above + 1 }
    }
    if (!this.#lock()) return undefined
    try {
      if (this.#inodeAt() !== found) return undefined
      const known = this.#epochAt()
      const next = Math.max(known, above) + 1
      files.writeFileSync(`${path}.epoch`, String(next), { mode: 0o600 })
      files.chmodSync(this.#own, 0o600)
      // Before it is there: what lies there later may be another's.
      this.#inode = this.#inodeAt(this.#own)
      files.renameSync(this.#own, path)
      this.#leader?.destroy()
      this.#leader = undefined
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

  /** The state that the last leader stored, and its age. */
  #kept(): Pick<Lease, 'stored' | 'ageMs'> {
    const path = `${this.#path}.state`
    const file = this.#files.statSync(path, { throwIfNoEntry: false })
    if (!file) return {}
    const ageMs = Math.max(systemClock(true).wallNow() - file.mtimeMs, 0)
    return { stored: this.#files.readFileSync(path), ageMs }
  }

  /** Whole or not at all: no process reads a half. Changes (the first byte tells them) are appended. */
  #save(store: Uint8Array): void {
    if (this.#isPipe) return
    const [files, path] = [this.#files, `${this.#path}.state`]
    if ((store[0] as number) & 0x80) {
      if (files.statSync(path, { throwIfNoEntry: false }))
        files.writeFileSync(path, store, { flag: 'a', mode: 0o600 })
      return
    }
    files.writeFileSync(`${this.#own}.state`, store, { mode: 0o600 })
    files.renameSync(`${this.#own}.state`, path)
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
  #isGood(epoch: number): boolean {
    if (this.isHeld()) return true
    this.#stop()
    queueMicrotask(() => this.#peer?.fenced(epoch))
    return false
  }

  /** A process that says its name first. */
  #welcome(socket: Socket): void {
    let id: string | undefined
    socket.unref()
    socket.on('error', () => {})
    eachFrame(socket, (frame) => {
      if (id !== undefined) return this.#peer?.received(frame)
      id = textOf(frame)
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

/** A frame behind its length. A process that does not read is cut off. */
function write(socket: Socket, frame: Uint8Array): void {
  const bytes = new Uint8Array(4 + frame.length)
  new DataView(bytes.buffer).setUint32(0, frame.length)
  bytes.set(frame, 4)
  socket.write(bytes)
  if (socket.writableLength > MOST_UNREAD) socket.destroy()
}

/** Bytes that come in any pieces, frame by frame. */
function eachFrame(socket: Socket, receive: (frame: Uint8Array) => void): void {
  const pieces: Uint8Array[] = []
  let [held, wanted] = [0, 4]
  socket.on('data', (piece) => {
    pieces.push(piece)
    held += piece.length
    // A long frame comes in many pieces: they are put together once.
    if (held < wanted) return
    const bytes = joined(pieces.splice(0), held)
    let at = 0
    for (;;) {
      wanted = 4
      if (bytes.length - at < wanted) break
      const length = new DataView(bytes.buffer, at).getUint32(0)
      if (length > MOST_BYTES) return void socket.destroy()
      wanted += length
      if (bytes.length - at < wanted) break
      receive(bytes.subarray(at + 4, at + wanted))
      at += wanted
    }
    held = bytes.length - at
    if (held > 0) pieces.push(bytes.subarray(at))
  })
}

function joined(pieces: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(length)
  let at = 0
  for (const piece of pieces) {
    all.set(piece, at)
    at += piece.length
  }
  return all
}

/** The name of a process as bytes, and back. */
function bytesOf(id: string): Uint8Array {
  return Uint8Array.from(id.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16))
}

function textOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
