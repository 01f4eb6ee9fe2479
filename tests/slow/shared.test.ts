/**
 * Processes that share a limit, under faults: what must hold of their sum, over many seeds. `npm run
 * test:seeds` plays more of them.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IDLE } from 'autothrottle/engine'
import { Member } from '../../js/shared/member.js'
import {
  type Beat,
  decode,
  encode,
  type Grant,
  type Hello,
  type ToWriter,
  type Turn,
} from '../../js/shared/messages.js'
import { afterTurn } from '../../js/shared/turn.js'
import { Writer } from '../../js/shared/writer.js'
import { playLearned } from '../js/shared/learned.js'
import { play } from '../js/shared/play.js'
import { LEASE_MS, Process, World } from '../js/shared/world.js'

const SEEDS = Number(process.env.SEEDS ?? 600)
/** A minute of requests takes longer than a play of faults. */
const LEARNED = SEEDS / 20

/** A member without a writer, and what it says. `afterTurn` is a microtask unless it is told. */
function lonely(
  clock: { now: number },
  offsetMs?: number,
  atTurnsEnd: (done: () => void) => void = queueMicrotask,
) {
  const said: ToWriter[] = []
  const link = {
    ...{ id: 'm', hash: '', now: () => clock.now, offsetMs: () => offsetMs, afterTurn: atTurnsEnd },
    send: (message: ToWriter) => said.push(message),
    changed: () => {},
  }
  const member = new Member(link, 1500)
  const submit = () => member.submit(['x'], { cost: 1, priority: 0, delay: 0 })
  return { said, member, submit }
}

test('without faults no limit is broken, and everything is sent', async () => {
  for (let seed = 0; seed < 20; seed++) {
    const { problems, sends } = await play(seed, { isCalm: true })
    assert.deepEqual(problems, [], `seed ${seed}`)
    assert.ok(sends > 20, `seed ${seed}: only ${sends} sent`)
  }
})

test('messages lost, late, twice and in disorder; processes killed, stopped, cut off and new', async () => {
  let [sends, takeovers] = [0, 0]
  for (let seed = 0; seed < SEEDS; seed++) {
    const played = await play(seed)
    assert.deepEqual(played.problems, [], `seed ${seed}: ${played.faults.join('; ')}`)
    sends += played.sends
    takeovers += played.takeovers
  }
  assert.ok(sends > 30 * SEEDS && takeovers > SEEDS / 4, `${sends} sends, ${takeovers} takeovers`)
})

test('what a group has learned outlasts its writers: once all is well it is as fast as one', async () => {
  let takeovers = 0
  for (let seed = 0; seed < LEARNED; seed++) {
    const played = await playLearned(seed)
    const { share, refused } = played
    assert.ok(share >= 0.8, `seed ${seed}: ${share} of the limit; ${played.faults.join('; ')}`)
    assert.ok(refused <= 60, `seed ${seed}: ${refused} refused; ${played.faults.join('; ')}`)
    takeovers += played.takeovers
  }
  assert.ok(takeovers > LEARNED / 2, `${takeovers} takeovers`)
})

test('what an older writer grants, or what answers an older story, nobody hears', async () => {
  const clock = { now: 0 }
  const { said, member, submit } = lonely(clock)
  member.enter(4)
  const id = submit()
  await undefined
  const grant = (epoch: number, hello: number, number: number, attempt = 0): Grant => {
    return { type: 'grant', from: 'w', epoch, hello, number, ids: [id, attempt], refused: [] }
  }
  for (const old of [grant(3, 1, 1), grant(5, 1, 1), grant(4, 0, 1), grant(4, 2, 1), grant(4, 1, 1, 7)]) {
    member.onGrant(old)
    assert.equal(member.poll(clock.now), IDLE, JSON.stringify(old))
  }
  member.onGrant(grant(4, 1, 2))
  member.onGrant(grant(4, 1, 2))
  assert.equal(member.poll(clock.now), id)
  assert.equal(member.poll(clock.now), IDLE, 'once')
  // Another writer: an older story's grant is not heard, and the flight is told.
  member.enter(5)
  const hello = said.at(-1) as Hello
  assert.deepEqual([hello.type, hello.hello, hello.waiting.length, hello.flying.length], ['hello', 2, 0, 1])
  // A beat that misses what was said brings the story again, and one that has it does not.
  clock.now = 600
  const beat = (turns: number): Beat => {
    return { type: 'beat', from: 'w', epoch: 5, hash: '', members: { m: [2, turns, 0] } }
  }
  const count = said.length
  member.cancel(id)
  await undefined
  member.onBeat(beat(0))
  assert.equal(said.length, count + 1, 'it may be on its way')
  member.onBeat(beat(0))
  assert.equal(said.at(-1)?.type, 'hello')
  assert.equal(said.length, count + 2)
})

