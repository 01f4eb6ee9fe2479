/**
 * What is written where people read. Names, addresses and sentences of strangers may hold commands for a
 * terminal: they are shown as text.
 */

/** Control characters but for the newline, marks that turn the direction of writing, separators of lines. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what it is about
const UNSAFE = /[\0-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** A text of which no character but the newline is a command for a terminal. */
export const shown = (text: string): string => text.replaceAll(UNSAFE, escaped)

/** The same of JSON, which means the same then: control characters stand only in its strings. */
export const json = (value: unknown): string => shown(JSON.stringify(value))

/** What a command was asked for. */
export const print = (text: string): boolean => process.stdout.write(shown(text))

/** What there is to say of it. */
export const say = (text: string): boolean => process.stderr.write(shown(text))
