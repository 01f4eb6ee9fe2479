/** Gathers the pages: guides and changes from the repository, the site's own, first charts, the reference. */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { essay } from './essay/play.js'
import { SCENES } from './essay/scenes.js'
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
  for (const name of ['policies', 'simulate']) playground(`${pages}/docs/${name}.md`)
  writeFileSync(`${pages}/opening.json`, JSON.stringify(await opening()))
  const { createSimulation } = await import('../dist/simulate.js')
  writeFileSync(`${pages}/essay.json`, JSON.stringify(essay(SCENES, createSimulation)))
  reference()
}

/** Where the guides name the playground, it is a link here: it is a page of the same site. */
function playground(page) {
  const text = readFileSync(page, 'utf8')
  const linked = text
    .replace('[playground](simulate.md)', '[playground](../playground.md)')
    .replace(/^(\*\*)?The playground/m, '$1[The playground](../playground.md)')
  if (linked === text) throw new Error(`${page} names no playground: take it out of the list`)
  writeFileSync(page, linked)
}

/** Python's own page stands beside its code: its title and its links are another's here. */
function python(page) {
  const text = readFileSync(`${here}../python/README.md`, 'utf8')
  const moved = text.replaceAll(
    /(?<=\]\(|\]: )https:\/\/github\.com\/autothrottle\/autothrottle\/blob\/main\/docs\//g,
    '',
  )
  writeFileSync(page, moved.replace(/^# .*/, '# Python'))
}
