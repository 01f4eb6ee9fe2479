/** `autothrottle-cli presets`: settings of public APIs, and who says so. */
import { type PresetHost, preset, presetHosts } from 'autothrottle/presets'
import { UsageError } from './settings.js'
import type { Values } from './usage.mjs'

export function presets(hosts: readonly string[], values: Values): void {
  const unknown = hosts.find((host) => !(presetHosts as readonly string[]).includes(host))
  if (unknown !== undefined)
    throw new UsageError(
      `presets: there is none for ${JSON.stringify(unknown)}; autothrottle-cli presets lists them`,
    )
  const known = hosts as readonly PresetHost[]
  if (values.json === true)
    process.stdout.write(`${JSON.stringify(Object.fromEntries(known.map((host) => [host, preset(host)])))}\n`)
  else if (known.length === 0) process.stdout.write(`${presetHosts.join('\n')}\n`)
  else process.stdout.write(known.map(inWords).join('\n'))
}

function inWords(host: PresetHost): string {
  const { options, sources, userAgent } = preset(host)
  const quotes = sources.map(
    ({ sentence, url, read, copy }) =>
      `  "${sentence}"\n    ${url}, read ${read}${copy === undefined ? '' : ` in a copy: ${copy}`}\n`,
  )
  const agent = userAgent === undefined ? '' : `  User-Agent: ${userAgent}\n`
  return `${host}\n  ${JSON.stringify(options)}\n${agent}${quotes.join('')}`
}
