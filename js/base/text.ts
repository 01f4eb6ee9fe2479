/** Text of strangers where people read it: a control character is shown and not obeyed. */

/** Control characters, marks that turn the direction of writing, separators of lines. */
const CONTROLS = /[\p{Cc}\p{Cf}\u2028\u2029]/gu

const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/** A text in one line, without commands for a terminal: each is written as in JSON, so JSON stays JSON. */
export function oneLine(text: string): string {
  return text.replaceAll(CONTROLS, (found) => found.split('').map(escaped).join(''))
}
