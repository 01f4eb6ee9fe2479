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

/** What the package ships; a slash before a path means the root. */
const shipped = () =>
  (JSON.parse(read('package.json')).files as string[]).map((path) => path.replace(/^\//, ''))

/** Pages that tell users to install something. */
const INSTALLS = /\b(?:npm install|npx|pip install|deno add|bun add) "?(?:npm:)?autothrottle/

for (const path of pages.filter((path) => path !== 'CONTRIBUTING.md' && INSTALLS.test(read(path))))
  test(`${path} says how to install what is not published yet`, () => {
    const there = path === 'docs/start.md' || /start\.md#install/.test(read(path))
    assert.ok(there, 'it links to docs/start.md#install')
  })

test('links of the package stay in the package', () => {
  const files = shipped()
  const isShipped = (path: string) =>
    path === 'README.md' ||
    files.includes(path) ||
    (/^docs\/[^/]+\.md$/.test(path) && files.includes('docs/*.md') && !files.includes(`!${path}`))
  const dead = pages.filter(isShipped).flatMap((path) =>
    linksOf(path)
      // Pictures stay in the repository: they are three times the size of the text.
      .filter((target) => !target.includes('images/') && !target.startsWith('#'))
      .map((target) => join(dirname(path), target.split('#')[0]!))
      .filter((target) => !isShipped(target))
      .map((target) => `${path}: ${target}`),
  )
  assert.deepEqual(dead, [])
})

test('the guides are in the package', () => {
  const files = shipped()
  assert.ok(files.includes('docs/*.md'))
  assert.ok(linksOf('README.md').length > 20)
})
