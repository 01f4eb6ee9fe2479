/**
 * What processes in JavaScript and in Python have to say alike: `tests/golden/shared.json` holds hashes of
 * options, outcomes as they are told, a writer's session and a member's. Python plays the same
 * (`python/tests/shared/test_same.py`). `UPDATE_GOLDEN=1` writes it anew.
 *
 * The trap is a protocol that drifts: processes of both kinds are in one group.
 */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Clock, EngineOptions } from 'autothrottle'
import { Engine } from 'autothrottle/engine'
import { hashOf } from '../../js/shared/hash.js'
import { Member } from '../../js/shared/member.js'
import { decode, encode, type Message, type State, type ToWriter } from '../../js/shared/messages.js'
import { derived } from '../../js/shared/offline.js'
import { Writer } from '../../js/shared/writer.js'

const PLACE = new URL('../golden/shared.json', import.meta.url)

const OPTIONS: EngineOptions = {
  concurrency: 64,
  seed: 7,
  defaults: { delay: 0, slotDelay: 0, jitter: false, concurrency: 8 },
  scopes: {
    gap: { delay: 150 },
    one: { concurrency: 1 },
    quota: { quota: 10, window: 1000 },
    'backs off': { delay: 20, backoff: { minDelay: 1000, jitter: false } },
  },
}

const HASHED: EngineOptions[] = [
  {},
  { defaults: { rampup: true } },
  { defaults: { delay: 500, jitter: 0.25 }, scopes: { '10': {}, '9': {}, 'ü.example': { delay: 0.05 } } },
  { rate: '100/min', retry: { limit: 2, methods: ['GET', 'HEAD'] }, concurrency: 1e6 } as EngineOptions,
  OPTIONS,
]

const OUTCOMES = [
  { status: 200, latencyMs: 50 },
  { status: 503, latencyMs: 12.5 },
  {},
  { status: 429, latencyMs: 50, headers: { 'retry-after': '3' } },
  { status: 429, latencyMs: 50, headers: { 'retry-after': '2' }, retry: true },
  { status: 200, latencyMs: 7, headers: { 'ratelimit-remaining': '5', 'ratelimit-reset': '10' } },
  { status: 200, latencyMs: 7, backoff: true, cost: 3 },
  { status: 503, retry: true },
]

interface Event {
  readonly at: number
  readonly order: number
  readonly run: () => void
}

/** A clock that a session moves, and what was said in it. */
class Tape {
  now: number
  readonly said: { at: number; to: string; message: unknown }[] = []
  readonly #events: Event[] = []
  #made = 0

  constructor(start: number) {
    this.now = start
  }

