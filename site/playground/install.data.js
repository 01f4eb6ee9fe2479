/** How one installs the package today, by language: from the one table of the guide that says it. */
import { readFileSync } from 'node:fs'

const GUIDE = new URL('../../docs/start.md', import.meta.url)

export default {
  load() {
    const section = readFileSync(GUIDE, 'utf8')
      .split(/^## /m)
      .find((each) => each.startsWith('Install'))
    const rows = [...section.matchAll(/^\| ([^|]+) \| `([^`]+)` \|$/gm)].map(([, language, line]) => [
      language,
      line,
    ])
    if (rows.length < 3) throw new Error('docs/start.md: no table of how to install')
    return Object.fromEntries(rows)
  },
}
