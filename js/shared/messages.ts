/**
 * What processes that share a limit say to each other, and how it is written.
 *
 * One process, the *writer*, runs the engine; every process, the writer too, is a *member* that asks it. A
 * message is JSON; instants never travel without the now of their clock, so that all are spans and no clock
 * of another process is believed.
 *
 * | message | from → to | says |
 * |---|---|---|
 * | `hello` | member → writer | all that waits and all that flies: after a new epoch, and whenever one misses something |
 * | `turn` | member → writer | what happened in one turn of its event loop |
 * | `ping` | member → writer | it is there |
 * | `bye` | member → writer | it leaves |
 * | `grant` | writer → member | who may leave |
 * | `beat` | writer → all | it is there; what it has heard of each; what it knows, for whoever writes next |
 * | `tell` | writer → all | what the engine noticed |
 * | `resign` | writer → all | it leaves; whoever is quick writes next |
 *
 * Three numbers make lost, doubled and reordered messages harmless. The *epoch* counts writers: what an older
 * one says is not heard. The *hello* of a member counts its stories: a grant that answers an older story is
 * not heard, since the newer one has said that its requests wait. Within a hello turns and grants are
 * numbered, and each beat says how many there were: whoever misses one tells, or is told, the whole story
 * again.
 */
import type { ScopeOptions } from '../options/options.js'
import type { Notice, Snapshot, Stats } from '../wasm/types.js'
import { isMessage, isState } from './checks.js'

/** Of the messages. Another one is not understood. */
export const VERSION = 1

/** A request that waits: its number, its attempt, and what the engine needs. */
export interface Ask {
  readonly id: number
  /** How often it was given leave before, here or there. */
  readonly attempt: number
  readonly names: readonly string[]
  readonly cost: number | readonly number[]
  readonly priority: number
  /** What is left of its own delay, in milliseconds. */
  readonly delay: number
  /** For how long it has waited, in milliseconds. */
  readonly waited: number
}

/** The same in order, for there are many. */
export type Asked = readonly [
  id: number,
  attempt: number,
  names: Ask['names'],
  cost: Ask['cost'],
  priority: number,
  delay: number,
  waited: number,
]

/** A request that left `sentAgo` milliseconds ago. */
export interface Flight extends Ask {
  readonly sentAgo: number
  /** How it ended, if it did, and which turn said so first: the writer, or the next one, may not know. */
  readonly told?: readonly number[]
  readonly said?: Said
}

/** A turn of a hello. */
export type Said = readonly [hello: number, turn: number]

/** A change of a setting or a state that concerns everybody. */
export type Order =
  | readonly ['configure', scope: string, partial: ScopeOptions]
  | readonly ['crawl', scope: string, ms: number | null]
  | readonly ['hold', scope: string, ms: number]
  | readonly ['adjust', scope: string, sentAgo: number, charged: number, cost: number]
  | readonly ['pause' | 'resume', scope: string | null]
  | readonly ['reset', scope: string]
  | readonly ['watch', level: 0 | 1 | 2]

/** What a member did in one turn, in order. */
export type Act =
  | readonly ['ask', ...Asked]
  /** How it ended: what the engine is told, or nothing to learn. If it is to be sent again, it waits anew. */
  | readonly ['over', id: number, attempt: number, told: readonly number[]]
  /** It left so many milliseconds later than it was to. */
  | readonly ['left', id: number, attempt: number, late: number]
  | readonly ['cancel', id: number]
  | readonly ['order', number: number, Order]

export interface FromMember {
  readonly from: string
  readonly epoch: number
  readonly hello: number
}

export interface Hello extends FromMember {
  readonly type: 'hello'
  readonly waiting: readonly Ask[]
  /** The oldest first; those that are over first of all. */
  readonly flying: readonly Flight[]
  /** What may not have been heard: its number, how long ago it was given, in milliseconds, and what. */
  readonly orders: readonly (readonly [number: number, ago: number, Order])[]
  /** Of its options. */
  readonly hash: string
  readonly watch: 0 | 1 | 2
}

export interface Turn extends FromMember {
  readonly type: 'turn'
  /** From 1 within a hello. */
  readonly number: number
  readonly acts: readonly Act[]
}

export interface Ping extends FromMember {
  readonly type: 'ping'
}

