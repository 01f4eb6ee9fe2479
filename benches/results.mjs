/**
 * The part of RESULTS.md that `npm run bench` does not write: what was broken on purpose. It stands at the
 * end under a heading of its own, and each section names the command that it is from.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const RESULTS = fileURLToPath(new URL('RESULTS.md', import.meta.url))
const HEADING = '\n# Broken on purpose\n'

/** That part, as it is in the file. */
export function kept() {
  const text = readFileSync(RESULTS, 'utf8')
  const at = text.indexOf(HEADING)
  if (at < 0) throw new Error(`${RESULTS} has no${HEADING}`)
  return text.slice(at)
}

/** Writes one of its sections anew. */
export function writeSection(title, body) {
  const text = readFileSync(RESULTS, 'utf8')
  const begin = text.indexOf(`\n## ${title}\n`, text.indexOf(HEADING))
  if (begin < 0) throw new Error(`${RESULTS} has no section ${title}`)
  const next = text.indexOf('\n## ', begin + 1)
  const rest = next < 0 ? '' : text.slice(next)
  writeFileSync(RESULTS, `${text.slice(0, begin)}\n## ${title}\n\n${body.trim()}\n${rest}`)
}
