/**
 * Links of the README and the guides lead to files and headings that are there.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const guides = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'))
const guidesOf = guides.map((name) => `docs/${name}`)
const pages = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'python/README.md',
  'tower/README.md',
  ...guidesOf,
]

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

/** Where a page links to a file of ours by its address, as PyPI needs it: it resolves no relative link. */
const OURS = 'https://github.com/autothrottle/autothrottle/blob/main/'

function linksOf(path: string): string[] {
  const up = '../'.repeat(path.split('/').length - 1)
  const text = withoutCode(read(path)).replaceAll(OURS, up)
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

assert.ok(linksOf('README.md').length > 20)

test('PyPI shows python/README.md with links that work there', () => {
  const relative = withoutCode(read('python/README.md')).match(/\](?:\(|: )(?!https:|#).*/g)
  assert.deepEqual(relative, null)
})

/** Pages that tell users to install something. */
const INSTALLS = /\b(?:npm install|npx|pip install|deno add|bun add) "?(?:npm:)?autothrottle/

for (const path of pages.filter((path) => path !== 'CONTRIBUTING.md' && INSTALLS.test(read(path))))
  test(`${path} says how to install what is not published yet`, () => {
    const there = path === 'docs/start.md' || /start\.md#install/.test(read(path))
    assert.ok(there, 'it links to docs/start.md#install')
  })
