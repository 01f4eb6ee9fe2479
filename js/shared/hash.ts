/** Hashes that tell texts apart: of names, and of the options of a group. */
import type { EngineOptions } from '../options/options.js'

/** FNV-1a of a text, in hexadecimal: to tell texts apart, not to keep anything secret. */
export function fnv1a(text: string): string {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return (hash >>> 0).toString(16)
}

/** Of what decides, whatever the order of the keys. */
export function hashOf(options: EngineOptions): string {
  const text = JSON.stringify(options, (_, value) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )
  return fnv1a(text)
}
