/**
 * Options of both layers: what is for the engine, what is for this one, and the problems of both together.
 *
 * The trap is to report the problems of one layer, and those of the other when the first are mended.
 */

import { ConfigError, type Problem } from '../core/errors.js'
import { retryForEngine, retryProblems } from '../fetch/retry.js'
import { robotsProblems } from '../fetch/robots.js'
import { ManagedScopes, managerProblems, withManagerMarked } from '../scopes/strategy.js'
import { Engine } from '../wasm/engine.js'
import { headerMapProblems } from '../wasm/headers.js'
import { isMillis, kindOf } from './checks.js'
import type { Clock, EngineOptions, ScopeOptions, ThrottleOptions } from './options.js'

/** Parts what this layer reads from what the engine reads, and reports the problems of both together. */
export function parted(options: ThrottleOptions) {
  const problems: Problem[] = []
  const isObject = typeof options === 'object' && options !== null && !Array.isArray(options)
  if (!isObject) problems.push({ path: '', want: 'an object', got: kindOf(options) })
  const {
    clock,
    snapshot,
    fetch,
    unref,
    retry,
    robots,
    hints,
    getHints,
    getScopes,
    getResponseBackoff,
    getErrorBackoff,
    getResponseDelay,
    redirects,
    redirectMaxDelay,
    release,
    requestTimeout,
    debug,
    ...rest
  } = isObject ? options : ({} as ThrottleOptions)
  const check = (path: string, value: unknown, isRight: boolean, want: string) => {
    if (value !== undefined && !isRight) problems.push({ path, want, got: kindOf(value) })
  }
  check('clock', clock, isClock(clock), 'an object with now, wallNow, setTimeout and clearTimeout')
  check('fetch', fetch, typeof fetch === 'function', 'a function')
  check('debug', debug, typeof debug === 'boolean', 'true or false')
  check('unref', unref, typeof unref === 'boolean', 'true or false')
  const hooks = { getScopes, getHints, getResponseBackoff, getErrorBackoff, getResponseDelay }
  for (const [name, hook] of Object.entries(hooks))
    check(name, hook, typeof hook === 'function', 'a function')
  const isOne = (of: readonly string[], value: unknown) => of.includes(value as string)
  check('redirects', redirects, isOne(['native', 'throttle'], redirects), '"native" or "throttle"')
  check('release', release, isOne(['headers', 'body'], release), '"headers" or "body"')
  check('redirectMaxDelay', redirectMaxDelay, isMillis(redirectMaxDelay), 'milliseconds from 0 to a year')
  check('requestTimeout', requestTimeout, isMillis(requestTimeout), 'milliseconds from 0 to a year')
  const forEngine = { ...rest, ...retryForEngine(retry) }
  const engineOptions = withManagersMarked(forEngine, problems)
  problems.push(...retryProblems(retry), ...robotsProblems(robots), ...headerMapProblems(hints))
  if (problems.length > 0) throw new ConfigError([...problems, ...problemsOf(engineOptions)])
  const driverOptions: Omit<ThrottleOptions, keyof EngineOptions> = options
  return { engineOptions, driverOptions }
}

/** The options with managers as marks: the engine knows that they are there, and judges answers for them. */
function withManagersMarked(
  { manager: short, ...options }: EngineOptions,
  problems: Problem[],
): EngineOptions {
  const { scopes, defaults } = options
  const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
  problems.push(...managerProblems(short, 'manager', true))
  if (short !== undefined && defaults?.manager !== undefined)
    problems.push({ path: 'manager', want: 'manager here or in defaults, not in both', got: kindOf(short) })
  const forAll = short ?? defaults?.manager
  const isStrange = scopes !== undefined && !isObject(scopes)
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

function problemsOf(options: EngineOptions): readonly Problem[] {
  try {
    new Engine(options)[Symbol.dispose]()
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

function isClock(clock: unknown): clock is Clock {
  const methods = ['now', 'wallNow', 'setTimeout', 'clearTimeout'] as const
  return methods.every((method) => typeof (clock as Clock | null)?.[method] === 'function')
}
