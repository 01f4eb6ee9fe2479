/**
 * Links of the README and the guides lead to files and headings that are there, and pictures travel along.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const guides = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'))
const pages = ['README.md', 'CONTRIBUTING.md', 'python/README.md', ...guides.map((name) => `docs/${name}`)]

/** What a heading is called in a link: as GitHub makes it. */
const slug = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')

const withoutCode = (text: string) => text.replaceAll(/^```.*?^```$/gms, '').replaceAll(/`[^`\n]*`/g, '')
const headings = (text: string) =>
  new Set(
    [...text.replaceAll(/^```.*?^```$/gms, '').matchAll(/^#+ (.+)$/gm)].map(([, words]) => slug(words!)),
  )

function linksOf(path: string): string[] {
  const text = withoutCode(read(path))
  const found = [...text.matchAll(/\]\(([^)\s]+)\)/g), ...text.matchAll(/^\[[^\]]+\]: (\S+)$/gm)]
  return found.map(([, target]) => target!).filter((target) => !/^[a-z]+:/.test(target))
}

for (const path of pages) {
  test(`links of ${path}`, () => {
    for (const target of linksOf(path)) {
      const [file, anchor] = target.split('#')
      const other = file ? join(dirname(path), file) : path
      assert.ok(existsSync(join(root, other)), target)
      if (anchor) assert.ok(headings(read(other)).has(anchor), `${target}: no such heading`)
    }
  })
}

test('the guides are in the package', () => {
  const { files } = JSON.parse(read('package.json')) as { files: string[] }
  // Pictures stay in the repository: they are three times the size of the text.
  assert.ok(files.includes('docs/*.md'))
  assert.ok(linksOf('README.md').length > 20)
})
