/**
 * What the transport of Redis asks the store for, and what it makes of the answers. What the store does is
 * tried in `tests/shared/`.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ConfigError } from 'autothrottle'
import { COMPETE, RELEASE, RENEW, SEND } from '../../js/shared/redis/scripts.js'
import type { Argument, Store } from '../../js/shared/redis/store.js'
import { RedisTransport } from '../../js/shared/redis/transport.js'

const nothing = () => {}
const NOBODY = { opened: nothing, received: nothing, gone: nothing, vacant: nothing, fenced: nothing }
const CLOCK = { now: () => 0, wallNow: () => 0, setTimeout: () => 0, clearTimeout: () => {} }

test('a lease that is given to a process that has closed meanwhile is given back', async () => {
  const asked: { script: string; args: readonly Argument[]; answer: (what: unknown) => void }[] = []
  const store: Store = {
    isCluster: false,
    publish: async () => 1,
    run: (script, _, args) => {
      if (script !== COMPETE && script !== RELEASE) return Promise.resolve(['1', '0'])
      return new Promise((answer) => asked.push({ script, args, answer }))
    },
    subscriber: async () => {
      return { isSharded: false, subscribe: async () => {}, unsubscribe: async () => {}, close: () => {} }
    },
  }
  const transport = new RedisTransport(store, 'crawl')
  transport.open({ id: 'me', clock: CLOCK, ...NOBODY, unheard: nothing })
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
  const ears: Map<string, (frame: Uint8Array) => void>[] = []
  const store: Store = {
    isCluster: false,
    publish: async () => 1,
    run: async (script, _, args) => answers(script, args),
    subscriber: async () => {
      const own = new Map<string, (frame: Uint8Array) => void>()
      ears.push(own)
      const subscribe = async (channel: string, hear: (frame: Uint8Array) => void) =>
        void own.set(channel, hear)
      return { isSharded: false, subscribe, unsubscribe: async () => {}, close: () => own.clear() }
    },
  }
  return { store, ears, transport: new RedisTransport(store, 'x') }
}

test('a connection is made anew when it is asked for, and hears what the old one heard', async () => {
  const { ears, transport } = played((script) => (script === COMPETE ? ['1', '', '0'] : 1))
  let opened = 0
  const frames: number[] = []
  const peer = { ...NOBODY, unheard: nothing, opened: () => opened++ }
  transport.open({ id: 'p', clock: CLOCK, ...peer, received: (frame) => frames.push(frame[0]!) })
  await transport.compete(0)
  const channels = [...ears[0]!.keys()]
  assert.deepEqual(
    channels,
    ['all', 'to:p', 'leader'].map((channel) => `autothrottle:{x}:${channel}`),
  )
  transport.reconnect()
  while (opened < 2) await undefined
  assert.deepEqual([...ears[1]!.keys()], channels)
  assert.equal(ears[0]!.size, 0, 'the old one is closed')
  ears[1]!.get('autothrottle:{x}:all')?.(Uint8Array.of(5))
  // A process that asks for listeners does not speak itself.
  ears[1]!.get('autothrottle:{x}:leader')?.(new Uint8Array(0))
  assert.deepEqual(frames, [5])
})

test("whom nobody heard is told, and a lease that is another's; what is stored comes back as it was", async () => {
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
  transport.open({ id: 'p', clock: CLOCK, ...NOBODY, fenced, unheard })
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
  transport.open({ id: 'p', clock: CLOCK, ...NOBODY, unheard: nothing })
  await assert.rejects(
    transport.compete(0),
    (error) => error instanceof ConfigError && /NOPERM/.test(error.message),
  )
})
