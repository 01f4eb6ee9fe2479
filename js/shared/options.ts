/**
 * What every kind of sharing takes, checked in one place.
 *
 * The trap is a name that is empty by a mistake, as an unset variable is: all programs with it would share.
 */

import { shown, unknownKeys } from '../base/checks.js'
import { ConfigError } from '../base/errors.js'
import type { SharedOptions } from './transport.js'

/** Says that a setting is wrong. */
export type Wrong = (path: string, want: string, value: unknown) => void

/**
 * Throws if the options make no sense; `more` checks what only this kind takes, by the keys in `own`.
 *
 * @throws {ConfigError} listing every problem.
 */
export function checkShared(
  options: SharedOptions,
  own: readonly string[],
  more: (wrong: Wrong) => void,
): void {
  if (typeof options === 'string') {
    const want = `an object, such as { name: ${shown(options)} }`
    throw new ConfigError([{ path: 'shared', want, got: shown(options) }])
  }
  const problems = unknownKeys(options, ['name', 'offline', 'members', ...own], 'shared')
  const wrong: Wrong = (path, want, value) =>
    problems.push({ path: `shared${path}`, want, got: shown(value) })
  const { name, offline = 'divide', members = 1 } = options ?? {}
  if (typeof name !== 'string' || name === '') wrong('.name', 'a name that is not empty', name)
  if (!['divide', 'wait', 'fail'].includes(offline)) wrong('.offline', '"divide", "wait" or "fail"', offline)
  if (!Number.isSafeInteger(members) || members < 1) wrong('.members', 'a whole number from 1', members)
  more(wrong)
  if (problems.length > 0) throw new ConfigError(problems)
}
