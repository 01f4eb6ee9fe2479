/** What the command can be told, and its help. */

export type Command = 'crawl' | 'get' | 'presets' | 'simulate' | 'robots'
export type Values = Record<string, string | boolean | string[] | undefined>

export const HELP: Record<'' | Command, string>

/** Wrong usage. */
export class ArgumentError extends Error {}

/** The name that was probably meant. */
export function nearest(typed: string, names: readonly string[]): string | undefined

/** @throws {ArgumentError} for what it does not know. */
export function readArguments(
  command: Command,
  args: string[],
  more?: Record<string, { type: 'string' | 'boolean' }>,
): { positionals: string[]; values: Values }
