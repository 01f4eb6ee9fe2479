/**
 * Writes the presets for Python, `python/src/autothrottle/_presets.py`, from those of `js/presets.ts`: the one
 * place where they are typed. `tests/js/presets.test.ts` says when the file is old. Spans are seconds there,
 * and options have Python's names.
 */
import { writeFileSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'

const target = fileURLToPath(new URL('../python/src/autothrottle/_presets.py', import.meta.url))
/** Options that are milliseconds. */
const SPANS = new Set(['delay', 'slotDelay', 'window', 'minDelay', 'maxDelay', 'maxHold'])

const snake = (key) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

function literal(value, key = '') {
  if (Array.isArray(value)) return `[${value.map((each) => literal(each)).join(', ')}]`
  if (typeof value === 'object') {
    const entries = Object.entries(value)
    return `{${entries.map(([key, each]) => `"${snake(key)}": ${literal(each, key)}`).join(', ')}}`
  }
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value === 'number') return String(SPANS.has(key) ? value / 1000 : value)
  return JSON.stringify(value)
}

/** The file, for these presets. */
export function pythonOf(hosts, preset) {
  const texts = (values) => values.filter((each) => each !== undefined).map((each) => JSON.stringify(each))
  const source = ({ sentence, url, read, copy }) =>
    `        (${texts([sentence, url, read, copy]).join(', ')}),\n`
  const each = (host) => {
    const { options, sources, userAgent } = preset(host)
    return `    "${host}": (${literal(options)}, (
${sources.map(source).join('')}    ), ${userAgent === undefined ? 'None' : JSON.stringify(userAgent)}),
`
  }
  return `"""Limits that owners of public APIs state: written from \`\`js/presets.ts\`\` by
\`\`node docs/presets.mjs\`\`. Change it there.
"""

# ruff: noqa: E501
# fmt: off
from __future__ import annotations

from .options import ScopeOptions

PRESETS: dict[str, tuple[ScopeOptions, tuple[tuple[str, ...], ...], str | None]] = {
${hosts.map(each).join('')}}
"""By host: the options, in which spans are seconds, their sources, and what is wanted in \`\`User-Agent\`\`."""
`
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { preset, presetHosts } = await import('../dist/presets.js')
  writeFileSync(target, pythonOf(presetHosts, preset))
}
