/**
 * Pages, and the comments and messages of folders that were read, keep to the house rules for prose: at most
 * 25 words a sentence (pages), and none of the words that hide who does what.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { badWords, comments, problemsOf } from './prose.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** Pages that were not read yet: one that was leaves the list. */
const UNREAD = new Set<string>([])
const guides = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'))
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'python/README.md',
  'tower/README.md',
  'site/pages/index.md',
].concat(guides.map((name) => `docs/${name}`))

for (const page of pages)
  test(`prose of ${page}`, () => {
    const problems = problemsOf(read(page))
    if (UNREAD.has(page)) assert.ok(problems.length > 0, `${page} was read: it leaves the list`)
    else assert.equal(problems.map((problem) => `${page}:${problem}`).join('\n'), '')
  })

/** Folders whose comments were read, and what in them was not yet. */
const SOURCES = ['js']
const UNREAD_SOURCES = ['js/shared/', 'js/options/generated.ts']

for (const folder of SOURCES)
  test(`comments of ${folder}`, () => {
    const files = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .map((name) => `${folder}/${name}`)
      .filter((name) => /\.(?:ts|rs|py)$/.test(name) && !UNREAD_SOURCES.some((path) => name.startsWith(path)))
    const problems = files.flatMap((name) =>
      comments(read(name), name.endsWith('.py')).flatMap(({ line, text }) =>
        badWords(text).map((problem) => `${name}:${line}: ${problem}`),
      ),
    )
    assert.equal(problems.join('\n'), '')
  })
