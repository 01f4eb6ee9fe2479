/**
 * Pages, and the comments and messages of folders that were read, keep to the house rules for prose: at most
 * 25 words a sentence (pages), and none of the words that hide who does what.
 */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pages, problemsOf, problemsOfComments, read, root } from './prose.js'

const ofSite = readdirSync(join(root, 'site/pages')).map((name) => `site/pages/${name}`)

for (const page of [...pages, ...ofSite])
  test(`prose of ${page}`, () => {
    assert.equal(
      problemsOf(read(page))
        .map((problem) => `${page}:${problem}`)
        .join('\n'),
      '',
    )
  })

/** Folders whose comments and docstrings keep to the rules. */
const SOURCES = [
  'js',
  'python/src',
  'python/scripts',
  'python/examples',
  'tower/src',
  'examples',
  'tools/scripts',
  'tools/xtask',
  'tools/fuzz/fuzz_targets',
  'tools/bench',
  'docs',
  'crates',
  'src',
  'tests',
  'tower/tests',
  'python/tests',
  'site/playground',
  'site/essay',
  'site/test',
  'site/.vitepress/theme',
]
/** Files that the build writes. */
const WRITTEN = [
  'js/answers/generated.ts',
  'js/options/generated.ts',
  'js/wasm/generated.ts',
  'js/shared/redis/scripts.ts',
]

/** Installed and built files lie beside the sources, and may come and go while this reads. */
const NOT_OURS = /^(?:node_modules|target|dist|\.venv.*)$/

function filesOf(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = `${folder}/${entry.name}`
    if (!entry.isDirectory()) return [name]
    return NOT_OURS.test(entry.name) ? [] : filesOf(name)
  })
}

test('a sentence of a comment opens with its subject', () => {
  const problems = (comment: string) => problemsOfComments(`${comment}\n`, false).length
  const without = ['// What is left.', '// It ends. So it waits.', '// Who asks; whose turn it is.']
  for (const comment of without) assert.equal(problems(comment), 1, comment)
  const subjects = [
    '/** The amount that is left. */',
    '// It ends, so it waits.',
    '// What is left? An amount.',
  ]
  for (const comment of subjects) assert.equal(problems(comment), 0, comment)
})

for (const folder of SOURCES)
  test(`comments of ${folder}`, () => {
    const files = filesOf(folder)
      // Vite writes a file with a time stamp while it reads its settings.
      .filter((name) => /\.(?:ts|m?js|vue|rs|pyi?)$/.test(name) && !name.includes('.timestamp-'))
      .filter((name) => !WRITTEN.includes(name))
    assert.ok(files.length > 0)
    const problems = files.flatMap((name) =>
      problemsOfComments(read(name), /\.pyi?$/.test(name)).map((problem) => `${name}:${problem}`),
    )
    assert.equal(problems.join('\n'), '')
  })

test('messages name who does what', () => {
  const said = /(["'`])(?:(?!\1).)*\b(?:whoever|nobody|somebody|so many|one of whose)\b(?:(?!\1).)*\1/i
  const found = ['js', 'python/src', 'src', 'crates/shared/src', 'crates/reading/src', 'tower/src'].flatMap(
    (folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => /\.(?:ts|mjs|rs|py)$/.test(name))
        .flatMap((name) =>
          read(`${folder}/${name}`)
            .split('\n')
            .map((line, index) => `${folder}/${name}:${index + 1}: ${line.trim()}`)
            .filter((line) => !/: (?:\/\/|\*|\/\*|#|"""|assert)/.test(line) && said.test(line)),
        ),
  )
  assert.equal(found.join('\n'), '')
})

test('titles of tests open with their subject', () => {
  const without = /\b(?:test|describe)\((["'`])(?:who|what|so)\b|\b(?:fn |def test_)(?:who|whoever|what|so)_/
  const found = ['tests', 'src', 'crates', 'tower', 'python/tests']
    .flatMap(filesOf)
    .filter((name) => /\.(?:ts|mjs|rs|py)$/.test(name))
    .flatMap((name) =>
      read(name)
        .split('\n')
        .map((line, index) => `${name}:${index + 1}: ${line.trim()}`)
        .filter((line) => without.test(line)),
    )
  assert.equal(found.join('\n'), '')
})