test('what many do in one turn of the event loop is one message, and one that leaves says it first', async () => {
  const { said, member, submit } = lonely({ now: 0 }, undefined, afterTurn)
  member.enter(1)
  // Between two of these all microtasks run.
  for (let each = 0; each < 32; each++) setImmediate(submit)
  for (let turn = 0; turn < 3; turn++) await new Promise((done) => setImmediate(done))
  const turns = () => said.flatMap((message) => (message.type === 'turn' ? [message.acts.length] : []))
  assert.deepEqual(turns(), [32])
  submit()
  member.flush()
  assert.deepEqual(turns(), [32, 1])
})

test('a long story is not told again while it is on its way', () => {
  const beat: Beat = { type: 'beat', from: 'w', epoch: 1, hash: '', members: {} }
  for (const [count, at] of [
    [1, 100],
    [20_000, 1000],
  ] as const) {
    const clock = { now: 0 }
    const { said, member, submit } = lonely(clock, undefined, () => {})
    const told = () => said.filter(({ type }) => type === 'hello').length
    for (let each = 0; each < count; each++) submit()
    member.enter(1)
    const before = told()
    clock.now += at / 2
    member.onBeat(beat)
    assert.equal(told(), before, `${count} requests after ${at / 2} ms`)
    clock.now += at
    member.onBeat(beat)
    assert.equal(told(), before + 1, `${count} requests after ${1.5 * at} ms`)
  }
})

test('a writer is killed: another grants within a lease and a fifth, and 0.2 s', async () => {
  for (let seed = 0; seed < 30; seed++) {
    const world = new World(seed)
    let last = 0
    const options = { defaults: { delay: 0, slotDelay: 0, jitter: false, concurrency: 9 } }
    const processes = Array.from({ length: 5 }, (_, index) => new Process(world, `p${index}`, options))
    for (const process of processes) {
      const ask = () => process.host.submit(process.clock.now(), [process.host.intern('x')])
      process.listen((ticket) => {
        last = world.now
        world.after(20, process, () => {
          process.host.settle(process.clock.now(), ticket, { status: 200 })
          ask()
        })
      })
      world.after(world.dice.below(300), process, ask)
    }
    await world.run(3000 + world.dice.below(1000))
    const killedAt = world.now
    processes.find(({ id }) => id === world.store.holder)!.kill()
    // What was granted before leaves first.
    await world.run(200)
    const before = last
    while (last === before && world.now < killedAt + 5000) await world.run(5)
    assert.ok(last - killedAt <= 1.2 * LEASE_MS + 200, `seed ${seed}: silence of ${last - killedAt} ms`)
  }
})

test('what is told while a new writer listens counts before it grants', () => {
  let begin = () => {}
  const clock = { now: () => 1000, wallNow: () => 1e12, clearTimeout: () => {} }
  const granted: string[] = []
  const link = {
    ...{
      id: 'w',
      epoch: 2,
      hash: '',
      leaseMs: 1500,
      isPrompt: false,
      isAlone: false,
      offsetMs: () => undefined,
    },
    isGood: () => true,
    grant: (to: string) => granted.push(to),
    ...{ tell: () => {}, soon: () => {}, differs: () => {} },
  }
  const timed = { ...clock, setTimeout: (wake: () => void) => (begin = wake) }
  const beginning = {
    state: undefined,
    ageMs: 0,
    former: 'v',
    gone: undefined,
    snapshot: undefined,
  }
  const writer = new Writer(link, { defaults: { delay: 0, slotDelay: 0, concurrency: 9 } }, timed, beginning)
  writer.collect()
  const ask = { id: 0, attempt: 0, names: ['x'], cost: 1, priority: 0, delay: 0, waited: 5 }
  const story = { type: 'hello', epoch: 2, hello: 1, orders: [], hash: '', watch: 0 } as const
  writer.hear({ ...story, from: 'a', waiting: [], flying: [{ ...ask, sentAgo: 3 }] })
  writer.hear({ ...story, from: 'b', waiting: [ask], flying: [] })
  const [unknown, wait] = [Number.NaN, 3000]
  const told = [429, 50, unknown, 272, unknown, wait, unknown, unknown, unknown, unknown, wait]
  const turn = { type: 'turn', from: 'a', epoch: 2, hello: 1, number: 1 } as const
  writer.hear({ ...turn, acts: [['over', 0, 0, told]] })
  begin()
  assert.deepEqual(granted, [])
  assert.ok((writer.engine.stats(undefined, 1000).scopes.x?.holdUntil ?? 0) >= 4000)
  writer.stop()
})

