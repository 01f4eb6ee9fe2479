/**
 * Options that make sense to the engine, and hardly to who typed them.
 *
 * `delay: 2` is milliseconds, so a server gets 500 requests a second from a user who meant one in two
 * seconds; and `API.example` in `scopes` is the scope of no URL, since hosts are in small letters.
 */
import { isObject } from '../base/checks.js'
import type { Warnings } from '../core/warnings.js'
import { hostOfName } from '../scopes/names.js'
import { PACE_KEYS } from './generated.js'
import type { ThrottleOptions } from './options.js'

/** Below it a delay is nearly always meant in seconds. */
const LEAST_LIKELY_MS = 20
const IN_SECONDS = [60, 300, 3600, 86_400]

/** Objects of others, which hold no settings. */
const APART = ['clock', 'snapshot', 'shared', 'manager']

/** All that was typed, however deep, and where. */
export function* typedIn(
  options: object,
  path = '',
  depth = 4,
): Generator<readonly [at: string, key: string, value: unknown]> {
  for (const [key, value] of Object.entries(options)) {
    if (APART.includes(key)) continue
    const at = path + (/^\w+$/.test(key) ? key : JSON.stringify(key))
    yield [at, key, value]
    if (depth > 0 && isObject(value)) yield* typedIn(value, `${at}.`, depth - 1)
  }
}

/** Warns of the first span that looks like seconds. */
export function warnOfSpans(warnings: Warnings, options: object, scope?: string): void {
  for (const [at, key, ms] of typedIn(options)) {
    if (typeof ms !== 'number' || !/delay$|^(?:window|hold|maxHold)$/i.test(key)) continue
    // A minute, an hour and a day in seconds are no spans in milliseconds, but for a least delay.
    const isLikely = ms >= LEAST_LIKELY_MS && (/^(?!max).*y$/i.test(key) || !IN_SECONDS.includes(ms))
    if (ms > 0 && !isLikely)
      warnings.once('suspicious-unit', `${at} is in milliseconds: for ${ms} s type ${ms * 1000}`, scope)
  }
}

/** Whether a send may keep the next one waiting for a time, as far as it was typed. */
export function isPaced({ defaults, scopes, robots, snapshot, shared, ...short }: ThrottleOptions): boolean {
  const typed: Record<string, unknown> = { ...short, ...defaults }
  return (
    typed.delay !== 0 ||
    [scopes, robots, snapshot, shared, ...PACE_KEYS.map((key) => typed[key])].some(Boolean)
  )
}

/**
 * The warnings for names in `scopes` and `hints` that no URL has for its scope.
 *
 * @param met the scopes of requests, if no more are to come for now. Of presets for ten hosts two are used,
 *   so a name without a request counts beside one that it may be meant for.
 */
export function namesOfNone(
  { scopes, hints, getScopes }: ThrottleOptions,
  met: readonly string[] = [],
): [name: string, problem: string][] {
  const names = Object.keys({ ...scopes, ...hints })
  // A hook may give any name, and idle scopes of many are forgotten.
  if (getScopes !== undefined || met.length > 1000) return []
  return names.flatMap((name): [string, string][] => {
    const sent = met.includes(name)
      ? undefined
      : met.find((other) => !names.includes(other) && isAlike(name, other))
    const problem =
      sent === undefined ? problemOfName(name) : `has no effect: requests go to ${JSON.stringify(sent)}`
    const path = `${scopes && Object.hasOwn(scopes, name) ? 'scopes' : 'hints'}.${JSON.stringify(name)}`
    return problem === undefined ? [] : [[name, `${path} ${problem}`]]
  })
}

/** Whether one host may be typed for the other: below it, at a port, or a typo away. */
function isAlike(...names: [typed: string, sent: string]): boolean {
  const [one, other] = names.map((name) => `.${name.replace(/:\d+$/, '')}`) as typeof names
  if (one.endsWith(other) || other.endsWith(one)) return true
  // `a.example` and `b.example` are two, and so are `eu1` and `eu2`.
  const [a, b] = [one, other].map((name) => name.replace(/\d|\b.\b/g, '')) as typeof names
  if (a === b || Math.abs(a.length - b.length) > 1) return false
  const near = (name: string) => [name, ...[...name].map((_, at) => name.slice(0, at) + name.slice(at + 1))]
  const those = new Set(near(b))
  return near(a).some((each) => those.has(each))
}

/** The warning for a name that no URL has for its scope; `undefined` where one may. */
export function problemOfName(name: string): string | undefined {
  if (/^(?=.*\*)[\w.*-]+$/.test(name)) {
    return 'has no effect: scopes are no patterns; type defaults, or getScopes: byDomainHierarchy()'
  }
  const host = hostOfName(name)
  return host === undefined
    ? undefined
    : `has no effect: it is the scope of no URL; type ${JSON.stringify(host)}`
}
