/**
 * Sockets and files of one machine: folders that cannot work, locks that were left behind, and pauses between
 * two calls. Real files, and a clock that the test moves.
 */

import assert from 'node:assert/strict'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { type Clock, ConfigError, createThrottle } from 'autothrottle'
import { local } from 'autothrottle/local'
import { COMPETE, RELEASE, RENEW, SEND } from '../../js/shared/redis/scripts.js'
import type { Argument, Store } from '../../js/shared/redis/store.js'
import { RedisTransport } from '../../js/shared/redis/transport.js'
import { SocketTransport } from '../../js/shared/socket.js'

const isWindows = process.platform === 'win32'
const folders: string[] = []
const folder = (): string => {
  const made = fs.mkdtempSync(join(tmpdir(), 'at-'))
  folders.push(made)
  return made
}
after(() => {
  for (const made of folders) fs.rmSync(made, { recursive: true, force: true })
})

/** A transport that is open, by a clock that the test moves. */
function open(where: string, id: string) {
  const clock = { at: 1000 }
  const transport = new SocketTransport({ name: 'x', folder: where })
  const idle: Clock = {
    now: () => clock.at,
    wallNow: () => Date.now(),
    setTimeout: () => undefined,
    clearTimeout: () => {},
  }
  const nothing = () => {}
  const heard: ((frame: Uint8Array) => void)[] = []
  const received = (frame: Uint8Array) => heard.shift()?.(frame)
  transport.open({
    id: id.repeat(32),
    clock: idle,
    ...{ opened: nothing, received, unheard: nothing },
    gone: nothing,
    vacant: nothing,
    fenced: nothing,
  })
  return { transport, clock, heard }
}

test('a folder that cannot work is an error of each request, with the reason', {
  skip: isWindows,
}, async () => {
  const [wide, file, deep] = [folder(), join(folder(), 'file'), join(folder(), 'x'.repeat(90))]
  fs.chmodSync(wide, 0o755)
  fs.writeFileSync(file, '')
  const cases: [string, RegExp][] = [
    [wide, /no other user may open.*755/],
    [file, /no other user may open/],
    [join(file, 'below'), /ENOTDIR/],
    [deep, /shorter by \d+ bytes/],
  ]
  for (const [where, why] of cases) {
    const throttle = createThrottle({ shared: local({ name: 'x', folder: where }) })
    for (let request = 0; request < 2; request++)
      await assert.rejects(
        throttle.run({ scopes: 'a' }, () => 1),
        (error) =>
          error instanceof ConfigError && why.test(error.message) && /shared.folder/.test(error.message),
      )
    await throttle[Symbol.asyncDispose]()
  }
})

test('a folder that vanishes is made again, and the next process leads', { skip: isWindows }, async () => {
  const where = join(folder(), 'sockets')
  const [one, two] = [open(where, 'a'), open(where, 'b')]
  const lease = await one.transport.compete(0)
  assert.equal(lease?.epoch, 1)
  assert.equal(await two.transport.compete(0), undefined, 'it leads')
  fs.rmSync(where, { recursive: true })
  assert.equal(await one.transport.renew(1, undefined), false, 'no other process can find it')
  assert.equal((await two.transport.compete(1))?.epoch, 2)
  assert.ok(fs.statSync(where).isDirectory())
  await Promise.all([one.transport.close(), two.transport.close()])
})

test('a lock is left behind when it was seen for two seconds, whatever its time says', {
  skip: isWindows,
}, async () => {
  const where = folder()
  const { transport, clock } = open(where, 'a')
  const first = await transport.compete(0)
  assert.equal(first?.epoch, 1)
  await transport.release(first!.epoch, undefined)
  const lock = `${fs
    .readdirSync(where)
    .find((name) => name.endsWith('.epoch'))
    ?.slice(0, -6)}.lock`
  for (const wrong of [3600, -3600]) {
    fs.writeFileSync(join(where, lock), '')
    const then = Date.now() / 1000 + wrong
    fs.utimesSync(join(where, lock), then, then)
    assert.equal(await transport.compete(0), undefined)
    clock.at += 1900
    assert.equal(await transport.compete(0), undefined)
    clock.at += 200
    const lease = await transport.compete(0)
    assert.ok(lease, `${wrong}`)
    await transport.release(lease.epoch, undefined)
  }
  await transport.close()
})

test('a process that was stopped between two calls does not take the socket of another for its own', {
  skip: isWindows,
}, async () => {
  const where = folder()
  const { transport } = open(where, 'a')
  const rename = fs.renameSync
  try {
    fs.renameSync = (from, to) => {
      rename(from, to)
      // Another process puts its own there.
      fs.writeFileSync(join(where, 'other'), '')
      rename(join(where, 'other'), to)
    }
    await transport.compete(0)
  } finally {
    fs.renameSync = rename
  }
  assert.equal(transport.isHeld(), false)
  await transport.close()
})

