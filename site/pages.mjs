/** Gathers the pages: guides and changes from the repository, the site's own, first charts, the reference. */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { opening } from './opening.mjs'
import { reference } from './reference.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))

export async function gather() {
  const pages = `${here}.pages`
  rmSync(pages, { recursive: true, force: true })
  cpSync(`${here}pages`, pages, { recursive: true })
  cpSync(`${here}../docs`, `${pages}/docs`, { recursive: true })
  cpSync(`${here}../CHANGELOG.md`, `${pages}/changelog.md`)
  python(`${pages}/docs/python.md`)
  writeFileSync(`${pages}/opening.json`, JSON.stringify(await opening()))
  reference()
}

/** Python's own page stands beside its code: its title and its links are another's here. */
function python(page) {
  const text = readFileSync(`${here}../python/README.md`, 'utf8')
  const moved = text
    .replaceAll('](../docs/', '](')
    .replaceAll(/\]\((?!https?:|#|[\w-]+\.md)/g, '](../python/')
  writeFileSync(page, moved.replace(/^# .*/, '# Python'))
}
