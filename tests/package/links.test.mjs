/**
 * The package has its guide. Each link of its pages leads to a file that travels with it, or to the address
 * of one in the repository. Headings that it names are there.
 */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { root } from '../../tools/scripts/lib.mjs'
import { packed } from './install.mjs'

const { scratch, remove } = packed()
after(remove)
const installed = join(scratch, 'node_modules/autothrottle')
const pages = ['README.md', ...readdirSync(join(installed, 'docs')).map((name) => `docs/${name}`)]

const withoutBlocks = (text) => text.replaceAll(/^```.*?^```$/gms, '')
/** The anchor of a heading: as GitHub makes it. */
const slug = (heading) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
const headings = (path) => {
  const text = withoutBlocks(readFileSync(path, 'utf8'))
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, words]) => slug(words))
}
const links = (path) => {
  const text = withoutBlocks(readFileSync(path, 'utf8')).replaceAll(/`[^`\n]*`/g, '')
  const found = [...text.matchAll(/\]\(([^)\s]+)\)/g), ...text.matchAll(/^\[[^\]]+\]: (\S+)$/gm)]
  return found.map(([, target]) => target)
}

const { repository, scripts, devDependencies, version } = JSON.parse(
  readFileSync(join(installed, 'package.json'), 'utf8'),
)
const address = repository.url.replace(/^git\+|\.git$/g, '')

for (const page of pages)
  test(`links of ${page}`, () => {
    for (const target of links(join(installed, page))) {
      const [, elsewhere] = target.split(new RegExp(`^${address}/(?:blob|raw)/main/`))
      if (elsewhere === undefined && /^[a-z]+:/.test(target)) continue
      const [file, anchor] = (elsewhere ?? target).split('#')
      const inside = join(installed, file === '' ? page : join(dirname(page), file))
      const path = elsewhere === undefined ? inside : join(root, file)
      assert.ok(existsSync(path), `${target}: there is no such file`)
      if (elsewhere !== undefined) assert.ok(!existsSync(join(installed, file)), `${target}: it is here, too`)
      if (anchor) assert.ok(headings(path).includes(anchor), `${target}: there is no such heading`)
    }
  })

test('README leads to the guide inside of the package', () => {
  // You have installed it when you read this guide: the page on that is behind an address.
  const wanted = 'which-setting recipes clients errors events llm shared testing runtimes'
  const found = links(join(installed, 'README.md'))
  for (const name of wanted.split(' '))
    assert.ok(
      found.some((target) => target.split('#')[0] === `docs/${name}.md`),
      name,
    )
})

test('package.json has no commands and no dependencies of a clone', () => {
  assert.equal(scripts, undefined)
  assert.equal(devDependencies, undefined)
  assert.equal(version, JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).version)
})
