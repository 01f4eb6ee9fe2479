/**
 * Options of both layers: what is for the engine, what is for this one, and the problems of both together.
 */

import { isObject, isPlain, kindOf, misfit } from '../base/checks.js'
import { ConfigError, type Problem } from '../base/errors.js'
import type { Shared } from '../core/host.js'
import { ManagedScopes, managerProblems, withManagerMarked } from '../scopes/strategy.js'
import { checkDriverOptions, Engine } from '../wasm/engine.js'
import { DRIVER_KEYS } from './generated.js'
import type { Clock, EngineOptions, ScopeOptions, ThrottleOptions } from './options.js'
import { typedIn } from './units.js'

type Checked = Partial<Record<keyof ThrottleOptions, unknown>>

/** Splits what this layer reads from what the engine reads, and reports the problems of both together. */
export function splitOptions(options: ThrottleOptions) {
  if (!isPlain(options)) throw misfit('', 'an object', options)
  const [engine, driver]: [Checked, Checked] = [{}, {}]
  const isDriver = (key: string) => DRIVER_KEYS.includes(key)
  for (const [key, value] of Object.entries(options))
    (isDriver(key) ? driver : engine)[key as keyof ThrottleOptions] = value
  // A clock and a snapshot are no plain values: they cross only to be refused.
  const { clock, snapshot, shared, ...checked } = driver
  if (clock !== undefined && !isClock(clock)) Object.assign(checked, { clock })
  if (shared !== undefined && typeof (shared as Shared | null)?.open !== 'function')
    Object.assign(checked, { shared })
  const own: Problem[] = clock !== undefined && isClock(clock) ? clockProblems(clock) : []
  for (const [path, , value] of typedIn(options))
    if (isObject(value) && !isPlain(value) && !Array.isArray(value))
      own.push({ path, want: 'an object', got: kindOf(value) })
  const engineOptions = withManagersMarked(engine as EngineOptions, own)
  if (shared !== undefined && ManagedScopes.areIn(options.scopes, managedOf(options)))
    own.push({ path: 'shared', want: 'no manager beside it: the engine may be elsewhere', got: 'one' })
  // Without options there is no need for the module, which would be compiled before the first request.
  const isAny = Object.keys(checked).length > 0
  const problems = [...(isAny ? problemsOf(() => checkDriverOptions(checked)) : []), ...own]
  if (problems.length > 0) {
    const others = problemsOf(() => new Engine(engineOptions)[Symbol.dispose]())
    throw new ConfigError([...problems, ...others])
  }
  // All that was typed, as a type without what only the engine reads.
  const driverOptions: Omit<ThrottleOptions, Exclude<keyof EngineOptions, 'retry'>> = options
  return { engineOptions, driverOptions }
}

/** The options with managers as marks: the engine knows that they are there, and judges answers for them. */
function withManagersMarked(
  { manager: short, ...options }: EngineOptions,
  problems: Problem[],
): EngineOptions {
  const { scopes, defaults } = options
  problems.push(...managerProblems(short, 'manager', true))
  if (short !== undefined && defaults?.manager !== undefined)
    problems.push({ path: 'manager', want: 'manager here or in defaults, not in both', got: kindOf(short) })
  const forAll = short ?? defaults?.manager
  const isStrange = scopes !== undefined && !isPlain(scopes)
  if (isStrange || !ManagedScopes.areIn(scopes, { manager: forAll } as ScopeOptions)) return options
  problems.push(...managerProblems(defaults?.manager, 'defaults.manager', true))
  for (const [name, scope] of Object.entries(scopes ?? {}))
    problems.push(...managerProblems(scope?.manager, `scopes.${JSON.stringify(name)}.manager`, false))
  const marked = Object.entries(scopes ?? {}).map(([name, scope]) => [name, withManagerMarked(scope)])
  return {
    ...options,
    ...(short === undefined ? {} : { manager: true as never }),
    ...(defaults ? { defaults: withManagerMarked(defaults) } : {}),
    ...(scopes ? { scopes: Object.fromEntries(marked) } : {}),
  }
}

/** The defaults with the manager for all. */
function managedOf({ manager, defaults }: ThrottleOptions): ScopeOptions {
  return manager === undefined ? (defaults ?? {}) : ({ manager } as ScopeOptions)
}

function problemsOf(check: () => void): readonly Problem[] {
  try {
    check()
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

/** The engine's time begins at 0, and a double of milliseconds is exact to the microsecond below 2⁴³. */
function clockProblems(clock: Clock): Problem[] {
  const now: unknown = clock.now()
  if (typeof now === 'number' && now >= 0 && now < 2 ** 43) return []
  return [{ path: 'clock.now', want: 'milliseconds from 0, below 2 ** 43', got: kindOf(now) }]
}

function isClock(clock: unknown): clock is Clock {
  const methods = ['now', 'wallNow', 'setTimeout', 'clearTimeout'] as const
  const hasAll = methods.every((method) => typeof (clock as Clock | null)?.[method] === 'function')
  return hasAll && ['function', 'undefined'].includes(typeof (clock as Clock).setImmediate)
}
