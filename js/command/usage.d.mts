/** What the command can be told, and its help. */

export type Command = 'crawl' | 'get' | 'simulate' | 'robots'
export type Values = Record<string, string | boolean | string[] | undefined>

export const HELP: Record<'' | Command, string>

/** @throws an error with a code `ERR_PARSE_ARGS_…` for what it does not know. */
export function readArguments(
  command: Command,
  args: string[],
  more?: Record<string, { type: 'string' | 'boolean' }>,
): { positionals: string[]; values: Values }