test('the memory of the writer is there for the next one, though no process heard it', {
  skip: isWindows,
}, async () => {
  const where = folder()
  const a = open(where, 'a')
  const lease = await a.transport.compete(0)
  assert.equal(lease?.stored, undefined)
  assert.equal(await a.transport.renew(lease!.epoch, Uint8Array.of(7, 0, 255)), true)
  await a.transport.close()
  const b = open(where, 'b')
  const next = await b.transport.compete(0)
  assert.deepEqual([...(next?.stored ?? [])], [7, 0, 255])
  assert.ok(next!.ageMs! >= 0 && next!.ageMs! < 60_000)
  await b.transport.release(next!.epoch, Uint8Array.of(8))
  assert.deepEqual([...((await open(where, 'c').transport.compete(0))?.stored ?? [])], [8])
})

test('frames cross whole, in any pieces and both ways, and what a leader says comes back to it', {
  skip: isWindows,
}, async () => {
  const where = folder()
  const heard: [string, string, number][] = []
  const start = (digit: string) => {
    const { transport } = open(where, digit)
    const nothing = () => {}
    const received = (frame: Uint8Array) => heard.push([digit, String(frame[0]), frame.length])
    const clock = { now: () => 0, wallNow: () => 0, setTimeout: nothing, clearTimeout: nothing }
    const peer = { opened: nothing, received, unheard: nothing, gone: nothing, vacant: nothing }
    transport.open({ id: digit.repeat(32), clock, ...peer, fenced: nothing })
    return transport
  }
  const [a, b] = [start('a'), start('b')]
  const lease = await a.compete(0)
  assert.equal(await b.compete(0), undefined)
  const long = new Uint8Array(300_000).fill(2)
  b.toLeader(Uint8Array.of(1))
  b.toLeader(long)
  a.toLeader(Uint8Array.of(3))
  const until = async (count: number) => {
    while (heard.length < count) await new Promise((done) => setImmediate(done))
  }
  await until(3)
  a.toAll(lease!.epoch, Uint8Array.of(4))
  a.toMember(lease!.epoch, 'b'.repeat(32), long)
  await until(6)
  assert.deepEqual(heard.sort(), [
    ['a', '1', 1],
    ['a', '2', 300_000],
    ['a', '3', 1],
    ['a', '4', 1],
    ['b', '2', 300_000],
    ['b', '4', 1],
  ])
  await Promise.all([a.close(), b.close()])
})

test('a writer that was replaced while it was stopped, and learns it by its clock, talks to the next one, not to itself', {
  skip: isWindows,
}, async () => {
  const where = folder()
  const [a, b] = [open(where, 'a'), open(where, 'b')]
  const first = await a.transport.compete(0)
  assert.equal(await b.transport.compete(0), undefined)
  b.clock.at += 2000
  const second = await b.transport.compete(1)
  assert.equal(second?.epoch, 2)
  assert.equal(first?.epoch, 1)
  const alive = setInterval(() => {}, 1000)
  const heard = new Promise((done) => b.heard.push(done))
  assert.equal(await a.transport.compete(1), undefined)
  a.transport.toLeader(Uint8Array.of(9))
  assert.deepEqual([...((await heard) as Uint8Array)], [9])
  clearInterval(alive)
  await Promise.all([a.transport.close(), b.transport.close()])
})

// The commands of the Redis transport to the store, and its reading of the answers. `tests/shared/` tries the
// scripts in the store.

const nothing = () => {}
const NO_LISTENER = { opened: nothing, received: nothing, gone: nothing, vacant: nothing, fenced: nothing }
const SUBSCRIBER = { isSharded: false, ready: Promise.resolve(), unsubscribe: async () => {}, close: nothing }
const CLOCK = { now: () => 0, wallNow: () => 0, setTimeout: () => 0, clearTimeout: () => {} }

