/**
 * A program that ends while requests wait, or have not ended, says so: its event loop has no more work that
 * could let them go.
 *
 * If a permit is never settled, or a function of `run` never ends, Node finds no work to do and ends without
 * a word: with code 13, or with 0 inside of `main()`. The first throttle adds the listener.
 *
 * A throttle that only its own requests know could be collected before it speaks. The newest throttle is
 * therefore kept, and those whose requests were not over when another was made.
 *
 * Pages and Workers have no end of their own, so slim and Workers' modules go without
 * (`tools/scripts/dist.mjs`).
 */

import { HOW_TO_END, scopesOf } from './nesting.js'
import type { Scheduler } from './scheduler.js'

/** The parts of a throttle that know its waiting requests. */
export type Stuck = Pick<
  Scheduler,
  | 'isIdle'
  | 'sent'
  | 'closed'
  | 'warnUnusedNames'
  | 'clock'
  | 'driver'
  | 'nesting'
  | 'entering'
  | 'warnings'
  | 'unread'
>

type Process = { on?(event: 'beforeExit', listener: () => void): void }
type Platform = { readonly process?: Process; readonly EdgeRuntime?: string }

const stuck = new Set<WeakRef<Stuck>>()
const kept = new Set<Stuck>()
let isListening = false
/** After this many throttles that sent one request each it is a function that makes them. */
const MANY = 20
let last: Stuck | undefined
/** How many in a row sent one request each, and to where. */
let row = 0
let scope: string | undefined

/**
 * Node, Bun and Deno have an event for it, which comes only if no timer or socket keeps them alive. The
 * caller keeps `one`.
 */
export function watchExit(one: Stuck): void {
  const { process, EdgeRuntime } = globalThis as Platform
  // Next.js ends a build where code of its edge so much as looks at `process.on`.
  if (EdgeRuntime !== undefined || typeof process?.on !== 'function') return
  const before = scope
  if (last?.sent === 1) [scope] = Object.keys(last.driver.engine.stats(undefined, last.clock.now()).scopes)
  row = last?.sent !== 1 ? 0 : scope === before ? row + 1 : 1
  last = one
  if (row === MANY) {
    const problem = `${MANY} throttles in a row sent one request each to ${scope}, and none knows of the others`
    queueMicrotask(() => one.warnings.once('no-effect', `${problem}: make one, outside of the function`))
  }
  for (const each of stuck) if (each.deref() === undefined) stuck.delete(each)
  for (const each of kept) if (each.isIdle) kept.delete(each)
  stuck.add(new WeakRef(one))
  kept.add(one)
  if (isListening) return
  isListening = true
  process.on('beforeExit', () => {
    for (const each of [...stuck]) report(each.deref())
  })
}

function report(one: Stuck | undefined): void {
  if (!one || one.closed) return
  const { driver, clock, nesting, warnings, unread } = one
  if (unread > 0) {
    const how = 'for await (const result of throttle.map(…))'
    const message = `the program ends, and no loop has read what map gives: ${how}`
    warnings.once('never-sent', message, undefined, 'map')
  }
  one.warnUnusedNames()
  driver.drain()
  const { waiting, inFlight } = driver.engine
  const entering = one.entering.size
  if (waiting + entering + inFlight === 0) return
  const scopes = scopesOf(driver.waiters) || 'getScopes or robots.txt'
  const waits = waiting + entering > 0 ? ` while requests wait for ${scopes}: ${waiting || entering}` : ''
  const isPaused = waiting > 0 && driver.engine.stats(undefined, clock.now()).paused
  const why = nesting.isRunning ? 'a function of run, map or wrap or a hook did not end' : HOW_TO_END
  const isHeld = inFlight > 0 && (waits === '' || waiting > 0)
  const held = isHeld ? `; in flight and never settled: ${inFlight} (${why})` : ''
  const how = isPaused ? '; paused: resume() lets them go' : ''
  warnings.once(waits ? 'never-sent' : 'permit-lost', `the program ends${waits}${held}${how}`)
}