test('where all that live hear of a new writer at once, the places of the others are free at once', () => {
  for (const isPrompt of [true, false]) {
    const wakes: (() => void)[] = []
    const granted: string[] = []
    const clock = { now: () => 1000, wallNow: () => 1e12, clearTimeout: () => {} }
    const link = {
      ...{ id: 'w', epoch: 2, hash: '', leaseMs: 1500, isAlone: false, isPrompt, offsetMs: () => undefined },
      isGood: () => true,
      grant: (to: string) => granted.push(to),
      ...{ tell: () => {}, soon: () => {}, differs: () => {} },
    }
    const snapshot = { version: 1 as const, wallMs: 0, scopes: {} }
    const flying = [[1, ['x']]] as const
    const members = ['dead', 'lives'].map((id) => [id, [1, 1, 0] as const, flying] as const)
    const state = { snapshot, settings: [], isPaused: false, members }
    const writer = new Writer(
      link,
      { defaults: { delay: 0, slotDelay: 0, concurrency: 2 } },
      { ...clock, setTimeout: (wake: () => void) => wakes.push(wake) },
      { state, ageMs: 500, former: undefined, gone: undefined, snapshot: undefined },
    )
    writer.collect()
    const ask = { attempt: 0, names: ['x'], cost: 1, priority: 0, delay: 0, waited: 5 }
    const story = { type: 'hello', epoch: 2, hello: 2, orders: [], hash: '', watch: 0 } as const
    const waiting = [1, 2].map((id) => ({ ...ask, id }))
    writer.hear({ ...story, from: 'lives', waiting, flying: [{ ...ask, id: 0, sentAgo: 600 }] })
    for (let wake = wakes.shift(); wake && granted.length === 0; wake = wakes.shift()) wake()
    assert.equal(writer.engine.stats(undefined, 1000).inFlight, 2)
    assert.deepEqual(granted, isPrompt ? ['lives'] : [])
    writer.stop()
  }
})

test('leave that lay unread while its process slept is not used', async () => {
  const world = new World(1)
  world.hasClock = false
  let [now, most] = [0, 0]
  const processes = ['a', 'b'].map((id) => new Process(world, id, { defaults: { delay: 0, concurrency: 2 } }))
  for (const process of processes) {
    const { host, clock } = process
    const ask = () => host.submit(clock.now(), [host.intern('slots')])
    process.listen((ticket) => {
      most = Math.max(most, ++now)
      // The server goes on while its client sleeps.
      world.after(30, undefined, () => {
        now--
        world.after(0, process, () => {
          host.settle(clock.now(), ticket, { status: 200 })
          ask()
        })
      })
    })
    for (let each = 0; each < 4; each++) world.after(0, process, ask)
  }
  await world.run(2000)
  const follower = processes.find(({ id }) => id !== world.store.holder)!
  for (let time = 0; time < 10; time++) {
    follower.stop(4000 + 7 * time)
    await world.run(6000)
  }
  assert.equal(world.takeovers.length, 0)
  assert.equal(most, 2)
})