test('a lease that is given to a process that has closed meanwhile is given back', async () => {
  const asked: { script: string; args: readonly Argument[]; answer: (what: unknown) => void }[] = []
  const store: Store = {
    ...{ isCluster: false, isSecure: false, publish: async () => 1, reconnect: nothing, close: nothing },
    run: (script, _, args) => {
      if (script !== COMPETE && script !== RELEASE) return Promise.resolve(['1', '0'])
      return new Promise((answer) => asked.push({ script, args, answer }))
    },
    subscriber: () => ({ ...SUBSCRIBER, subscribe: async () => {} }),
  }
  const transport = new RedisTransport(store, 'crawl')
  transport.open({ id: 'me', clock: CLOCK, ...NO_LISTENER, unheard: nothing })
  const lease = transport.compete(0)
  while (asked.length === 0) await undefined
  const closed = transport.close()
  assert.deepEqual(
    asked.map(({ script, args }) => [script, args[0]]),
    [
      [COMPETE, 'me'],
      [RELEASE, 'me'],
    ],
  )
  for (const { answer } of asked) answer(['1', '', '0'])
  await closed
  assert.equal(await lease, undefined)
  assert.equal(await transport.compete(0), undefined)
  assert.equal(asked.length, 2, 'nothing more is asked')
})

/** A store that answers each question as the test says, and connections that it plays. */
function played(answers: (script: string, args: readonly Argument[]) => unknown) {
  const handlers: Map<string, (frame: Uint8Array) => void>[] = []
  const store: Store = {
    ...{ isCluster: false, isSecure: false, publish: async () => 1, reconnect: nothing, close: nothing },
    run: async (script, _, args) => answers(script, args),
    subscriber: () => {
      const own = new Map<string, (frame: Uint8Array) => void>()
      handlers.push(own)
      const subscribe = async (channel: string, hear: (frame: Uint8Array) => void) =>
        void own.set(channel, hear)
      return { ...SUBSCRIBER, subscribe, close: () => own.clear() }
    },
  }
  return { store, handlers, transport: new RedisTransport(store, 'x') }
}

test('a process that has closed opens no connection more', async () => {
  const { handlers, transport } = played(() => ['1', '', '0'])
  transport.open({ id: 'p', clock: CLOCK, ...NO_LISTENER, unheard: nothing })
  await transport.close()
  assert.equal(await transport.compete(0), undefined)
  transport.reconnect(false)
  assert.equal(handlers.length, 0)
})

test('a connection is made anew when it is asked for, and hears what the old one heard', async () => {
  const { handlers, transport } = played((script) => (script === COMPETE ? ['1', '', '0'] : 1))
  let opened = 0
  const frames: number[] = []
  const peer = { ...NO_LISTENER, unheard: nothing, opened: () => opened++ }
  transport.open({ id: 'p', clock: CLOCK, ...peer, received: (frame) => frames.push(frame[0]!) })
  await transport.compete(0)
  const channels = [...handlers[0]!.keys()]
  assert.deepEqual(
    channels,
    ['all', 'to:p', 'leader'].map((channel) => `autothrottle:{x}:${channel}`),
  )
  transport.reconnect(false)
  while (opened < 2) await undefined
  assert.deepEqual([...handlers[1]!.keys()], channels)
  assert.equal(handlers[0]!.size, 0, 'the old one is closed')
  handlers[1]!.get('autothrottle:{x}:all')?.(Uint8Array.of(5))
  // A process that asks for listeners does not speak itself.
  handlers[1]!.get('autothrottle:{x}:leader')?.(new Uint8Array(0))
  assert.deepEqual(frames, [5])
})

test("an unheard process is told so, and of a lease that is another's; what is stored comes back as it was", async () => {
  let stored = ''
  const { transport } = played((script, args) => {
    if (script === COMPETE) return ['7', stored, '30']
    if (script === RENEW) stored = String(args[3])
    if (script === SEND) return args[0] === '7:p' ? [1] : 0
    return 1
  })
  const told: unknown[] = []
  const fenced = (epoch: number) => told.push(['fenced', epoch])
  const unheard = (id: string, epoch: number) => told.push([id, epoch])
  transport.open({ id: 'p', clock: CLOCK, ...NO_LISTENER, fenced, unheard })
  assert.equal((await transport.compete(0))?.stored, undefined)
  transport.toAll(7, Uint8Array.of(1))
  transport.toMember(7, 'q', Uint8Array.of(2))
  while (told.length < 1) await undefined
  transport.toAll(6, Uint8Array.of(1))
  while (told.length < 2) await undefined
  assert.deepEqual(told, [
    ['q', 7],
    ['fenced', 6],
  ])
  assert.equal(await transport.renew(7, Uint8Array.of(0, 200, 255)), true)
  const { stored: again, ageMs } = (await transport.compete(0))!
  assert.deepEqual([[...again!], ageMs], [[0, 200, 255], 30])
})

test('a store that does not let us is an error for good', async () => {
  const { transport } = played(() => {
    throw new Error('NOPERM this user has no permissions to run the eval command')
  })
  transport.open({ id: 'p', clock: CLOCK, ...NO_LISTENER, unheard: nothing })
  await assert.rejects(
    transport.compete(0),
    (error) => error instanceof ConfigError && /NOPERM/.test(error.message),
  )
})
