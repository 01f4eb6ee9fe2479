/** Gathers the pages: guides and changes from the repository, the site's own, and the reference. */
import { cpSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { reference } from './reference.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))

export function gather() {
  const pages = `${here}.pages`
  rmSync(pages, { recursive: true, force: true })
  cpSync(`${here}pages`, pages, { recursive: true })
  cpSync(`${here}../docs`, `${pages}/docs`, { recursive: true })
  cpSync(`${here}../CHANGELOG.md`, `${pages}/changelog.md`)
  reference()
}
