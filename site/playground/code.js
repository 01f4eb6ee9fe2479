/**
 * Options as people type them, both ways, and checked by `createThrottle` itself: the errors are those of code.
 *
 * A page under `script-src 'self' 'wasm-unsafe-eval'` has no `eval`, and what was pasted may come from
 * anywhere. JSON5 reads what object literals are made of; it runs no code.
 */

let loaded
/** JSON5 and the package, fetched once you come near to typing: the first chart needs the simulator alone. */
export function reader() {
  loaded ??= Promise.all([import('json5'), import('autothrottle')])
  return loaded
}

/** Options as code: keys without quotes where they need none, numbers in groups of three, lines of `width`. */
export function toCode(value, indent = '', width = 64) {
  const deeper = `${indent}  `
  if (Array.isArray(value)) return `[${value.map((item) => toCode(item, deeper, width)).join(', ')}]`
  if (typeof value === 'number') return group(value)
  if (typeof value !== 'object' || value === null) {
    return typeof value === 'string'
      ? `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
      : String(value)
  }
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined && inner !== null)
  if (entries.length === 0) return '{}'
  const parts = entries.map(([key, inner]) => `${name(key)}: ${toCode(inner, deeper, width)}`)
  const line = `{ ${parts.join(', ')} }`
  if (!line.includes('\n') && indent.length + line.length <= width) return line
  return `{\n${parts.map((part) => `${deeper}${part},\n`).join('')}${indent}}`
}

/** A whole program that does what is on screen, against the real server. */
export const toProgram = (throttle) =>
  `import { createThrottle } from 'autothrottle'\n\nconst throttle = createThrottle(${toCode(throttle)})\n`

/** The value of pasted text: an object, or a call of `createThrottle` with one. */
export async function parse(text) {
  const call = text.match(/createThrottle\s*\(([\s\S]*)\)\s*;?\s*$/)
  const literal = (call ? call[1] : text).trim().replace(/;$/, '').replace(/,$/, '')
  if (literal === '') return {}
  const [{ default: json5 }] = await reader()
  const value = json5.parse(literal.replaceAll(/(\d)_(?=\d)/g, '$1'))
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new SyntaxError('an object is wanted: { delay: 500 }')
  }
  return value
}

/** Throws what `createThrottle` throws. */
export async function check(options) {
  const [, { createThrottle }] = await reader()
  createThrottle(options).close()
}

/** The options without what only a driver reads: a simulation has a network and a clock of its own. */
export function forSimulation(options) {
  const {
    requestTimeout,
    robots,
    hints,
    redirects,
    redirectMaxDelay,
    release,
    debug,
    unref,
    warnings,
    ...rest
  } = options
  return rest
}

const name = (key) => (/^[A-Za-z_$][\w$]*$/.test(key) ? key : `'${key}'`)
const group = (value) =>
  Number.isInteger(value) && value >= 10_000
    ? String(value).replaceAll(/\B(?=(\d{3})+$)/g, '_')
    : String(value)