  readonly clock: Clock = {
    now: () => this.now,
    wallNow: () => 1.7e12 + this.now,
    setTimeout: (run, ms) => {
      const event = { at: this.now + Math.max(ms, 0), order: this.#made++, run }
      this.#events.push(event)
      return event
    },
    clearTimeout: (event) => {
      const at = this.#events.indexOf(event as Event)
      if (at >= 0) this.#events.splice(at, 1)
    },
  }

  say(to: string, message: unknown): void {
    this.said.push({ at: this.now, to, message: JSON.parse(encode(message as Message)) })
  }

  run(until: number): void {
    for (;;) {
      const due = this.#events.filter(({ at }) => at <= until)
      if (due.length === 0) break
      const event = due.reduce((one, other) =>
        other.at < one.at || (other.at === one.at && other.order < one.order) ? other : one,
      )
      this.#events.splice(this.#events.indexOf(event), 1)
      this.now = Math.max(this.now, event.at)
      event.run()
    }
    this.now = until
  }
}

interface Session<Step> {
  readonly start: number
  readonly hash: string
  readonly offsetMs: number
  readonly leadMs: number
  readonly options: EngineOptions
  readonly steps: readonly ({ readonly at: number } & Step)[]
}

type WriterStep =
  | { begin: { epoch: number; ageMs: number; former?: string; gone?: string } }
  | { hear: object }
  | { beat: true }
type MemberStep = { do: readonly [what: string, ...given: unknown[]] }

function playWriter(session: Session<WriterStep>): unknown[] {
  const tape = new Tape(session.start)
  let writer: Writer | undefined
  for (const step of session.steps) {
    tape.run(step.at)
    if ('begin' in step) {
      const { epoch, ageMs, former, gone } = step.begin
      const state = writer && (JSON.parse(writer.state()) as State)
      writer?.stop()
      const link = {
        ...{ id: 'w', epoch, hash: session.hash, leaseMs: 1500, isPrompt: false, isAlone: false },
        isGood: () => true,
        grant: (to: string, grant: unknown) => tape.say(to, grant),
        tell: (tell: unknown) => tape.say('all', tell),
        soon: (ms: number) => {
          if (ms === 0) tape.say('all', { type: 'again' })
        },
        differs: (id: string) => tape.say('all', { type: 'differs', id }),
        offsetMs: () => session.offsetMs,
      }
      const beginning = { state, ageMs, former, gone, snapshot: undefined }
      writer = new Writer(
        link,
        session.options,
        derived(tape.clock, () => session.leadMs, 1),
        beginning,
      )
      writer.collect()
    } else if ('hear' in step) writer?.hear(decode(JSON.stringify(step.hear)) as ToWriter)
    else tape.say('all', writer?.beat())
  }
  return tape.said
}

function playMember(session: Session<MemberStep>): unknown[] {
  const tape = new Tape(session.start)
  const member = new Member(
    {
      id: 'm',
      hash: session.hash,
      now: () => tape.now,
      offsetMs: () => session.offsetMs,
      afterTurn: (done) => void tape.clock.setTimeout(done, 0),
      send: (message) => tape.say('writer', message),
      changed: (refused) => tape.say('desk', { type: 'changed', refused }),
    },
    1500,
  )
  const does: Record<string, (...given: never[]) => void> = {
    submit: (names: string[], cost: number, priority: number, delay: number) =>
      member.submit(names, { cost, priority, delay }),
    poll: () => {
      const ticket = member.poll(tape.now)
      const wake = Number.isFinite(member.wakeAt) ? member.wakeAt : null
      tape.say('desk', { type: 'poll', ticket: ticket < 0 ? null : ticket, wake: ticket < 0 ? wake : null })
    },
    settle: (id: number, told: (number | null)[]) =>
      member.settle(
        id,
        told.map((number) => number ?? Number.NaN),
      ),
    grant: (grant: never) => member.onGrant(grant),
    beat: (beat: never) => member.onBeat(beat),
    ping: (type: 'ping' | 'bye') => member.ping(type),
    left: (id: number) => member.left(tape.now, id),
    cancel: (id: number) => member.cancel(id),
    order: (order: never) => member.order(order),
    enter: (epoch: number) => member.enter(epoch),
  }
  for (const { at, do: step } of session.steps) {
    tape.run(at)
    const [what, ...given] = step
    does[what]?.(...(given as never[]))
  }
  tape.run(tape.now + 1)
  return tape.said
}

const digestOf = (outcome: object, options: EngineOptions = OPTIONS) => {
  const { settled, askedMs, told } = new Engine(options).digest(outcome)
  const numbers = told.map((number) => (Number.isNaN(number) ? null : number))
  return { options, outcome, settled, askedMs: Number.isNaN(askedMs) ? null : askedMs, told: numbers }
}

const toldOf = (outcome: object) => digestOf(outcome).told
const ask = (id: number, names: string[], waited = 0, more: object = {}) => ({
  ...{ id, attempt: 0, names, cost: 1, priority: 0, delay: 0, waited },
  ...more,
})
const hello = (from: string, epoch: number, number: number, more: object = {}) => ({
  ...{ v: 1, type: 'hello', from, epoch, hello: number, waiting: [], flying: [], orders: [] },
  ...{ hash: 'abc', watch: 0 },
  ...more,
})
const turn = (from: string, epoch: number, number: number, acts: unknown[]) => ({
  ...{ v: 1, type: 'turn', from, epoch, hello: 1, number, acts },
})
const asks = (id: number, names: string[], cost = 1, delay = 0) => ['ask', id, 0, names, cost, 0, delay, 0]

/** A first writer, and one that goes on from it without the member that is known to have ended. */
function writersSession(): Session<WriterStep> {
  const flight = (id: number, names: string[], sentAgo: number, more: object = {}) => ({
    ...ask(id, names, sentAgo + 5),
    sentAgo,
    ...more,
  })
  const refusal = { status: 429, latencyMs: 40, headers: { 'retry-after': '2' } }
  const bad = { status: 503, latencyMs: 40 }
  return {
    ...{ start: 1000, hash: 'abc', offsetMs: 250_000.5, leadMs: 20, options: OPTIONS },
    steps: [
      { at: 1000, begin: { epoch: 3, ageMs: 0 } },
      { at: 1010, hear: hello('w', 3, 1, { waiting: [ask(0, ['gap'], 5)] }) },
      {
        at: 1020,
        hear: hello('a', 3, 1, {
          waiting: [ask(1, ['gap'], 400), ask(2, ['one'], 300), ask(3, ['one', 'gap'], 2)],
          flying: [flight(0, ['gap'], 40)],
          orders: [[1, 500, ['hold', 'held', 1200]]],
          watch: 2,
        }),
      },
      { at: 1030, hear: hello('b', 3, 1, { waiting: [ask(0, ['one'], 900)], hash: 'other' }) },
      { at: 1200, hear: turn('a', 3, 1, [asks(4, ['quota'], 4), asks(5, ['quota'], 11), asks(6, ['held'])]) },
      { at: 1210, hear: turn('a', 3, 3, [['over', 4, 0, toldOf({ status: 200, latencyMs: 9 })]]) },
      {
        at: 1220,
        hear: turn('a', 3, 2, [asks(7, ['quota'], 7), ['order', 2, ['configure', 'gap', { delay: 80 }]]]),
      },
      { at: 1300, hear: turn('b', 3, 1, [['over', 0, 0, toldOf(refusal)], asks(1, ['backs off'])]) },
      { at: 1330, beat: true },
      { at: 1400, hear: turn('b', 3, 2, [['over', 1, 0, toldOf(bad)], asks(2, ['backs off'])]) },
      { at: 1400, hear: turn('b', 3, 2, [asks(9, ['gap'])]) },
      { at: 1500, hear: turn('a', 2, 4, [asks(8, ['gap'])]) },
      {
        at: 1550,
        hear: turn('a', 3, 4, [
          ['cancel', 3],
          ['over', 2, 0, [200, 5, null, 0, 40, null, null, null, null, null, null]],
        ]),
      },
      { at: 1600, hear: { v: 1, type: 'ping', from: 'a', epoch: 3, hello: 1 } },
      // Late: the next one waits its gap from there. What is unknown, waits or means nothing changes nothing.
      { at: 1620, hear: turn('a', 3, 5, [asks(12, ['gap']), asks(13, ['gap']), asks(14, ['gap'])]) },
      {
        at: 1650,
        hear: turn('a', 3, 6, [
          ['left', 12, 0, 25.5],
          ['left', 12, 1, 29],
          ['left', 13, 0, 29],
          ['left', 99, 0, 29],
          ['what', 12],
        ]),
      },
      // Nobody leaves later than now.
      { at: 1730, hear: turn('a', 3, 7, [['left', 13, 0, 1e12]]) },
      { at: 2400, beat: true },
      { at: 3600, beat: true },
      { at: 4700, beat: true },
      {
        at: 4800,
        hear: hello('a', 3, 2, { waiting: [ask(10, ['one'], 30)], flying: [flight(2, ['one'], 90)] }),
      },
      { at: 4900, beat: true },
      { at: 5000, begin: { epoch: 4, ageMs: 30, former: 'x' } },
      { at: 5010, hear: hello('w', 4, 2) },
      {
        at: 5030,
        hear: hello('a', 4, 3, {
          waiting: [ask(10, ['one'], 250), ask(11, ['gap'], 1)],
          flying: [
            flight(2, ['one'], 320, { told: toldOf({ status: 200 }), said: [2, 1] }),
            // The writer before has heard it: its memory has the hold.
            flight(4, ['again'], 300, { told: toldOf(refusal), said: [1, 4] }),
          ],
        }),
      },
      { at: 5400, hear: turn('a', 4, 1, [['order', 9, ['pause', null]]]) },
      { at: 5500, beat: true },
      { at: 5600, hear: { v: 1, type: 'bye', from: 'a', epoch: 4, hello: 3 } },
      { at: 5700, beat: true },
    ],
  }
}

function membersSession(): Session<MemberStep> {
  const head = { v: 1, from: 'w' }
  const grant = (number: number, ids: number[], at: number | undefined, more: object = {}) => ({
    ...{ ...head, type: 'grant', epoch: 3, hello: 1, number, ids, refused: [] },
    ...(at === undefined ? {} : { at: at + 500 }),
    ...more,
  })
  const beat = (members: object, more: object = {}) => ({
    ...{ ...head, type: 'beat', epoch: 3, members, hash: 'abc' },
    ...more,
  })
  const again = [503, 5, null, 2, 300, null, null, null, null, null, null]
  return {
    ...{ start: 1000, hash: 'abc', offsetMs: 500, leadMs: 0, options: {} },
    steps: [
      { at: 1000, do: ['submit', ['gap'], 1, 0, 0] },
      { at: 1005, do: ['submit', ['gap', 'one'], [1, 2.5], 3, 400] },
      { at: 1010, do: ['order', ['hold', 'gap', 700]] },
      { at: 1020, do: ['enter', 3] },
      { at: 1030, do: ['submit', ['one'], 1, 0, 0] },
      { at: 1030, do: ['submit', ['two'], 1, 0, 0] },
      { at: 1040, do: ['grant', grant(1, [0, 0, 1, 0], 1100)] },
      { at: 1045, do: ['grant', grant(1, [2, 0], 1100)] },
      { at: 1050, do: ['poll'] },
      { at: 1100.5, do: ['poll'] },
      { at: 1101, do: ['poll'] },
      { at: 1102, do: ['poll'] },
      { at: 1150, do: ['settle', 0, [200, 50, null, 0]] },
      { at: 1160, do: ['settle', 1, again] },
      {
        at: 1170,
        do: [
          'grant',
          grant(2, [], undefined, {
            refused: [
              [3, 'full'],
              [77, 'full'],
            ],
          }),
        ],
      },
      { at: 1200, do: ['beat', beat({ m: [1, 3, 2] }, { state: '{}' })] },
      { at: 1700, do: ['beat', beat({ m: [1, 3, 4] })] },
      { at: 1750, do: ['beat', beat({ m: [1, 3, 4] })] },
      { at: 2200, do: ['beat', beat({ m: [1, 3, 4] })] },
      { at: 2300, do: ['grant', grant(1, [1, 1, 2, 0], 700, { hello: 2 })] },
      { at: 2400, do: ['grant', grant(1, [1, 1, 2, 0], 2350, { hello: 3 })] },
      { at: 2800, do: ['poll'] },
      { at: 2801, do: ['poll'] },
      { at: 2900, do: ['ping', 'ping'] },
      { at: 3000, do: ['enter', 5] },
      { at: 3100, do: ['cancel', 2] },
      { at: 3200, do: ['beat', { ...beat({}), epoch: 5 }] },
      // Late, and later still; on time by the time that nobody is told of; late where nobody waits.
      { at: 3300, do: ['submit', ['gap'], 1, 0, 0] },
      { at: 3300, do: ['submit', ['gap'], 1, 0, 0] },
      { at: 3300, do: ['submit', ['gap'], 1, 0, 0] },
      { at: 3310, do: ['grant', grant(1, [4, 0], 3350, { epoch: 5, hello: 6, isAwaited: true })] },
      { at: 3352.5, do: ['poll'] },
      { at: 3390, do: ['left', 4] },
      { at: 3400, do: ['grant', grant(2, [5, 0], 3450, { epoch: 5, hello: 6, isAwaited: true })] },
      { at: 3450.25, do: ['poll'] },
      { at: 3500, do: ['grant', grant(3, [6, 0], 3550, { epoch: 5, hello: 6 })] },
      { at: 3560, do: ['poll'] },
      { at: 3570, do: ['left', 6] },
      { at: 3600, do: ['ping', 'bye'] },
    ],
  }
}

function golden() {
  const [writer, member] = [writersSession(), membersSession()]
  return JSON.parse(
    JSON.stringify({
      hashes: HASHED.map((options) => ({ options, hash: hashOf(options) })),
      digests: OUTCOMES.map((outcome) => digestOf(outcome)),
      writer: { ...writer, said: playWriter(writer) },
      member: { ...member, said: playMember(member) },
    }),
  )
}

test('what processes of both languages say is what was written down', () => {
  const made = golden()
  if (process.env.UPDATE_GOLDEN) writeFileSync(PLACE, `${JSON.stringify(made, undefined, 1)}\n`)
  const kept = JSON.parse(readFileSync(PLACE, 'utf8'))
  assert.ok(kept.writer.said.length > 10 && kept.member.said.length > 10)
  assert.deepEqual(made, kept)
})