export interface Bye extends FromMember {
  readonly type: 'bye'
}

/**
 * Why a request was refused: as many wait as may; it costs more than a quota; its scope is
 * down; it makes no sense.
 */
export type Refusal =
  | readonly [id: number, 'full']
  | readonly [id: number, 'cost', scope: string | null, path: string | null]
  | readonly [id: number, 'down', scope: string, forMs: number]
  | readonly [id: number, 'wrong', message: string]

interface FromWriter {
  readonly from: string
  readonly epoch: number
}

export interface Grant extends FromWriter {
  readonly type: 'grant'
  readonly hello: number
  /** From 1 within a hello. */
  readonly number: number
  /** A request and its attempt, and the next request with its attempt. */
  readonly ids: readonly number[]
  readonly refused: readonly Refusal[]
  /** When to send, in milliseconds of the group's clock; at once without one. */
  readonly at?: number | undefined
  /** Somebody waits for the time after these: so it is to be said if they leave late. */
  readonly isAwaited?: boolean | undefined
}

/** What a writer knows of a member: its hello, the turns heard in order, the grants sent. */
export type Heard = readonly [hello: number, turns: number, grants: number]

/** What whoever writes next needs. */
export interface State {
  /** `wallMs` is 0 in it: the age is counted from when it was heard. */
  readonly snapshot: Snapshot
  /** What was set while it ran. */
  readonly settings: readonly (readonly [scope: string, partial: ScopeOptions])[]
  readonly isPaused: boolean
  /** The processes that there are: the next writer waits for their stories. */
  readonly members: readonly Remembered[]
}

/** A process, how much of it was heard, and what it has in flight: how many with the same scopes. */
export type Remembered = readonly [
  id: string,
  heard: readonly [...Said, orders: number],
  flying: readonly (readonly [count: number, names: readonly string[]])[],
]

/** Statistics, with the instant of the engine at which they were taken. */
export interface Seen {
  readonly now: number
  readonly stats: Stats
}

export interface Beat extends FromWriter {
  readonly type: 'beat'
  readonly members: Readonly<Record<string, Heard>>
  readonly hash: string
  /** A {@link State} and {@link Seen}, as text: few read them. Not with each beat where they are large. */
  readonly state?: string | undefined
  readonly seen?: string | undefined
}

export interface Tell extends FromWriter {
  readonly type: 'tell'
  /** The engine's instant, for the instants in the notices. */
  readonly now: number
  readonly notices: readonly Notice[]
  /** Of which member's request they are, if they are answers. */
  readonly of?: string | undefined
  readonly latencyMs?: number | undefined
}

export interface Resign extends FromWriter {
  readonly type: 'resign'
  readonly state: string
}

export type ToWriter = Hello | Turn | Ping | Bye
export type ToMember = Grant | Beat | Tell | Resign
export type Message = ToWriter | ToMember

/** Written down. What is unknown (NaN) is `null`. */
export function encode(message: Message): string {
  return JSON.stringify({ v: VERSION, ...message })
}

/** Read; `'wrong'` for what is not well formed, `'version'` for a message of another version. */
export function decode(text: string): Message | 'version' | 'wrong' {
  let message: { v?: unknown; type?: unknown }
  try {
    message = JSON.parse(text)
  } catch {
    return 'wrong'
  }
  if (typeof message?.v === 'number' && message.v !== VERSION) return 'version'
  return message?.v === VERSION && isMessage(message) ? (message as unknown as Message) : 'wrong'
}

/** A memory as it was heard. Throws if it is none. */
export function stateIn(text: string): State {
  const state = JSON.parse(text)
  if (!isState(state)) throw new TypeError('it is not well formed')
  return state as State
}

/** An outcome as it was told: JSON has no NaN. */
export function numbersIn(told: readonly (number | null)[]): number[] {
  return told.map((number) => number ?? Number.NaN)
}

/** Where records of single scopes begin in what the engine is told, and how long each is. */
const [RECORDS_AT, STRIDE] = [11, 7]

/** Says the scopes of the records by another number: an engine's handle, or the place among the names. */
export function renumber(told: number[], to: (scope: number) => number): void {
  for (let at = RECORDS_AT; at < told.length; at += STRIDE) told[at] = to(told[at]!)
}
