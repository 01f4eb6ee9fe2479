/**
 * Helpers that check options: how a value is shown, which keys are unknown, what milliseconds are.
 *
 * `String` and `JSON.stringify` throw at an object without a prototype, a BigInt or a cycle, and the error
 * about the options would be lost.
 */
import { ConfigError, type Problem } from './errors.js'

export const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** A value in a few words, for what a setting got. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return `a list of ${value.length}`
  if (typeof value === 'object') return isPlain(value) ? 'an object' : `an object (${tagOf(value)})`
  if (typeof value === 'function') return 'a function'
  return typeof value === 'string' ? JSON.stringify(value) : String(value)
}

/** The name in its `toString`. */
export const tagOf = (value: unknown) => Object.prototype.toString.call(value).slice(8, -1)

/** An object with members in sight. A Map, a Set, a date or a promise would count as an empty one. */
export function isPlain(value: unknown): value is object {
  if (!isObject(value) || Array.isArray(value)) return false
  return tagOf(value) === 'Object' || Object.keys(value).length > 0
}

/** The error about a value of the wrong type. */
export function notA(what: string, want: string, got: unknown): TypeError {
  return new TypeError(`${what}: want ${want}; got ${kindOf(got)}`)
}

/** The same, where what is in it matters. */
export function wrong(what: string, want: string, got: unknown): TypeError {
  return new TypeError(`${what}: want ${want}; got ${shown(got)}`)
}

/** The same of an option. */
export function misfit(path: string, want: string, got: unknown): ConfigError {
  return new ConfigError([{ path, want, got: kindOf(got) }])
}

/** Whether it is a promise, of whatever make. */
export function isThenable(value: unknown): boolean {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}

/** The error about a word that is not in the list, with the word that was probably meant. */
export function notOneOf(what: string, words: readonly string[], got: string, meant?: string): TypeError {
  const hint = meant === undefined ? '' : ` (did you mean ${meant}?)`
  return new TypeError(`${what}: want one of ${words.join(', ')}; got ${got}${hint}`)
}

/** The first keys of an object, in braces. */
export const keysOf = (value: object) => `{ ${Object.keys(value).slice(0, 3).join(', ')} }`

/** A value as JSON, cut, where what is in it matters. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing'
  try {
    const text = JSON.stringify(value) ?? String(value)
    return text.length > 60 ? `${text.slice(0, 59)}…` : text
  } catch {
    return kindOf(value)
  }
}

/**
 * A problem for each key that is not known. A misspelt option that is quietly ignored is found out in
 * production.
 */
export function unknownKeys(options: object, known: readonly string[], path: string): Problem[] {
  const problems: Problem[] = []
  for (const key in options) {
    if (known.includes(key)) continue
    const got = kindOf(options[key as keyof object])
    problems.push({ path: path ? `${path}.${key}` : key, want: `one of ${known.join(', ')}`, got })
  }
  return problems
}

/** @throws {TypeError} for what is hardly anything else than `throttle`. */
export function checkSpelling(options: object, place: string): void {
  for (const key of Object.keys(options))
    if (key !== 'throttle' && /^t[hrote]{3,}l/i.test(key))
      throw new TypeError(`${place}: got ${key} (did you mean throttle?)`)
}

/** Whether it is a throttle, of this copy of the package or another. */
export function isThrottle(value: unknown): boolean {
  return typeof (value as { acquire?: unknown } | null | undefined)?.acquire === 'function'
}

/** @throws {TypeError} for what stands where an entry wants the throttle. */
export function checkThrottle(value: unknown, entry: string): void {
  if (!isThrottle(value)) throw notA(entry, 'a throttle, as createThrottle gives it', value)
}

/** Milliseconds from 0 to a year. */
export function isMillis(value: unknown): boolean {
  return typeof value === 'number' && value >= 0 && value <= 31_536_000_000
}
