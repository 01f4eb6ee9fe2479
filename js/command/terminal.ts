/**
 * Writes text for people. Names, addresses and sentences of strangers may hold commands for a terminal: they
 * are shown as text.
 */
import { oneLine } from '../base/text.js'

/** A text of which no character but the newline is a command for a terminal. */
export const shown = (text: string): string => text.split('\n').map(oneLine).join('\n')

/** The same of JSON, which means the same then: control characters stand only in its strings. */
export const json = (value: unknown): string => oneLine(JSON.stringify(value))

/** Writes the command's output. */
export const print = (text: string): boolean => process.stdout.write(shown(text))

/** Writes a message about it. */
export const say = (text: string): boolean => process.stderr.write(shown(text))