test('leave that is late is used one by one, and not at all when it is too old', async () => {
  const clock = { now: 1000 }
  const { said, member, submit } = lonely(clock, 0)
  member.enter(1)
  for (let each = 0; each < 4; each++) submit()
  await undefined
  const grant = (hello: number, id: number, at: number): Grant => {
    return { type: 'grant', from: 'w', epoch: 1, hello, number: id + 1, ids: [id, 0], refused: [], at }
  }
  clock.now = 3000
  member.onGrant(grant(1, 0, 1490))
  assert.equal(member.poll(clock.now), IDLE, 'it is older than a lease')
  assert.deepEqual([said.at(-1)?.type, said.at(-1)?.hello], ['hello', 2])
  for (const id of [0, 1, 2]) member.onGrant(grant(2, id, 3000))
  clock.now = 3300
  assert.equal(member.poll(clock.now), 0, 'the process slept')
  assert.equal(member.poll(clock.now), IDLE, 'the others wait again')
  const story = said.at(-1) as Hello
  assert.deepEqual([story.hello, story.waiting.length, story.flying.length], [3, 3, 1])
})

test('the next one of a group waits its gap from when the last really left', async () => {
  for (const hasClock of [true, false]) {
    const world = new World(3)
    world.hasClock = hasClock
    const starts: number[] = []
    const options = { defaults: { delay: 150, slotDelay: 0, jitter: false, concurrency: 100 } }
    for (const id of ['a', 'b', 'c']) {
      const process = new Process(world, id, options)
      const { host, clock } = process
      const ask = () => host.submit(clock.now(), [host.intern('site')])
      process.listen((ticket) => {
        // Its first fetch takes a while, and so does one now and then.
        world.after(starts.length % 3 === 0 ? 40 : 0, process, () => {
          host.left(clock.now(), ticket)
          starts.push(world.now)
          host.settle(clock.now(), ticket, { status: 200 })
          ask()
        })
      })
      for (let each = 0; each < 4; each++) world.after(0, process, ask)
    }
    await world.run(10_000)
    const gaps = starts.slice(1).map((at, index) => at - starts[index]!)
    assert.ok(gaps.length > 40, `${gaps.length}`)
    // Without a clock nobody knows how long a grant was on its way: 2 ms here.
    const least = hasClock ? 150 - 0.5 : 150 - 2.5
    assert.ok(Math.min(...gaps) >= least, `${Math.min(...gaps)} ms, clock: ${hasClock}`)
    // In the mean as one process: 40 ms with every third.
    assert.ok(gaps.reduce((sum, gap) => sum + gap) / gaps.length < 150 + 40 / 3 + 6)
  }
})

test('lateness is told first, once a turn; a little of it only where somebody waits for the time after', async () => {
  const clock = { now: 1000 }
  const { said, member, submit } = lonely(clock, 0)
  member.enter(1)
  for (let each = 0; each < 2; each++) submit()
  await undefined
  const grant = (number: number, isAwaited: boolean | undefined): Grant => {
    const head = { type: 'grant', from: 'w', epoch: 1, hello: 1 } as const
    return { ...head, number, ids: [number - 1, 0], refused: [], at: clock.now, isAwaited }
  }
  const acts = () => (said.at(-1)?.type === 'turn' ? (said.at(-1) as Turn).acts : undefined)
  member.onGrant(grant(1, true))
  clock.now += 2
  assert.equal(member.poll(clock.now), 0)
  clock.now += 30
  member.left(clock.now, 0)
  member.settle(0, [200])
  await undefined
  assert.deepEqual(acts(), [
    ['left', 0, 0, 32],
    ['over', 0, 0, [200]],
  ])
  assert.equal(member.isAwaited, true)
  const count = said.length
  member.onGrant(grant(2, undefined))
  clock.now += 2
  assert.equal(member.poll(clock.now), 1)
  clock.now += 10
  member.left(clock.now, 1)
  await undefined
  assert.equal(said.length, count)
  assert.equal(member.isAwaited, false)
  // So late that a quota has to know.
  clock.now += 20
  member.left(clock.now, 1)
  await undefined
  assert.deepEqual(acts(), [['left', 1, 0, 32]])
})

test('what is not well formed is not heard, and one of another version is known as such', () => {
  for (const text of ['', 'x', '[]', 'null', '{}', '{"v":1}', '{"v":1,"type":"beat","from":1,"epoch":2}'])
    assert.equal(decode(text), 'wrong', text)
  assert.equal(decode('{"v":2,"type":"beat"}'), 'version')
  const ping: ToWriter = { type: 'ping', from: 'a', epoch: 2, hello: 1 }
  assert.deepEqual(decode(encode(ping)), { v: 1, ...ping })
})
